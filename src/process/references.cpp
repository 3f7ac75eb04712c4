#include "process/references.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <tuple>

#include "format/checksum.hpp"
#include "process/contents.hpp"
#include "process/file_access.hpp"

namespace diapause::process {
namespace {

constexpr std::uint64_t kPartBytes = kMiB;  // bytes that have one checksum and are read at once

std::uint64_t part_bytes(std::uint64_t all, std::uint64_t at) {
  return std::min(kPartBytes, all - at);
}

tl::unexpected<Error> not_the_same(const std::string& path, const std::string& why) {
  return fail(
      Code::mismatch,
      fmt::format(
          "{}, which the job had mapped and which the checkpoint does not hold, is not the file "
          "that it "
          "was ({}). Restart where it is, or from a version of level 4, which holds such files; "
          "with capture.referenced_files = [] all versions do",
          path, why));
}

}  // namespace

Result<sys::File> open_mapped_file(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const int opened = ::open(path.c_str(), kFlags);
  if (opened < 0) return fail(os_error("opening " + path + ", which the job had mapped", errno));
  sys::File file(sys::real_kernel(), opened, path, kFlags);
  struct stat found {};
  if (::fstat(opened, &found) != 0 || !S_ISREG(found.st_mode)) {
    return fail(Code::mismatch, path + ", which the job had mapped, is not a regular file");
  }
  return file;
}

bool References::is_below(const std::string& path) const {
  return std::ranges::any_of(directories_, [&](const std::string& directory) {
    return process::is_below(path, directory);
  });
}

void References::forget_other_files(Dump& dump) const {
  for (SharedMemory& memory : dump.job.memories) {
    if (memory.kind == SharedKind::file_pages && !is_below(memory.path)) memory.path.clear();
  }
}

Result<References::Identity> References::identity_of(const sys::File& file) {
  struct stat found {};
  if (::fstat(file.fd(), &found) != 0) return fail(os_error("asking for " + file.path(), errno));
  return Identity{found.st_dev, found.st_ino, static_cast<std::uint64_t>(found.st_size),
                  nanoseconds(found.st_mtim), nanoseconds(found.st_ctim)};
}

std::vector<References::Range> References::parts_of(const Contents& pages) {
  std::vector<Range> parts;
  for (std::uint64_t at = 0; at < pages.bytes; at += kPartBytes) {
    parts.push_back({pages.offset + at, part_bytes(pages.bytes, at)});
  }
  return parts;
}

bool References::knows(const Known& known, const Contents& pages) {
  return std::ranges::all_of(parts_of(pages),
                             [&](const Range& part) { return known.checksums.contains(part); });
}

Status References::compare(const sys::File& file, const Contents& pages, Known& known) {
  ByteVector of_file, of_memory;
  for (const Range& range : parts_of(pages)) {
    of_file.resize(range.bytes);
    of_memory.resize(range.bytes);
    DIAPAUSE_TRY(file.read_exact(of_file, range.offset));
    DIAPAUSE_TRY(read_contents(pages, range.offset - pages.offset, of_memory));
    if (of_file != of_memory)
      return fail(Code::mismatch, file.path() + " holds something else than was mapped");
    known.checksums[range] = format::checksum64(of_file);
  }
  return {};
}

const References::Known* References::find_out(const std::string& path, const Pages& pages,
                                              Effort effort) {
  const auto file = open_mapped_file(path);
  if (!file) return nullptr;
  const auto identity = identity_of(*file);
  if (!identity) return nullptr;
  Known& known = known_[path];
  if (known.identity != *identity) known = {*identity, {}};
  for (const Contents* one : pages) {
    if (knows(known, *one)) continue;
    if (effort == Effort::look || !compare(*file, *one, known)) return nullptr;
  }
  return &known;
}

void References::apply(Dump& dump, Effort effort) {
  Job& job = dump.job;
  std::vector<Pages> pages(job.memories.size());
  for (const Contents& one : dump.contents) {
    if (one.process == 0) pages[one.shared].push_back(&one);
  }
  for (std::uint32_t i = 0; i < job.memories.size(); ++i) {
    SharedMemory& memory = job.memories[i];
    const bool is_held =
        memory.kind == SharedKind::file_pages && !memory.path.empty() && !pages[i].empty();
    const Known* const known = is_held ? find_out(memory.path, pages[i], effort) : nullptr;
    if (known == nullptr) continue;
    memory.is_stored = false;
    for (const Contents* one : pages[i]) {
      for (const Range& range : parts_of(*one)) {
        job.file_parts.push_back({i, range.offset, range.bytes, known->checksums.at(range)});
      }
    }
  }
  std::ranges::sort(job.file_parts, {},
                    [](const FilePart& part) { return std::tuple(part.memory, part.offset); });
  std::erase_if(dump.contents, [&](const Contents& one) {
    return one.process == 0 && job.memories[one.shared].kind == SharedKind::file_pages &&
           !job.memories[one.shared].is_stored;
  });
}

Status check_files(const Job& job) {
  std::vector<std::optional<sys::File>> files(job.memories.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const SharedMemory& memory = job.memories[i];
    if (memory.kind != SharedKind::file_pages || memory.is_stored) continue;
    auto file = open_mapped_file(memory.path);
    if (!file && is_of_the_moment(file.error().code)) {
      file.error().message += "; raise the limit (ulimit -n), and restart once more";
      return fail(std::move(file.error()));
    }
    if (!file) return not_the_same(memory.path, file.error().message);
    files[i] = std::move(*file);
  }
  ByteVector bytes;
  for (const FilePart& part : job.file_parts) {
    if (!files[part.memory]) continue;
    const sys::File& file = *files[part.memory];
    const std::uint64_t length = file.size().value_or(0);
    const bool is_there = part.offset <= length && part.bytes <= length - part.offset;
    if (!is_there) return not_the_same(file.path(), fmt::format("it has {} bytes", length));
    format::Checksum64 checksum;
    for (std::uint64_t at = 0; at < part.bytes; at += kPartBytes) {
      bytes.resize(part_bytes(part.bytes, at));
      DIAPAUSE_TRY(file.read_exact(bytes, part.offset + at));
      checksum.update(bytes);
    }
    if (checksum.value() == part.checksum) continue;
    return not_the_same(file.path(), fmt::format("its bytes from {} on are others", part.offset));
  }
  return {};
}

}  // namespace diapause::process
