#include "process/contents.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "process/trace.hpp"
#include "process/zeros.hpp"

namespace diapause::process {
namespace {

// Reads from /proc/<pid>/fd of the process that has the file open, because the file may have no
// name. Bytes behind the end of the file are set to zero.
Status read_open_file(const Contents& contents, std::uint64_t offset, MutableBytes to) {
  const std::string path = fmt::format("/proc/{}/fd/{}", contents.here, contents.descriptor);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail(os_error("opening " + path, errno));
  std::uint64_t done = 0;
  int error = 0;
  while (done < to.size()) {
    const ssize_t got = ::pread(file, to.data() + done, to.size() - done,
                                static_cast<off_t>(contents.begin + offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    done += static_cast<std::uint64_t>(got);
  }
  ::close(file);
  if (error != 0) return fail(os_error("reading " + path, error));
  std::memset(to.data() + done, 0, to.size() - done);
  return {};
}

// Does it for those that are chosen.
template <typename IsChosen>
Zeros leave_out_zeros(Dump& dump, const KnownZerosOf& known, const IsChosen& is_chosen) {
  Zeros zeros;
  std::vector<Contents> rest;
  for (Contents& one : dump.contents) {
    if (!one.begins_empty || !is_chosen(one)) {
      rest.push_back(std::move(one));
      continue;
    }
    const Extent range{one.begin, one.begin + one.bytes};
    KnownZeros known_here;
    if (known) {
      known_here = [&](std::uint64_t address) { return known(one.process, address); };
    }
    const std::vector<Extent> found = zeros_in(one.here, range, one.is_forced, known_here);
    zeros[one.process].insert(zeros[one.process].end(), found.begin(), found.end());
    for (const Extent& left : rest_of(range, found)) {
      Contents& part = rest.emplace_back(one);
      part.begin = left.begin;
      part.bytes = left.end - left.begin;
      part.offset += left.begin - one.begin;
    }
  }
  dump.contents = std::move(rest);
  return zeros;
}

}  // namespace

Status read_contents(const Contents& contents, std::uint64_t offset, MutableBytes to) {
  if (!contents.read.empty()) {
    std::memcpy(to.data(), contents.read.data() + offset, to.size());
    return {};
  }
  if (contents.descriptor >= 0) return read_open_file(contents, offset, to);
  const std::uint64_t address = contents.begin + offset;
  return contents.is_forced ? read_any_memory(contents.here, address, to)
                            : read_memory(contents.here, address, to);
}

Zeros leave_out_zeros(Dump& dump, const KnownZerosOf& known) {
  return leave_out_zeros(dump, known, [](const Contents& one) { return one.read.empty(); });
}

Status read_what_is_not_forked(Dump& dump) {
  leave_out_zeros(dump, {}, [](const Contents& one) { return !one.is_forked; });
  for (Contents& contents : dump.contents) {
    if (contents.is_forked || !contents.read.empty()) continue;
    ByteVector bytes(contents.bytes);
    DIAPAUSE_TRY(read_contents(contents, 0, bytes));
    contents.read = std::move(bytes);
  }
  return {};
}

}  // namespace diapause::process
