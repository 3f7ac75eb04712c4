// Restores the mappings of a process and their contents.
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/prctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "process/proc.hpp"
#include "process/restore_parts.hpp"

namespace diapause::process {
namespace {

bool overlaps(const Extent& one, const Extent& other) {
  return one.begin < other.end && other.begin < one.end;
}

// Returns where the kernel's code can stay while it is moved: behind the code for system calls and
// its room.
std::uint64_t waiting_place(const RestoreWork& work) {
  return work.calls.address() + Calls::kBytes;
}

std::vector<Mapping> kernel_mappings(const std::vector<Mapping>& mappings) {
  std::vector<Mapping> found;
  std::ranges::copy_if(mappings, std::back_inserter(found), is_of_kernel);
  return found;
}

// Returns where each of the kernel's mappings goes, and nothing for one that the process does not
// know.
using Places = std::vector<std::optional<std::uint64_t>>;
Places places_for_kernel_code(const RestoreWork& work, const Made& made,
                              const std::vector<Mapping>& mappings) {
  Places places;
  if (mappings.empty()) return places;
  const std::uint64_t begin = mappings.front().begin, bytes = mappings.back().end - begin;
  const Extent taken{work.calls.address(), waiting_place(work) + 4 * bytes};
  const std::uint64_t free_place = KernelCode::place_in(*made.stored, bytes, taken);
  for (const Mapping& mapping : mappings) {
    if (!work.kernel_code.is_known()) {
      places.emplace_back(free_place + (mapping.begin - begin));
      continue;
    }
    const auto area = std::ranges::find_if(made.stored->areas, [&](const Area& one) {
      return one.kind == AreaKind::kernel && one.name == mapping.name;
    });
    places.push_back(area == made.stored->areas.end() ? std::nullopt : std::optional(area->begin));
  }
  return places;
}

// Moves the kernel's own code to its place. Code that the process does not know is unmapped.
// Everything else moves by way of a free place, because old and new places may overlap.
Status move_kernel_code(const RestoreWork& work, Made& made, const std::vector<Mapping>& mappings) {
  const Places places = places_for_kernel_code(work, made, mappings);
  std::vector<Call> calls, last;
  std::uint64_t spare = waiting_place(work) + kPageBytes;
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    const std::uint64_t begin = mappings[i].begin, bytes = mappings[i].end - begin;
    if (has_kernel_code(mappings[i])) made.code_place = places[i].value_or(0);
    if (!places[i]) {
      calls.push_back({SYS_munmap, {begin, bytes}, 0});
      continue;
    }
    constexpr std::uint64_t kMove = MREMAP_MAYMOVE | MREMAP_FIXED;
    calls.push_back({SYS_mremap, {begin, bytes, bytes, kMove, spare}, 0});
    last.push_back({SYS_mremap, {spare, bytes, bytes, kMove, *places[i]}, 0});
    spare += bytes + kPageBytes;
  }
  calls.insert(calls.end(), last.begin(), last.end());
  return work.calls.run(made.leader(), calls);
}

// Unregisters restartable sequences. A forked process inherits the address to which the kernel
// writes the number of its processor, and that memory is about to be unmapped.
Status end_sequences(const RestoreWork& work, const Made& made) {
  constexpr std::uint64_t kUnregister = 1;
  DIAPAUSE_TRY_ASSIGN(const SequenceArea area, sequence_area_of(made.leader().here));
  if (area.address == 0) return {};
  const Call end{SYS_rseq, {area.address, area.size, kUnregister, area.signature}, 0};
  DIAPAUSE_TRY(work.calls.one(made.leader(), end));
  return {};
}

Status unmap_everything(const RestoreWork& work, const Made& made,
                        const std::vector<Mapping>& mappings) {
  const Extent own{work.calls.address(), work.calls.address() + Calls::kBytes};
  std::vector<Call> calls;
  for (const Mapping& mapping : mappings) {
    if (is_of_kernel(mapping) || mapping.name == "[vsyscall]" ||
        overlaps(own, {mapping.begin, mapping.end})) {
      continue;
    }
    calls.push_back({SYS_munmap, {mapping.begin, mapping.end - mapping.begin}, 0});
  }
  return work.calls.run(made.leader(), calls);
}

bool is_segment(const RestoreWork& work, const Area& area) {
  return area.kind == AreaKind::shared &&
         work.job.memories[area.shared].kind == SharedKind::system_v;
}

Call mapping_call(const RestoreWork& work, const Area& area, bool has_contents) {
  if (is_segment(work, area))
    return {SYS_shmat, {work.job.memories[area.shared].id, area.begin, 0}, 0};
  std::uint64_t flags = MAP_FIXED_NOREPLACE;
  std::uint64_t protection = area.protection;
  std::uint64_t file = ~std::uint64_t{0};
  std::uint64_t offset = 0;
  if (area.kind == AreaKind::shared) {
    flags |= MAP_SHARED;
    file = static_cast<std::uint64_t>(work.openings.of_memory(area.shared));
    offset = area.offset;
  } else {
    flags |= MAP_PRIVATE | MAP_ANONYMOUS;
    if (area.shared != kNone) {
      flags &= ~std::uint64_t{MAP_ANONYMOUS};
      file = static_cast<std::uint64_t>(work.openings.of_memory(area.shared));
      offset = area.offset;
    }
    if ((area.flags & kGrowsDown) != 0) flags |= MAP_GROWSDOWN;
    if ((area.flags & kNoReserve) != 0) flags |= MAP_NORESERVE;
    if (has_contents) protection = PROT_READ | PROT_WRITE;
  }
  return {SYS_mmap, {area.begin, area.end - area.begin, protection, flags, file, offset}, 0};
}

void add_advice(const Area& area, std::vector<Call>& calls) {
  constexpr std::pair<std::uint32_t, std::uint64_t> kAdvice[] = {{kHuge, MADV_HUGEPAGE},
                                                                 {kNoHuge, MADV_NOHUGEPAGE},
                                                                 {kNotForked, MADV_DONTFORK},
                                                                 {kWipedByFork, MADV_WIPEONFORK},
                                                                 {kNotDumped, MADV_DONTDUMP}};
  const std::uint64_t bytes = area.end - area.begin;
  for (const auto& [flag, advice] : kAdvice) {
    // Advice about huge pages may fail: nothing is lost on a machine that has none.
    const std::uint64_t may_fail = flag == kHuge || flag == kNoHuge ? kMayFail : 0;
    if ((area.flags & flag) != 0)
      calls.push_back({SYS_madvise | may_fail, {area.begin, bytes, advice}, 0});
  }
}

// What another kernel gave to processes is memory of their own here. Its data are pages of zeros,
// with which its code asks the kernel for the time.
bool is_mapped(const RestoreWork& work, const Area& area) {
  return area.kind == AreaKind::memory || area.kind == AreaKind::shared ||
         (area.kind == AreaKind::kernel && !work.kernel_code.is_known());
}

bool is_code_of_other_kernel(const RestoreWork& work, const Area& area) {
  return has_kernel_code(area) && !work.kernel_code.is_known();
}

// Fills a segment of System V, through the first process that has it.
Status fill_segment(RestoreWork& work, const Made& made, const Area& area) {
  if (work.filled[area.shared]) return {};
  work.filled[area.shared] = true;
  const auto write = [&](const StoredContents& one, std::uint64_t offset, ByteView bytes) {
    return write_memory(made.leader().here, area.begin + one.offset + offset, bytes);
  };
  return work.read(contents_of_memory(work, area.shared), write);
}

// Returns whether an area of memory may be filled behind: anonymous memory of one process that is
// worth it. Locked memory has its pages at once, and stacks and small areas are what the kernel
// itself reads and writes.
bool may_be_filled_behind(const Area& area, std::uint64_t stored_bytes) {
  constexpr std::uint64_t kLeastBytes = 1 * kMiB;
  constexpr std::uint32_t kUnfit = kLocked | kGrowsDown;
  return area.kind == AreaKind::memory && area.shared == kNone && (area.flags & kUnfit) == 0 &&
         stored_bytes >= kLeastBytes;
}

// Returns what of the memory of a process may be filled behind.
std::vector<FillBehind::Part> parts_to_fill_behind(const RestoreWork& work, const Made& made) {
  std::vector<FillBehind::Part> parts;
  for (const Area& area : made.stored->areas) {
    FillBehind::Part part{{area.begin, area.end}, {}};
    std::uint64_t bytes = 0;
    bool is_whole_pages = true;
    for (const StoredContents& one : work.contents) {
      if (one.process != made.stored->id || one.offset < area.begin || one.offset >= area.end)
        continue;
      part.contents.push_back(&one);
      bytes += one.bytes;
      is_whole_pages =
          is_whole_pages && one.offset % kPageBytes == 0 && one.bytes % kPageBytes == 0;
    }
    if (is_whole_pages && may_be_filled_behind(area, bytes)) parts.push_back(std::move(part));
  }
  return parts;
}

// Leaves memory of a process to be filled behind. Returns what is left to be filled at once.
ContentsList leave_behind(RestoreWork& work, const Made& made, ContentsList contents) {
  if (work.behind == nullptr) return contents;
  const std::vector<FillBehind::Part> parts = parts_to_fill_behind(work, made);
  if (parts.empty()) return contents;
  const Status taken = work.behind->take(work.calls, made.leader(), parts);
  if (!taken) {
    work.log(Severity::warning,
             "all memory is restored before the job runs: " + taken.error().message);
    work.behind = nullptr;
    return contents;
  }
  for (const FillBehind::Part& part : parts) {
    std::erase_if(contents, [&](const StoredContents* one) {
      return one->offset >= part.area.begin && one->offset < part.area.end;
    });
  }
  return contents;
}

Status fill_memory(RestoreWork& work, const Made& made) {
  for (const Area& area : made.stored->areas) {
    if (is_segment(work, area)) DIAPAUSE_TRY(fill_segment(work, made, area));
    if (!is_code_of_other_kernel(work, area)) continue;
    DIAPAUSE_TRY_ASSIGN(const ByteVector code, work.kernel_code.known_leading_to(made.code_place));
    DIAPAUSE_TRY(write_memory(made.leader().here, area.begin, code));
  }
  ContentsList own;
  for (const StoredContents& one : work.contents) {
    if (one.process == made.stored->id) own.push_back(&one);
  }
  own = leave_behind(work, made, std::move(own));
  return work.read(own, [&](const StoredContents& one, std::uint64_t offset, ByteView bytes) {
    return write_memory(made.leader().here, one.offset + offset, bytes);
  });
}

// Installs the guard pages of a process. If the kernel has no guard pages, the rights to these
// pages are taken away instead, which has the same effect.
Status install_guards(const RestoreWork& work, const Made& made) {
  constexpr std::uint64_t kInstall = 102;  // MADV_GUARD_INSTALL
  std::vector<Call> calls;
  for (const Guard& one : work.job.guards) {
    if (one.process != made.stored->id) continue;
    calls.push_back({SYS_madvise | kMayFail, {one.begin, one.bytes, kInstall}, 0});
  }
  DIAPAUSE_TRY(work.calls.run(made.leader(), calls));
  std::vector<Call> instead;
  for (const Call& call : calls) {
    if (call.result < 0)
      instead.push_back({SYS_mprotect, {call.arguments[0], call.arguments[1], PROT_NONE}, 0});
  }
  return work.calls.run(made.leader(), instead);
}

Status map_areas(RestoreWork& work, const Made& made) {
  std::vector<bool> has_contents;
  for (const Area& area : made.stored->areas) {
    const bool is_stored = std::ranges::any_of(work.contents, [&](const StoredContents& one) {
      return one.process == made.stored->id && one.offset >= area.begin && one.offset < area.end;
    });
    has_contents.push_back(is_stored || is_code_of_other_kernel(work, area));
  }
  const std::vector<Area>& areas = made.stored->areas;
  std::vector<Call> before, after;
  for (std::size_t i = 0; i < areas.size(); ++i) {
    if (!is_mapped(work, areas[i])) continue;
    before.push_back(mapping_call(work, areas[i], has_contents[i]));
    if ((areas[i].flags & kHuge) != 0) add_advice(areas[i], before);  // before the pages exist
    const std::uint64_t bytes = areas[i].end - areas[i].begin;
    const bool is_filled = has_contents[i] || is_segment(work, areas[i]);
    if (is_filled && areas[i].protection != (PROT_READ | PROT_WRITE)) {
      after.push_back({SYS_mprotect, {areas[i].begin, bytes, areas[i].protection}, 0});
    }
    add_advice(areas[i], after);
    if ((areas[i].flags & kLocked) != 0) after.push_back({SYS_mlock, {areas[i].begin, bytes}, 0});
  }
  DIAPAUSE_TRY(work.calls.run(made.leader(), before));
  DIAPAUSE_TRY(fill_memory(work, made));
  DIAPAUSE_TRY(work.calls.run(made.leader(), after));
  return install_guards(work, made);
}

// Tells the kernel where the heap, the arguments and the program are.
Status describe_to_kernel(const RestoreWork& work, const Made& made) {
  const MemoryMap& from = made.stored->map;
  prctl_mm_map map{};
  map.start_code = from.start_code;
  map.end_code = from.end_code;
  map.start_data = from.start_data;
  map.end_data = from.end_data;
  map.start_brk = from.start_brk;
  map.brk = from.brk;
  map.start_stack = from.start_stack;
  map.arg_start = from.arg_start;
  map.arg_end = from.arg_end;
  map.env_start = from.env_start;
  map.env_end = from.env_end;
  map.auxv = reinterpret_cast<__u64*>(work.calls.room() + sizeof map);
  map.auxv_size = static_cast<__u32>(from.auxiliary.size());
  map.exe_fd = ~__u32{0};
  const ThreadName& leader = made.leader();
  ByteVector path(made.stored->program.size() + 1);
  std::memcpy(path.data(), made.stored->program.data(), made.stored->program.size());
  const std::uint64_t at_cwd = static_cast<std::uint64_t>(AT_FDCWD);
  const auto program =
      call_with(work, leader, path, {SYS_openat, {at_cwd, work.calls.room(), O_RDONLY}, 0});
  if (program) map.exe_fd = static_cast<__u32>(*program);
  ByteVector argument(sizeof map + from.auxiliary.size());
  std::memcpy(argument.data(), &map, sizeof map);
  std::memcpy(argument.data() + sizeof map, from.auxiliary.data(), from.auxiliary.size());
  const Call set{SYS_prctl, {PR_SET_MM, PR_SET_MM_MAP, work.calls.room(), sizeof map, 0}, 0};
  auto done = call_with(work, leader, argument, set);
  if (!done) {
    done.error().message = fmt::format("process {} ({}): {}", made.stored->id, made.stored->program,
                                       done.error().message);
    return fail(std::move(done.error()));
  }
  if (program) DIAPAUSE_TRY(work.calls.one(leader, {SYS_close, {*program}, 0}));
  return {};
}

}  // namespace

ContentsList contents_of_memory(const RestoreWork& work, std::uint32_t index) {
  ContentsList list;
  for (const StoredContents& one : work.contents) {
    if (one.process == 0 && one.shared == index) list.push_back(&one);
  }
  return list;
}

Status restore_memory(RestoreWork& work, Made& made) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<Mapping> mappings, places_of(made.leader().here));
  DIAPAUSE_TRY(end_sequences(work, made));
  DIAPAUSE_TRY(unmap_everything(work, made, mappings));
  DIAPAUSE_TRY(move_kernel_code(work, made, kernel_mappings(mappings)));
  DIAPAUSE_TRY(map_areas(work, made));
  DIAPAUSE_TRY_ASSIGN(made.instruction, find_call_instruction_of(made.leader().here));
  return describe_to_kernel(work, made);
}

}  // namespace diapause::process
