#include "restarts.hpp"

#include <algorithm>
#include <sstream>

namespace diapause::drop_in {

std::uint64_t ScrRestarts::at_or_below(std::uint64_t number) const {
  while (number > 0) {
    if (current < number && number <= left_out_to) number = current;
    if (failed.count(number) == 0) break;
    --number;
  }
  return number;
}

std::uint64_t ScrRestarts::last() const {
  return std::max(left_out_to, failed.empty() ? 0 : *failed.rbegin());
}

std::string ScrRestarts::text() const {
  std::ostringstream lines;
  if (left_out_to != 0) lines << "current " << current << ' ' << left_out_to << '\n';
  for (const std::uint64_t version : failed) lines << "failed " << version << '\n';
  return lines.str();
}

ScrRestarts ScrRestarts::of(const std::string& text) {
  ScrRestarts restarts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what;
    std::uint64_t version = 0, to = 0;
    if (!(words >> what >> version)) continue;
    if (what == "failed") restarts.failed.insert(version);
    if (what != "current" || !(words >> to)) continue;
    restarts.current = version;
    restarts.left_out_to = to;
  }
  return restarts;
}

}  // namespace diapause::drop_in
