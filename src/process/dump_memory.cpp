// Dumps the mappings of a frozen process and finds out which of their contents belong in the image.
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "format/checksum.hpp"
#include "process/dump_parts.hpp"
#include "process/holes.hpp"
#include "process/kernel_code.hpp"
#include "process/zeros.hpp"

namespace diapause::process {
namespace {

constexpr std::string_view kDeleted = " (deleted)";
constexpr std::string_view kSegment = "/SYSV";

std::uint32_t flags_of(const Mapping& mapping) {
  // Pages that the machine keeps in reserve come back as huge ones of the usual kind.
  constexpr std::pair<std::string_view, std::uint32_t> kFlags[] = {
      {"gd", kGrowsDown}, {"hg", kHuge},      {"ht", kHuge},
      {"nh", kNoHuge},    {"dc", kNotForked}, {"wf", kWipedByFork},
      {"dd", kNotDumped}, {"lo", kLocked},    {"nr", kNoReserve}};
  std::uint32_t flags = 0;
  for (const auto& [name, flag] : kFlags) {
    if (mapping.has(name)) flags |= flag;
  }
  return flags;
}

// Returns whether a mapping has no file. Its pages hold zeros until they are written to.
bool is_anonymous(const Mapping& mapping) {
  return mapping.inode == 0 || mapping.name.starts_with("[") ||
         mapping.name.starts_with("/dev/zero") || mapping.name.starts_with("/anon_hugepage");
}

std::string place_of(const Mapping& mapping) {
  return fmt::format("memory at {:#x} ({})", mapping.begin,
                     mapping.name.empty() ? "no name" : mapping.name);
}

// Returns why the memory of a mapping cannot be restored, or an empty text if it can.
std::string refusal_of(const Mapping& mapping, bool is_watched) {
  if (mapping.has("io") || mapping.has("pf")) return is_of_kernel(mapping) ? "" : "of a device";
  const bool is_ours =
      is_watched && !mapping.is_shared && is_anonymous(mapping);  // if not, Changes will find out
  if (mapping.has("um") || mapping.has("ui") || (mapping.has("uw") && !is_ours))
    return "watched by userfaultfd";
  if (mapping.has("ss")) return "a shadow stack";
  if (mapping.has("sl") && !is_of_kernel(mapping)) return "sealed by mseal";
  // The kernel itself gives a key to memory that may be executed and not read.
  if (mapping.has("pk") && mapping.protection != PROT_EXEC)
    return "with a protection key (pkey_mprotect)";
  if (mapping.name.starts_with("/[aio]"))
    return "of asynchronous input and output by the kernel (io_setup)";
  const bool is_device =
      mapping.name.starts_with("/dev/") && !mapping.name.starts_with("/dev/shm/") &&
      !mapping.name.starts_with("/dev/zero") && !mapping.name.starts_with("/dev/hugepages");
  if (is_device) return "of a device";
  if (mapping.name.starts_with("anon_inode:")) return "of " + mapping.name;
  return "";
}

// Replaces each \012 in a name by a newline, for which the kernel writes it.
std::string with_ends_of_lines(std::string name) {
  constexpr std::string_view kEnd = "\\012";
  for (std::size_t at = name.find(kEnd); at != std::string::npos; at = name.find(kEnd, at + 1)) {
    name.replace(at, kEnd.size(), 1, '\n');
  }
  return name;
}

// Returns the path of the mapped file, or an empty text if the file cannot be found by its name.
std::string path_of(const Mapping& mapping) {
  if (!mapping.name.starts_with('/')) return "";
  for (const std::string& name : {mapping.name, with_ends_of_lines(mapping.name)}) {
    struct stat found {};
    if (::stat(name.c_str(), &found) == 0 && found.st_ino == mapping.inode) return name;
  }
  return "";
}

// Returns whether a shared mapping belongs to a file whose name leads to another file by now, or to
// none. Data that the job writes through this memory would not be in that file after a restart.
bool is_lost(const Mapping& mapping) {
  return mapping.is_shared && mapping.name.starts_with('/') && !mapping.name.ends_with(kDeleted) &&
         path_of(mapping).empty();
}

// Returns whether the pages of a mapping come from a file until the process writes to them. The
// pages of a mapping of huge pages of a file all count as the process's own.
bool is_of_file(const Mapping& mapping) { return !is_anonymous(mapping) && !mapping.has("ht"); }

// Returns whether writes of one process must be visible to other processes or in the file.
bool is_really_shared(const DumpWork& work, const Mapping& mapping) {
  if (!mapping.is_shared) return false;
  if (mapping.has("mw") || work.memories.contains({mapping.device, mapping.inode})) return true;
  return lies_in_memory(path_of(mapping)) || mapping.name.ends_with(kDeleted);
}

// Returns the path of a file in memory that has lost the name by which it was mapped, and has
// another one in that directory: sem_open() makes semaphores so. Returns an empty text if there is
// none.
std::string later_path_of(const Mapping& mapping) {
  const bool is_without_file =
      mapping.name.starts_with("/memfd:") || mapping.name.starts_with("/dev/zero");
  if (!mapping.name.ends_with(kDeleted) || is_without_file) return "";
  const std::string directory = std::filesystem::path(mapping.name).parent_path();
  if (!lies_in_memory(directory)) return "";
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none)) {
    struct stat found {};
    const bool is_same = ::lstat(entry.path().c_str(), &found) == 0 &&
                         found.st_ino == mapping.inode && found.st_dev == mapping.device;
    if (is_same) return entry.path();
  }
  return "";
}

