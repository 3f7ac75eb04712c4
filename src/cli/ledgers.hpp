// Finds the ledgers of jobs.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "cli/arguments.hpp"

namespace diapause::cli {

// Returns the path of the ledger of the job of this name in the global tier. A name with a slash,
// or with the ending of a ledger, is a path.
Result<std::string> ledger_of(const std::string& name, const Places& places);

// Calls `each` with every line of a ledger, once where it is there twice. Returns how many were
// left out for that.
Result<std::size_t> read_ledger(const std::string& path,
                                const std::function<void(std::string_view)>& each);

}  // namespace diapause::cli
