// Reads recorded failures from text: docs/formats/failure-trace.md. Hostile input is refused with
// the number of its line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "simulate/failures.hpp"

namespace diapause::simulate {

enum class TraceKind { own, los_alamos, failure_trace_archive };

struct FailureTrace {
  TraceKind kind = TraceKind::own;
  // The failures in the order of time, which begins at the first failure or, in `own`, at time 0.
  std::vector<RecordedFailure> failures;
  std::uint32_t nodes = 0;  // one more than the highest number of a node
  double length_s = 0;      // to the last failure
};

inline constexpr std::size_t kMostTraceLines = 20'000'000;

// Detects the kind by the names of the columns in the first line. `path` is used in messages.
// Code::config names file, line and column.
Result<FailureTrace> parse_failure_trace(std::string_view text, const std::string& path);

}  // namespace diapause::simulate