// Returns a path by which the file of a mapping can be found, whether it has a name or not, or an
// empty text. Only root may use that of the mapping itself.
std::string path_to_file(const FrozenProcess& frozen, const Mapping& mapping,
                         const std::string& name) {
  const auto leads_there = [&](const std::string& path) {
    struct stat found {};
    return ::stat(path.c_str(), &found) == 0 && found.st_ino == mapping.inode &&
           found.st_dev == mapping.device;
  };
  if (!name.empty() && leads_there(name)) return name;
  std::string own = path_of_mapping(frozen.here, mapping);
  if (leads_there(own)) return own;
  const std::string descriptors = fmt::format("/proc/{}/fd", frozen.here);
  for (const pid_t number : numbers_in(descriptors).value_or(std::vector<pid_t>{})) {
    std::string path = fmt::format("{}/{}", descriptors, number);
    if (leads_there(path)) return path;
  }
  return "";
}

SharedMemory describe(const Mapping& mapping) {
  SharedMemory memory;
  memory.is_writable = true;
  memory.is_stored = true;
  if (mapping.name.starts_with(kSegment)) {
    memory.kind = SharedKind::system_v;
    memory.id = static_cast<std::uint32_t>(mapping.inode);
    return memory;
  }
  struct stat found {};
  std::string path = path_of(mapping);
  if (path.empty()) path = later_path_of(mapping);
  if (path.empty() || ::stat(path.c_str(), &found) != 0) return memory;
  memory.kind = SharedKind::file;
  memory.path = path;
  memory.bytes = static_cast<std::uint64_t>(found.st_size);
  memory.mode = found.st_mode & 07777;
  return memory;
}

std::uint32_t shared_memory(DumpWork& work, const Mapping& mapping) {
  std::vector<SharedMemory>& memories = work.result.job.memories;
  const auto [known, is_new] = work.memories.try_emplace(
      {mapping.device, mapping.inode}, static_cast<std::uint32_t>(memories.size()));
  if (is_new) memories.push_back(describe(mapping));
  SharedMemory& memory = memories[known->second];
  const std::uint64_t end = mapping.offset + (mapping.end - mapping.begin);
  if (memory.kind != SharedKind::file) memory.bytes = std::max(memory.bytes, end);
  return known->second;
}

// Returns the runs of pages in a range of shared memory that hold something, or may do so.
Result<std::vector<Extent>> shared_extents(DumpWork& work, FrozenProcess& frozen,
                                           const Mapping& mapping, const SharedMemory& memory,
                                           const Extent& range) {
  if (is_of_no_file_system(mapping)) {
    DIAPAUSE_TRY(work.frozen.plant(frozen));
    auto pages = pages_of_shared_memory(frozen, mapping, range);
    if (pages) return std::move(*pages);
  } else {
    // Without a path there is no such file, and nobody tells.
    auto pages = pages_of_mapping(path_to_file(frozen, mapping, memory.path), mapping, range);
    if (pages) return std::move(*pages);
  }
  const bool is_forced = (mapping.protection & PROT_READ) == 0;
  return is_forced ? forced_extents(frozen.here, range) : readable_extents(frozen.here, range);
}

Status store_shared(DumpWork& work, FrozenProcess& frozen, const Mapping& mapping,
                    const Area& area) {
  const std::uint64_t end = mapping.offset + (mapping.end - mapping.begin);
  const bool is_forced = (mapping.protection & PROT_READ) == 0;
  for (const Extent& fresh : take_unstored(work, area.shared, {mapping.offset, end})) {
    const Extent range{mapping.begin + fresh.begin - mapping.offset,
                       mapping.begin + fresh.end - mapping.offset};
    const SharedMemory& memory = work.result.job.memories[area.shared];
    DIAPAUSE_TRY_ASSIGN(const std::vector<Extent> extents,
                        shared_extents(work, frozen, mapping, memory, range));
    // Pages of a file that are there are stored, although they may be zero.
    const bool begins_empty = memory.kind != SharedKind::file;
    for (const Extent& extent : extents) {
      std::vector<Extent> zeros;
      if (begins_empty && !is_forced) zeros = zeros_in(frozen.here, extent, false, {});
      for (const Extent& one : rest_of(extent, zeros)) {
        work.result.contents.push_back({frozen.here, one.begin, one.end - one.begin, 0, area.shared,
                                        one.begin - mapping.begin + mapping.offset, is_forced, -1});
      }
    }
  }
  return {};
}

