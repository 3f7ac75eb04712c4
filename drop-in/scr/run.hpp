// A program between SCR_Init and SCR_Finalize.
//
// Functions throw std::runtime_error where SCR returns something else than SCR_SUCCESS. Collective
// ones fail on all ranks or on none.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "../common/job.hpp"
#include "configuration.hpp"
#include "restarts.hpp"

namespace diapause::drop_in {

class ScrRun {
 public:
  explicit ScrRun(const ScrParameters& of_program);
  ScrRun(const ScrRun&) = delete;
  ScrRun& operator=(const ScrRun&) = delete;

  // Closes the run. If checkpoints are to get to level 4 at all, it takes the last checkpoint again
  // at level 4 before. Collective.
  void close();

  std::string route(const std::string& name);

  void start_output(const std::string& name, int flags);
  void complete_output(bool is_valid);
  bool is_checkpoint_due();
  bool is_near_the_end();

  // The name of the checkpoint that a restart would read; none if there is none.
  std::optional<std::string> candidate();
  std::string start_restart();
  void complete_restart(bool is_valid);

  // Lets the next restart, of this run or a later one, begin with the newest checkpoint of that
  // name. Without one, it says so and changes nothing.
  void restart_from(const std::string& name);
  void drop(const std::string& name);
  void remove(const std::string& name);

 private:
  struct Output {
    std::string name;
    bool is_checkpoint;
    bool is_output;
    std::string directory;  // this rank's directory in the version; empty if it is no checkpoint
    std::set<std::string> files;  // paths below the prefix directory
    double started_s;
  };
  struct Checkpoint {
    std::uint64_t version;
    std::string name;
  };

  void check_start(const std::string& name, int flags) const;
  // Throws on all ranks if `problem` is not empty on one of them.
  void agree(const std::string& problem) const;
  std::uint64_t of_rank_0(std::uint64_t value) const;
  // What later runs have to know lies in files of the job, in the hidden directory.
  std::string note_path(const char* kind) const;
  std::string shared_note(const char* kind) const;
  void save_note(const char* kind, const std::string& text) const;
  void make_last_safe();
  void share_dropped();
  void save_dropped() const;
  void begin_with(const Checkpoint& checkpoint);

  // The path of a file below the prefix directory; nothing if it lies elsewhere, or an error.
  std::optional<std::string> below_prefix(const std::string& name) const;
  std::string file_of(const std::string& name) const;
  std::filesystem::path path_of_output(const std::string& name);
  std::filesystem::path path_of_restart(const std::string& name) const;
  std::filesystem::path at_prefix(const std::string& file) const;
  std::vector<std::filesystem::path> at_prefix(const std::set<std::string>& files) const;
  void check_complete(const Output& output, bool is_valid) const;
  std::string shared_file_of(const Output& output) const;
  void copy_out(const Output& output) const;
  void store(const Output& output);
  void take(const Output& output);
  void withdraw(std::uint64_t version, const LastVersion& before);
  bool is_due_here(double now_s) const;
  bool is_near_the_end_here() const;

  std::string stored_name();
  std::optional<Checkpoint> newest(const std::string& wanted);

  ScrConfiguration configuration_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  std::unique_ptr<Job> job_;
  std::uint64_t last_version_ = 0;
  std::uint64_t checkpoints_ = 0;  // number of checkpoints of this run

  std::optional<Output> output_;
  // Files that this rank has at their own paths, by datasets.
  std::map<std::string, std::set<std::string>> outputs_;

  bool is_restart_looked_for_ = false;  // since the last thing that changes the candidate
  std::optional<Checkpoint> candidate_;
  std::string restart_directory_;  // not empty between the start of a restart and its end
  std::set<std::string> dropped_;
  ScrRestarts restarts_;

  std::uint64_t need_calls_ = 0;
  double last_end_s_ = 0;
  double cost_s_ = 0;  // seconds of all checkpoints of this run
};

}  // namespace diapause::drop_in
