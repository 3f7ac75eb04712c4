// Times and sizes as people type and read them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace diapause::cli {

// Parses "90", "90s", "15min", "3h", "2.5d", "1w", "15y" (of 365.25 days). Returns seconds, at
// least 0 and at most 1e12.
Result<double> parse_time_s(std::string_view text);

// Parses "1000", "500MB", "2GiB", "10PB". Returns bytes, at most 1e21.
Result<double> parse_size_bytes(std::string_view text);

// Parses a number of at least 0.
Result<double> parse_amount(std::string_view text);

// Returns text such as "12.3 s", "4.5 min", "2.1 h", "3.4 d", "15 y", with at most so many digits
// and no 0 behind the last; "never" for a number that is not finite.
std::string duration_text(double seconds, int digits = 3);

}  // namespace diapause::cli