SharedMemory describe_pages(const Mapping& mapping) {
  SharedMemory memory;
  memory.kind = SharedKind::file_pages;
  memory.is_stored = true;
  struct stat found {};
  const bool has_file = !mapping.name.ends_with(kDeleted) &&
                        ::stat(mapping.name.c_str(), &found) == 0 &&
                        found.st_ino == mapping.inode && S_ISREG(found.st_mode);
  if (!has_file) return memory;
  memory.path = mapping.name;
  memory.bytes = static_cast<std::uint64_t>(found.st_size);
  return memory;
}

std::uint32_t pages_of_file(DumpWork& work, const Mapping& mapping) {
  std::vector<SharedMemory>& memories = work.result.job.memories;
  const auto [known, is_new] = work.files.try_emplace({mapping.device, mapping.inode, mapping.name},
                                                      static_cast<std::uint32_t>(memories.size()));
  if (is_new) memories.push_back(describe_pages(mapping));
  SharedMemory& memory = memories[known->second];
  const std::uint64_t end = mapping.offset + (mapping.end - mapping.begin);
  if (memory.path.empty()) memory.bytes = std::max(memory.bytes, end);
  return known->second;
}

// Returns whether a process that is forked from this one goes on to have the same memory. The
// kernel takes pages of its reserve away from it if it has no others for writes to the memory.
bool stays_when_forked(const Mapping& mapping) {
  return (flags_of(mapping) & (kNotForked | kWipedByFork)) == 0 && !mapping.has("ht");
}

// Stores the pages of a file that this process sees and that no other process has given yet. There
// are none behind the end of the file.
void store_pages_of_file(DumpWork& work, const FrozenProcess& frozen, const Mapping& mapping,
                         std::uint32_t shared, const Extent& range) {
  const SharedMemory& memory = work.result.job.memories[shared];
  const bool is_forced = (mapping.protection & PROT_READ) == 0;
  const bool is_forked = stays_when_forked(mapping);
  const std::uint64_t from = range.begin - mapping.begin + mapping.offset;
  const std::uint64_t to = std::min(range.end - mapping.begin + mapping.offset, memory.bytes);
  if (from >= to) return;
  for (const Extent& fresh : take_unstored(work, shared, {from, to})) {
    const std::uint64_t begin = mapping.begin + fresh.begin - mapping.offset;
    std::vector<Extent> extents = {{begin, begin + fresh.end - fresh.begin}};
    const bool is_length_known = !memory.path.empty();
    if (!is_length_known) {
      extents = is_forced ? forced_extents(frozen.here, extents[0])
                          : readable_extents(frozen.here, extents[0]);
    }
    for (const Extent& one : extents) {
      work.result.contents.push_back({frozen.here, one.begin, one.end - one.begin, 0, shared,
                                      one.begin - mapping.begin + mapping.offset, is_forced, -1,
                                      is_forked});
    }
  }
}

Status store_private(DumpWork& work, const FrozenProcess& frozen, const Mapping& mapping,
                     Area& area) {
  const Extent range{mapping.begin, mapping.end};
  const bool is_forced = (mapping.protection & PROT_READ) == 0;
  std::vector<Extent> extents;
  if (is_anonymous(mapping)) {
    DIAPAUSE_TRY_ASSIGN(extents, populated_extents(frozen.here, range));
  } else if (is_of_file(mapping)) {
    DIAPAUSE_TRY_ASSIGN(extents, written_extents(frozen.here, range));
    area.shared = pages_of_file(work, mapping);
    area.offset = mapping.offset;
    for (const Extent& one : rest_of(range, extents))
      store_pages_of_file(work, frozen, mapping, area.shared, one);
  } else {
    extents = is_forced ? forced_extents(frozen.here, range) : readable_extents(frozen.here, range);
  }
  const bool is_forked = stays_when_forked(mapping);
  for (const Extent& one : extents) {
    work.result.contents.push_back({frozen.here, one.begin, one.end - one.begin, frozen.status.id,
                                    kNone, one.begin, is_forced, -1, is_forked,
                                    is_anonymous(mapping)});
  }
  return {};
}

