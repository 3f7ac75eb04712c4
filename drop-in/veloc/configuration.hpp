// VELOC's configuration file, in our terms.
#pragma once

#include <string>
#include <vector>

namespace diapause::drop_in {

struct VelocConfiguration {
  static constexpr long kNever = -1;

  std::string settings;                  // text for Diapause
  std::vector<std::string> directories;  // those that the file names
  bool has_persistent = false;
  long persistent_interval_s = 0;    // 0 stands for every checkpoint; it may be kNever
  long ec_interval_s = 0;            // the same holds here
  std::vector<std::string> remarks;  // on what has no meaning here
};

// A variable VELOC_<KEY> of the environment stands above a key of the file; `path` may be empty.
// Throws std::runtime_error that names what cannot be used.
VelocConfiguration read_veloc_configuration(const std::string& path);

}  // namespace diapause::drop_in
