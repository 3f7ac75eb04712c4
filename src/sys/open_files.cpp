#include "sys/open_files.hpp"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>

namespace diapause::sys {
namespace {

rlimit limit_before;
bool is_raised = false;

}  // namespace

Status allow_open_files(std::uint64_t count) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) return {};
  const rlimit raised{std::min<rlim_t>(count, limit.rlim_max), limit.rlim_max};
  if (raised.rlim_cur < count || ::setrlimit(RLIMIT_NOFILE, &raised) != 0) {
    return fail(Code::denied,
                fmt::format("{} open files are needed, and {} are permitted (ulimit -Hn)", count,
                            limit.rlim_max));
  }
  if (!is_raised) limit_before = limit;
  is_raised = true;
  return {};
}

void restore_open_files() {
  if (is_raised) ::setrlimit(RLIMIT_NOFILE, &limit_before);
}

}  // namespace diapause::sys
