// Combines the energy accounts of several machines of a job into one.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

namespace diapause::engine {

// Each of `machines` is an energy line of docs/formats/ledger.md for its machine alone, in the
// order of the ranks: without `machines` and `unmetered`, and with `nth` in its phases, which tells
// phases of one name in one version apart. Joules are added up; of seconds the maximum is taken. If
// one machine does not know the joules of a phase, the phase has none, and what the others know of
// it is counted for the program.
nlohmann::json add_up(std::span<const nlohmann::json> machines);

}  // namespace diapause::engine
