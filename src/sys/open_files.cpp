#include "sys/open_files.hpp"

#include <fmt/core.h>
#include <sys/resource.h>

namespace diapause::sys {
namespace {

// Returns the limit that this process had when it was first asked for.
const rlimit& first_limit() {
  static const rlimit first = [] {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return limit;
  }();
  return first;
}

}  // namespace

Status allow_open_files(std::uint64_t count) {
  const rlimit& first = first_limit();
  if (first.rlim_cur >= count) return {};
  const rlimit raised{count, first.rlim_max};
  if (count <= first.rlim_max && ::setrlimit(RLIMIT_NOFILE, &raised) == 0) return {};
  return fail(Code::denied,
              fmt::format("{} open files are needed, and {} are permitted (ulimit -Hn)", count,
                          first.rlim_max));
}

void restore_open_files() { ::setrlimit(RLIMIT_NOFILE, &first_limit()); }

}  // namespace diapause::sys
