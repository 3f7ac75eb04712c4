#include "process/changes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <set>

namespace diapause::process {
namespace {

// Returns whether an area is anonymous memory of its process alone. Other kinds may change without
// a write through this mapping.
bool can_be_watched(const Area& area) {
  const bool has_file = !area.name.empty() && !area.name.starts_with('[');
  return area.kind == AreaKind::memory && area.shared == kNone && !has_file;
}

// Returns whether only the process itself writes to its memory. A device that has pinned pages
// writes to them without a fault.
bool is_written_by_itself_only(pid_t here) {
  const auto status = read_proc(fmt::format("/proc/{}/status", here));
  return status && number_in(*status, "VmPin", 10).value_or(1) == 0;
}

}  // namespace

void Changes::announce(FrozenJob& frozen) const {
  for (FrozenProcess& process : frozen.processes()) {
    const auto found = watched_.find(process.status.id);
    process.is_watched = found != watched_.end() && found->second.here == process.here;
  }
}

Result<Changes::Watched*> Changes::watched(FrozenProcess& frozen) {
  const auto known = watched_.find(frozen.status.id);
  if (known != watched_.end()) return &known->second;
  DIAPAUSE_TRY(frozen.calls ? Status{} : fail(Code::internal, "a process is not ready for calls"));
  DIAPAUSE_TRY_ASSIGN(ForeignUserfault made,
                      ForeignUserfault::open(*frozen.calls, frozen.leader().name,
                                             ForeignUserfault::Use::note_writes));
  return &watched_.emplace(frozen.status.id, Watched{frozen.here, std::move(made), {}})
              .first->second;
}

// Copies the numbers of pages that were not written since the last time, as far as they have one.
void Changes::carry(Range& range, const Extent& unwritten, const Ranges& before) {
  const std::uint64_t begin_of_range = range.end - range.changed_in.size() * kPageBytes;
  auto old = before.upper_bound(unwritten.begin);
  if (old != before.begin()) --old;
  for (; old != before.end() && old->first < unwritten.end; ++old) {
    const std::uint64_t begin = std::max(unwritten.begin, old->first);
    const std::uint64_t end = std::min(unwritten.end, old->second.end);
    if (begin >= end) continue;
    std::copy_n(old->second.changed_in.begin() +
                    static_cast<std::ptrdiff_t>((begin - old->first) / kPageBytes),
                (end - begin) / kPageBytes,
                range.changed_in.begin() +
                    static_cast<std::ptrdiff_t>((begin - begin_of_range) / kPageBytes));
  }
}

// If a part of the area was not watched yet, the look fails, and marks that other parts may hold
// from elsewhere are not believed.
Status Changes::note_area(Watched& watched, const Extent& area, const Ranges& before,
                          std::uint32_t number) {
  const auto unwritten = mark_unwritten(watched.here, area);
  DIAPAUSE_TRY(watched.userfault.watch(area));
  Range range{area.end, std::vector<std::uint32_t>((area.end - area.begin) / kPageBytes, number)};
  if (unwritten) {
    for (const Extent& one : *unwritten) carry(range, one, before);
  } else {
    DIAPAUSE_TRY(mark_unwritten(watched.here, area));
  }
  watched.ranges.emplace(area.begin, std::move(range));
  return {};
}

Status Changes::note(FrozenJob& frozen, const Dump& dump, std::uint64_t number) {
  if (!refusal_.empty()) return {};
  std::set<std::uint32_t> present;
  for (FrozenProcess& process : frozen.processes()) {
    const std::uint32_t id = process.status.id;
    const auto stored = std::ranges::find(dump.job.processes, id, &Process::id);
    if (stored == dump.job.processes.end()) continue;
    if (const auto known = watched_.find(id);
        known != watched_.end() && known->second.here != process.here) {
      watched_.erase(known);
    }
    auto found = watched(process);
    if (!found) {
      give_up(found.error().message);
      return {};
    }
    if (!is_written_by_itself_only(process.here)) {
      watched_.erase(id);
      continue;
    }
    Watched& watched = **found;
    present.insert(id);
    const Ranges before = std::move(watched.ranges);
    watched.ranges.clear();
    for (const Area& area : stored->areas) {
      if (!can_be_watched(area)) continue;
      const Status noted =
          note_area(watched, {area.begin, area.end}, before, static_cast<std::uint32_t>(number));
      if (noted || noted.error().os_errno != EBUSY) continue;
      return fail(
          Code::argument,
          fmt::format("the job holds what cannot be restored, and runs on without a checkpoint:\n"
                      "  process {} ({}) has memory at {:#x} watched by userfaultfd",
                      id, process.status.name, area.begin));
    }
    // After exec the process has another memory, and a userfaultfd is for one only.
    if (watched.ranges.empty()) watched_.erase(id);
  }
  std::erase_if(watched_, [&](const auto& one) { return !present.contains(one.first); });
  return {};
}

std::uint64_t Changes::last_change(std::uint32_t process, const Extent& memory) const {
  const auto found = watched_.find(process);
  if (found == watched_.end()) return kAlways;
  auto at = found->second.ranges.upper_bound(memory.begin);
  if (at == found->second.ranges.begin()) return kAlways;
  --at;
  const Range& range = at->second;
  if (memory.end > range.end || memory.begin >= memory.end) return kAlways;
  const auto begin = range.changed_in.begin() +
                     static_cast<std::ptrdiff_t>((memory.begin - at->first) / kPageBytes);
  return *std::max_element(
      begin, begin + static_cast<std::ptrdiff_t>((memory.end - memory.begin) / kPageBytes));
}

void Changes::give_up(std::string why) {
  refusal_ = std::move(why);
  watched_.clear();
}

}  // namespace diapause::process
