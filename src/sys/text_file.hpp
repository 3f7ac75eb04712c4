// Small text files that a user wrote.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

// The whole file; links are followed, anybody may own it. Errors name the path; more than 1 MiB is an error.
Result<std::string> read_text_file(Kernel& kernel, const std::string& path);

}  // namespace diapause::sys
