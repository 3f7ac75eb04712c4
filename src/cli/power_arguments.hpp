// The arguments of `diapause power`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace diapause::cli {

// Values that override the configuration.
struct MeterChoice {
  std::string config;
  std::vector<std::string> meters;
  std::optional<std::uint32_t> period_ms;
  std::optional<std::string> profile;
};

struct PowerArguments {
  MeterChoice choice;
  bool once = false;
  bool json = false;
  double interval_s = 1;
  std::string openmetrics;  // a file; empty for none
};

struct PowerRecordArguments {
  MeterChoice choice;
  std::string file;
  double seconds = 0;  // 0: record until it is stopped
};

struct PowerAlignArguments {
  std::string meter;   // the CSV file of an external meter
  std::string trace;   // a trace of the same time
  std::string column;  // a column of the CSV file; empty for the first one
  double within_s = 600;
};

struct PowerCalibrateArguments {
  MeterChoice choice;
  std::string file;       // the file of the profile; empty for standard output
  std::string samples;    // file with the samples of several runs; empty: only those of this run
  std::string directory;  // the directory in which the disk is written to; if it is empty, nothing
                          // is written
  double step_s = 3;
  bool validate = false;  // measure again, and write into the profile how far it is off
};

}  // namespace diapause::cli
