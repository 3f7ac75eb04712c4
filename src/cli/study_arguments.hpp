// The arguments of `diapause study`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace diapause::cli {

struct StudyCompressArguments {
  std::vector<std::string> fields;  // FILE:TYPE:SHAPE, or FILE.npy; empty: the built-in set
  std::string output;
  std::vector<std::string> codecs, bounds, clocks;
  std::string actuator = "none";
  std::string machine = "m510-broadwell";
  std::string directory;  // the directory to write to; empty for one below `output`
  double seconds = 0.3;
  int repetitions = 3;
  double dump_gb = 1;  // size of a dump of the fields
  bool is_dry_run = false;
};

// One field with all codecs, bounds and clocks. Only `study compress` starts this verb.
struct StudyEncodeArguments {
  std::string file;
  std::string type;                 // float32 or float64
  std::vector<std::uint64_t> dims;  // slowest first
  std::vector<std::string> codecs;
  std::vector<double> bounds, clocks;
  std::string actuator;
  std::string directory;
  double seconds = 0;   // least duration of each measurement
  int repetitions = 1;  // least number of passes
  // Instead of measuring each step at each clock: compresses and writes so many bytes of the field,
  // at the first and the last of the clocks.
  std::uint64_t dump_bytes = 0;
};

// A study that starts programs: its options as typed, for the Python package.
struct StudyRunsArguments {
  std::string name;
  std::vector<std::string> words;
};

}  // namespace diapause::cli
