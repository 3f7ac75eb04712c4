// SCR's parameters, in our terms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parameters.hpp"

namespace diapause::drop_in {

struct ScrConfiguration {
  // A scheme of redundancy, which is used for every so many checkpoints.
  struct Scheme {
    long interval = 1;
    int level = 1;
  };

  std::string prefix;    // an absolute path, in its shortest form
  std::string hidden;    // the directory `.scr` in it
  std::string job_name;  // name of the job in Diapause
  std::string settings;  // text for Diapause
  // Those whose removal makes users expect a fresh start; none where they expect the cache to stay.
  std::vector<std::string> directories;
  std::vector<Scheme> schemes;
  // Checkpoints from one of level 4 to the next; 0: none for its number alone.
  long flush_every = 0;
  long need_every = 0;                 // calls of SCR_Need_checkpoint; 0: does not count
  long need_after_s = 0;               // 0: does not count
  double need_overhead_percent = 0;    // 0: does not count
  long halt_before_s = 0;              // 0: no end is looked at
  std::optional<std::string> current;  // the checkpoint that a restart begins with
  std::vector<std::string> remarks;    // on what has no meaning here

  // Returns the level of the checkpoint of this number, counted from 1.
  int level_of(std::uint64_t number) const;
};

// Throws std::runtime_error that names what cannot be used.
ScrConfiguration scr_configuration(const ScrSettings& settings);

}  // namespace diapause::drop_in
