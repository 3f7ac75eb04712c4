// Finds the ledgers of jobs.
#pragma once

#include <string>

#include "base/result.hpp"
#include "cli/arguments.hpp"

namespace diapause::cli {

// Returns the path of the ledger of the job of this name in the global tier. A name with a slash,
// or with the ending of a ledger, is a path.
Result<std::string> ledger_of(const std::string& name, const Places& places);

}  // namespace diapause::cli