Status dump_mapping(DumpWork& work, FrozenProcess& frozen, const Mapping& mapping,
                    Process& process) {
  Area area;
  area.begin = mapping.begin;
  area.end = mapping.end;
  area.protection = mapping.protection;
  area.flags = flags_of(mapping);
  area.name = mapping.name;
  if (mapping.name == "[vsyscall]") {
    area.kind = AreaKind::foreign;
  } else if (is_of_kernel(mapping)) {
    area.kind = AreaKind::kernel;
    if (has_kernel_code(mapping)) {
      ByteVector code(mapping.end - mapping.begin);
      DIAPAUSE_TRY(read_memory(frozen.here, mapping.begin, code));
      area.checksum = format::checksum64(code);
      work.result.job.kernel_code = std::move(code);
    }
  } else if (const std::string refusal = refusal_of(mapping, frozen.is_watched); !refusal.empty()) {
    work.refuse(frozen.status, "has " + place_of(mapping) + " " + refusal);
  } else if (is_lost(mapping)) {
    work.refuse(frozen.status,
                "has " + place_of(mapping) + " of a file that cannot be found by that name");
  } else if (is_really_shared(work, mapping)) {
    area.kind = AreaKind::shared;
    area.shared = shared_memory(work, mapping);
    area.offset = mapping.offset;
    DIAPAUSE_TRY(store_shared(work, frozen, mapping, area));
  } else {
    if (mapping.is_shared) {
      work.only_read.push_back(
          {frozen.status.id, mapping.begin, mapping.offset, {mapping.device, mapping.inode}});
    }
    DIAPAUSE_TRY(store_private(work, frozen, mapping, area));
  }
  process.areas.push_back(std::move(area));
  return {};
}

Status dump_guards(DumpWork& work, const FrozenProcess& frozen, const Process& process) {
  Extent all;
  for (const Area& area : process.areas) {
    if (area.kind == AreaKind::foreign) continue;
    if (all.end == 0) all.begin = area.begin;
    all.end = area.end;
  }
  DIAPAUSE_TRY_ASSIGN(const std::vector<Extent> guards, guarded_extents(frozen.here, all));
  for (const Extent& one : guards) {
    work.result.job.guards.push_back({process.id, one.begin, one.end - one.begin});
    // The kernel installs no guard pages in locked memory, and the image would not hold what a file
    // has at guarded pages.
    const bool is_plain = std::ranges::all_of(process.areas, [&](const Area& area) {
      const bool is_there = area.begin < one.end && area.end > one.begin;
      return !is_there ||
             (area.kind == AreaKind::memory && area.shared == kNone && (area.flags & kLocked) == 0);
    });
    if (is_plain) continue;
    work.refuse(
        frozen.status,
        fmt::format("has guard pages (MADV_GUARD_INSTALL) at {:#x} in memory that is shared, "
                    "locked or of a file",
                    one.begin));
  }
  return {};
}

}  // namespace

std::vector<Extent> take_unstored(DumpWork& work, std::uint32_t shared, Extent range) {
  std::vector<Extent>& stored = work.stored[shared];
  std::vector<Extent> fresh;
  std::uint64_t at = range.begin;
  for (const Extent& one : stored) {  // in ascending order
    if (one.end <= at || one.begin >= range.end) continue;
    if (one.begin > at) fresh.push_back({at, one.begin});
    at = std::max(at, one.end);
  }
  if (at < range.end) fresh.push_back({at, range.end});
  stored.insert(stored.end(), fresh.begin(), fresh.end());
  std::ranges::sort(stored, {}, &Extent::begin);
  return fresh;
}

// The contents of these mappings are those of the file, which are stored for the process that
// writes to it.
void share_what_is_only_read(DumpWork& work) {
  for (const DumpWork::OnlyRead& one : work.only_read) {
    const auto known = work.memories.find(one.file);
    if (known == work.memories.end()) continue;
    const auto process = std::ranges::find(work.result.job.processes, one.process, &Process::id);
    const auto area = std::ranges::find(process->areas, one.begin, &Area::begin);
    area->kind = AreaKind::shared;
    area->shared = known->second;
    area->offset = one.offset;
    std::erase_if(work.result.contents, [&](const Contents& contents) {
      return contents.process == one.process && contents.offset >= area->begin &&
             contents.offset < area->end;
    });
  }
}

Status dump_memory(DumpWork& work, FrozenProcess& frozen, Process& process) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<Mapping> mappings,
                      work.frozen.foresight().mappings_of(frozen.here, frozen.status));
  for (const Mapping& mapping : mappings)
    DIAPAUSE_TRY(dump_mapping(work, frozen, mapping, process));
  return dump_guards(work, frozen, process);
}

}  // namespace diapause::process
