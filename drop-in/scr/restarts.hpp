// What a program has said of its restarts, which the runs that follow have to know.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace diapause::drop_in {

struct ScrRestarts {
  // Versions that the program could not restart from.
  std::set<std::uint64_t> failed;
  // After SCR_Current a restart takes none of the versions between the one that it names and what
  // is taken next. These are the numbers of that one and of the last one left out; 0 and 0: none.
  std::uint64_t current = 0;
  std::uint64_t left_out_to = 0;

  // Returns the greatest number of a version that a restart may take, up to `number`; 0: none.
  std::uint64_t at_or_below(std::uint64_t number) const;
  // Returns the greatest number that is known here.
  std::uint64_t last() const;

  // As lines of text. What is none of them is left out.
  std::string text() const;
  static ScrRestarts of(const std::string& text);
};

}  // namespace diapause::drop_in
