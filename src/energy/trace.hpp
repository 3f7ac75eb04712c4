// A trace is energy over time as a file, which `diapause power record` writes and the meter
// "replay" plays (docs/formats/trace.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "energy/meter.hpp"
#include "energy/series.hpp"
#include "energy/total.hpp"

namespace diapause::energy {

struct TraceHead {
  std::string host;
  double started_unix_s = 0;
  double period_s = 0;
  std::vector<Zone> domains;  // without what only a meter needs to know
  Total total;
};

// A row is one moment. It has for each domain the energy since the beginning and the seconds that
// it stands for.
struct TraceRow {
  double time_s = 0;  // seconds since the beginning
  std::vector<Point> points;
  // By so much the joules of each domain may be off because samples are apart in time. Of a trace
  // that does not tell it is empty.
  std::vector<double> off_j = {};
};

// The lines come without their ends.
std::string trace_head_line(const TraceHead& head);
std::string trace_row_line(const TraceRow& row);

// Code::corrupt says what is wrong; the caller knows file and line.
Result<TraceHead> parse_trace_head(const std::string& line);
Result<TraceRow> parse_trace_row(const std::string& line, std::size_t domains);

}  // namespace diapause::energy
