#include "sys/perf_counter.hpp"

#include "sys/robust.hpp"

namespace diapause::sys {

Result<PerfCounter> PerfCounter::open(Kernel& kernel, std::uint32_t type, std::uint64_t config,
                                      int cpu, const std::string& what) {
  const int fd = uninterrupted([&] { return kernel.perf_counter(type, config, cpu); });
  if (fd < 0) return fail(path_error("open", what, fd));
  return PerfCounter(File(kernel, fd, what));
}

Result<std::uint64_t> PerfCounter::count() const {
  std::uint64_t count = 0;
  const MutableBytes place = std::as_writable_bytes(std::span(&count, 1));
  const auto got = uninterrupted([&] { return file_.kernel().read(file_.fd(), place); });
  if (got < 0) return fail(path_error("read", file_.path(), got));
  // The kernel returns no bytes for a counter that it could not schedule on its unit.
  if (got != sizeof count) return fail(Code::io, file_.path() + " does not count");
  return count;
}

}  // namespace diapause::sys
