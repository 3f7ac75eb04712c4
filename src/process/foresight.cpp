#include "process/foresight.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

namespace diapause::process {
namespace {

constexpr std::uint64_t kLeastPages = 32 * kMiB / kPageBytes;

bool is_same_place(const Mapping& one, const Mapping& other) {
  return one.begin == other.begin && one.end == other.end && one.protection == other.protection &&
         one.is_shared == other.is_shared && one.offset == other.offset &&
         one.device == other.device && one.inode == other.inode && one.name == other.name;
}

// Gives flags to all places. Returns false if one of them is not among those with flags.
bool give_flags(std::vector<Mapping>& places, const std::vector<Mapping>& flagged) {
  auto at = flagged.begin();
  for (Mapping& place : places) {
    at = std::find_if(at, flagged.end(),
                      [&](const Mapping& one) { return one.begin >= place.begin; });
    if (at == flagged.end() || !is_same_place(*at, place)) return false;
    place.flags = at->flags;
  }
  return true;
}

// Returns the flags without those that a copy of a process does not have (locked, and watched by a
// userfaultfd) and the one that any reader of soft-dirty bits changes.
std::string flags_of_copies(const Mapping& mapping) {
  std::string kept;
  for (std::size_t at = 0; at + 2 <= mapping.flags.size(); at += 3) {
    const std::string_view flag = std::string_view(mapping.flags).substr(at, 2);
    constexpr std::string_view kOthers[] = {"lo", "lf", "um", "ui", "uw", "sd"};
    if (std::ranges::find(kOthers, flag) == std::end(kOthers)) kept += flag;
  }
  return kept;
}

}  // namespace

Foresight Foresight::of(const std::vector<pid_t>& processes) {
  Foresight made;
  for (const pid_t process : processes) {
    if (resident_pages_of(process).value_or(0) < kLeastPages) continue;
    auto mappings = process::mappings_of(process);
    if (mappings) made.foreseen_[process] = std::move(*mappings);
  }
  return made;
}

// A copy does not tell which memory is locked.
Result<std::vector<Mapping>> Foresight::mappings_of(pid_t process, const ProcStatus& status) {
  const auto foreseen = foreseen_.find(process);
  if (foreseen == foreseen_.end() || status.locked_kib != 0) return process::mappings_of(process);
  DIAPAUSE_TRY_ASSIGN(std::vector<Mapping> places, places_of(process));
  if (!give_flags(places, foreseen->second)) return process::mappings_of(process);
  used_[process] = places;
  return places;
}

// A copy has no memory that a fork leaves out, and may have parts only of other mappings.
Status Foresight::confirm(pid_t process, pid_t now) const {
  const auto used = used_.find(process);
  if (used == used_.end()) return {};
  DIAPAUSE_TRY_ASSIGN(const std::vector<Mapping> found, process::mappings_of(now));
  auto at = found.begin();
  for (const Mapping& mapping : used->second) {
    while (at != found.end() && at->begin < mapping.begin) ++at;
    bool is_confirmed = mapping.has("dc") && (at == found.end() || at->begin >= mapping.end);
    for (bool is_first = true; at != found.end() && at->begin < mapping.end; ++at) {
      const bool is_same = flags_of_copies(*at) == flags_of_copies(mapping);
      is_confirmed = is_same && (is_first || is_confirmed);
      is_first = false;
    }
    if (!is_confirmed) {
      return fail(Code::again, fmt::format("memory at {:#x} of a process got other properties "
                                           "while it was looked at",
                                           mapping.begin));
    }
  }
  return {};
}

}  // namespace diapause::process
