// FTI's configuration file, in our terms; and what is written back to it.
#pragma once

#include <string>
#include <vector>

#include "fti.h"

namespace diapause::drop_in {

// Where versions of global datasets lie, which any number of ranks can read.
struct FtiSharedConfiguration {
  bool is_enabled = false;
  std::string directory;
  std::string prefix;
  std::string settings;  // text for Diapause
};

struct FtiConfiguration {
  std::string settings;    // text for Diapause
  std::string local_dir;   // value of `ckpt_dir`
  std::string global_dir;  // the directory that `glbl_dir` leads to
  int verbosity = 2;       // 1: everything, 2: what happens, 3: errors only
  // 0: a fresh start, 1: a restart, 2: a restart from what was kept, 3: one that begins with the
  // global datasets of a job of any number of ranks.
  int failure = 0;
  std::string execution_id;  // id of the run that is continued
  bool has_heads = false;
  bool keeps_heads_alive = false;
  bool keeps_last = false;
  bool keeps_all_of_level4 = false;
  bool has_staging = false;
  std::vector<std::string> remarks;  // for the log: keys that change nothing here
  FtiSharedConfiguration shared;

  struct {
    int rank = 0;
    int index = 0;
    int position = 0;
    int number = 0;
    int frequency_s = 0;
  } flips;
};

// Reads the configuration for a job of so many ranks. Throws std::runtime_error, which names the
// key that cannot be used.
FtiConfiguration read_fti_configuration(const std::string& path, int ranks);

// Returns the answer of FTI_GetConfig. Throws std::runtime_error, which names what cannot be read.
FTIT_allConfiguration tell_fti_configuration(const std::string& path);

// Writes `failure` and `exec_id` of the section `restart`, so that the next run begins accordingly;
// everything else in the file stays. The file is replaced whole. Throws std::runtime_error.
void write_fti_restart(const std::string& path, int failure, const std::string& execution_id);

}  // namespace diapause::drop_in
