// Sessions and process groups outlive the processes that began them, and a process may have lost its parent: what has
// to be known to make such a family again. Pure: nothing is asked of the kernel here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "process/state.hpp"

namespace diapause::process {

// The session that a process has to be born into, so that it and its children can have theirs; nothing: any will do.
std::optional<std::uint32_t> birth_session(const Job& job, const Process& process);

// Whether a child that has to be born into `wanted` is made before its parent begins a session of its own.
bool is_born_before(const Process& parent, const std::optional<std::uint32_t>& wanted);

// Whether a session or group has one of its members as its leader.
bool has_session_leader(const Job& job, std::uint32_t session);
bool has_group_leader(const Job& job, std::uint32_t group);

// An id that is none of the job's.
std::uint32_t unused_id(const Job& job);

struct FamilyTrouble {
  std::uint32_t process = 0;
  std::string what;  // as the end of a sentence that begins with the process
};
// What cannot be made again.
std::vector<FamilyTrouble> troubles_of_families(const Job& job);

}  // namespace diapause::process
