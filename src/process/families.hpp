// Finds out how the sessions, process groups and parents of a job can be made again. Sessions and
// groups outlive the processes that began them, and a process may have lost its parent. The
// functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "process/state.hpp"

namespace diapause::process {

// Returns the session that a process has to be born into, so that it and its children can have
// theirs. Returns nullopt if any session will do.
std::optional<std::uint32_t> birth_session(const Job& job, const Process& process);

// Returns whether a child that has to be born into `wanted` is made before its parent begins a
// session of its own.
bool is_born_before(const Process& parent, const std::optional<std::uint32_t>& wanted);

// Returns whether a session or group has one of its members as its leader.
bool has_session_leader(const Job& job, std::uint32_t session);
bool has_group_leader(const Job& job, std::uint32_t group);

// Returns an id that no process of the job has.
std::uint32_t unused_id(const Job& job);

struct FamilyTrouble {
  std::uint32_t process = 0;
  std::string what;  // as the end of a sentence that begins with the process
};
// Returns what cannot be made again.
std::vector<FamilyTrouble> troubles_of_families(const Job& job);

}  // namespace diapause::process
