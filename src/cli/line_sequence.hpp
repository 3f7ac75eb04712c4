// Says whether the energy lines of a start follow one another without a hole. The code is pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace diapause::cli {

// These are lines that are missing before another.
struct Hole {
  std::uint64_t lines = 1;  // at least
  double seconds = 0;       // that they have told of
};

class LineSequence {
 public:
  struct Line {
    std::uint64_t incarnation = 0;
    std::optional<std::uint64_t> number;  // in the start, from 1; older libraries write none
    double from_unix_s = 0, to_unix_s = 0;
  };

  // Says when a start began.
  void open(std::uint64_t incarnation, double unix_s);
  // Takes the next line. Returns what is missing before it: by the numbers of lines, and where
  // there are none, by their times.
  std::optional<Hole> add(const Line& line);
  // Returns whether the last line that was taken begins where the one before it of its start ends.
  bool adjoins() const { return adjoins_; }
  // Returns how many lines of its start were taken, with that one.
  std::uint64_t nth() const { return nth_; }

 private:
  std::map<std::uint64_t, double> opened_unix_s_;  // by incarnation
  std::map<std::uint64_t, Line> last_;             // by incarnation
  std::map<std::uint64_t, std::uint64_t> lines_;   // how many, by incarnation
  std::uint64_t nth_ = 0;
  bool adjoins_ = false;
};

// Says which starts have no line that ends them, so that nobody knows what they used at last. The
// last energy line of a start says that it is the last one.
class StartEnds {
 public:
  struct OpenEnd {
    std::uint64_t incarnation = 0;
    // The last thing that lines tell of it came so many seconds before it was closed, and at most
    // so many before it was killed; nullopt: no line tells.
    std::optional<double> seconds;
    bool was_closed = false;
  };

  void open(std::uint64_t incarnation, double unix_s);
  void add_energy(std::uint64_t incarnation, double to_unix_s, bool is_last);
  // Older libraries tell no incarnation, and do not mark their last energy line: it is the start
  // before, and all its energy lines are taken to be there.
  void close(std::optional<std::uint64_t> incarnation, double unix_s);
  // Returns them by incarnation.
  std::vector<OpenEnd> open_ends() const;

 private:
  struct Start {
    double opened_unix_s = 0, told_to_unix_s = 0;
    std::optional<double> closed_unix_s;
    bool has_end = false;
  };
  std::map<std::uint64_t, Start> starts_;
};

}  // namespace diapause::cli
