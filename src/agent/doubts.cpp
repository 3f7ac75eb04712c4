#include "agent/doubts.hpp"

#include <algorithm>
#include <string_view>

#include "store/names.hpp"
#include "sys/kernel.hpp"
#include "sys/path.hpp"
#include "sys/text_file.hpp"

namespace diapause::agent {

std::vector<std::string> Doubts::lines() const {
  std::vector<std::string> lines;
  (void)sys::read_lines(sys::real_kernel(), path_,
                        [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

bool Doubts::hold(const format::VersionId& version) const {
  const std::vector<std::string> all = lines();
  return std::ranges::find(all, store::version_directory(version)) != all.end();
}

Status Doubts::add(const format::VersionId& version) const {
  if (hold(version)) return {};
  return sys::append_line(sys::real_kernel(), path_, store::version_directory(version));
}

void Doubts::clear() const { (void)sys::remove_file(sys::real_kernel(), path_); }

}  // namespace diapause::agent
