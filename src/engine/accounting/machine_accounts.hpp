// The accounts of energy that machines keep of a job, as one of them all.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

namespace diapause::engine {

// Each is an energy line of docs/formats/ledger.md for its machine alone, in the order of the ranks: without `machines`
// and `unmetered`, and with `nth` in its phases, which tells those of one name in one version apart.
// Joules are added up, of seconds the most are taken. The joules of a phase that one machine does not know are not
// known of all, and what the others know of it counts among the program's.
nlohmann::json add_up(std::span<const nlohmann::json> machines);

}  // namespace diapause::engine
