// Where the ledgers of jobs lie.
#pragma once

#include <string>

#include "base/result.hpp"
#include "cli/arguments.hpp"

namespace diapause::cli {

// Path of the ledger of the job of this name in the global tier; what has a slash, or the ending of a ledger, is a
// path.
Result<std::string> ledger_of(const std::string& name, const Places& places);

}  // namespace diapause::cli
