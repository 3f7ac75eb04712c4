#include "process/families.hpp"

#include <algorithm>
#include <set>

namespace diapause::process {
namespace {

bool leads_its_session(const Process& process) { return process.session == process.id; }

const Process* process_of(const Job& job, std::uint32_t id) {
  const auto found = std::ranges::find(job.processes, id, &Process::id);
  return found == job.processes.end() ? nullptr : &*found;
}

}  // namespace

// A process that began a session was born into another one, in which its older children still are.
std::optional<std::uint32_t> birth_session(const Job& job, const Process& process) {
  if (!leads_its_session(process)) return process.session;
  for (const Process& child : job.processes) {
    if (child.parent != process.id) continue;
    const auto wanted = birth_session(job, child);
    if (wanted && *wanted != process.id) return wanted;
  }
  return std::nullopt;
}

bool is_born_before(const Process& parent, const std::optional<std::uint32_t>& wanted) {
  return leads_its_session(parent) && wanted && *wanted != parent.id;
}

bool has_session_leader(const Job& job, std::uint32_t session) {
  const Process* leader = process_of(job, session);
  return leader != nullptr && leader->session == session;
}

bool has_group_leader(const Job& job, std::uint32_t group) {
  const Process* leader = process_of(job, group);
  return leader != nullptr && leader->group == group;
}

std::uint32_t unused_id(const Job& job) {
  std::set<std::uint32_t> used;
  for (const Process& process : job.processes) {
    used.insert({process.id, process.group, process.session});
    for (const Thread& thread : process.threads) used.insert(thread.id);
  }
  std::uint32_t id = 2;
  while (used.contains(id)) ++id;
  return id;
}

std::vector<FamilyTrouble> troubles_of_families(const Job& job) {
  std::vector<FamilyTrouble> troubles;
  for (const Process& process : job.processes) {
    const std::string session = std::to_string(process.session),
                      group = std::to_string(process.group);
    const Process* parent = process_of(job, process.parent);
    const auto wanted = birth_session(job, process);
    if (parent != nullptr && wanted) {
      const bool is_possible = leads_its_session(*parent)
                                   ? *wanted == parent->id || wanted == birth_session(job, *parent)
                                   : *wanted == parent->session;
      if (!is_possible) {
        troubles.push_back({process.id, "is in session " + session +
                                            ", which its parent does not know: it is the child "
                                            "of one that has ended, and was taken over"});
      }
    }
    const Process* of_session = process_of(job, process.session);
    if (process.session > 1 && of_session != nullptr && of_session->session != process.session) {
      troubles.push_back(
          {process.id, "is in session " + session + ", whose number another process has"});
    }
    const Process* of_group = process_of(job, process.group);
    if (process.group > 1 && of_group != nullptr && of_group->group != process.group) {
      troubles.push_back(
          {process.id, "is in the process group " + group + ", whose first process has left it"});
    }
  }
  return troubles;
}

}  // namespace diapause::process
