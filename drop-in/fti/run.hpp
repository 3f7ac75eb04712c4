// One run of a program that uses FTI, from FTI_Init to FTI_Finalize: what it has registered, and
// its job.
#pragma once

#include <mpi.h>

#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../common/job.hpp"
#include "configuration.hpp"
#include "datasets.hpp"
#include "fti.h"
#include "shared.hpp"
#include "types.hpp"

namespace diapause::drop_in {

struct FtiVariable {
  Block block;
  std::string name;  // the name that the program gave; empty if it is known by its number only
  // What FTI_SetAttribute has told: another name, which is stored if there is no other, and the
  // lengths of the slowest dimension first.
  std::string label = {};
  std::vector<std::uint64_t> lengths = {};
};

// All functions throw std::runtime_error, Failed among them. Those marked collective are so over
// the ranks that compute.
class FtiRun {
 public:
  // Begins a run. Collective over `comm`.
  FtiRun(const std::string& configuration_path, MPI_Comm comm);

  MPI_Comm comm() const { return comm_; }
  bool is_head() const { return is_head_; }
  const FtiConfiguration& configuration() const { return configuration_; }
  // A head calls this; it returns when all ranks of its node have finished.
  void serve();

  // Finds the version to recover. Returns false if there should be one and is none. Collective.
  bool find();
  int status() const { return status_; }

  FtiTypes types;
  GlobalDatasets datasets;

  void protect(int id, void* data, std::int64_t count, fti_id_t type);
  FtiVariable& variable(int id);
  int id_of(const std::string& name) const;  // -1 if there is none
  int id_for(const std::string& name);

  // Takes a checkpoint, and returns FTI_DONE, or FTI_SCES for one of global datasets. Collective.
  int checkpoint(int id, int level);
  int snapshot();  // FTI_SCES, or FTI_DONE if one was taken
  void finish();

  // Recovers everything. Collective where global datasets are recovered, and where the run has
  // taken a checkpoint.
  void recover();
  // Recovers variables one by one. The first of the calls is collective where the last one is.
  void begin_variables();
  void recover_variable(int id);
  void end_variables() { recovered_.clear(); }
  // Takes the lengths of a global dataset from the version that is recovered.
  void recover_lengths(int dataset);
  bool can_recover() const { return job_->is_open(); }
  std::uint64_t stored_bytes(int id) const;  // 0 if nothing is stored
  void* resize(int id, void* data);

  void begin_in_parts(int id, int level);
  void add_part(int id);
  void end_in_parts();  // collective
  bool is_in_parts() const { return parts_.has_value(); }

  // Says whether a bit was flipped.
  bool flip_bit(int id);

  std::string stage_directory() const;
  int send_file(const std::string& from, const std::string& to);
  int stage_status(int number) const;

 private:
  // A variable as it was once, and its bytes, to which the block points.
  struct Copy {
    explicit Copy(const Block& of) : bytes(of.bytes()), block(of) { block.data = bytes.data(); }
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;
    std::vector<char> bytes;
    Block block;
  };
  using Copies = std::map<int, Copy>;  // by the number of the variable
  struct Parts {
    int id;
    int level;
    Copies data;
  };
  struct Stored {
    std::string region;
    std::string name;
    std::uint64_t bytes;
  };

  void open(MPI_Comm comm);
  void open_new(MPI_Comm comm);
  std::string free_execution_id(MPI_Comm comm, std::time_t& from) const;
  int take(const Copies& copies, int id, int level);
  int take_shared(const Copies& copies, int id);
  bool recovers_shared() const { return status_ == 3; }
  bool find_shared();
  void tell_why(const std::string& why) const;
  std::vector<DatasetPart> parts(const Copies& copies);
  void note_taken(const Blocks& blocks);
  static Block placed(const FtiVariable& variable);
  Blocks blocks() const;
  static void check_has_memory(int id, const FtiVariable& variable);
  void check_fits(int id, const FtiVariable& variable) const;
  void check_staging() const;
  std::filesystem::path stage_folder() const;
  void read_stored_names();
  void set_restart(int failure);
  void tell(const std::string& text) const;

  std::string path_;
  FtiConfiguration configuration_;
  std::string execution_id_;
  std::unique_ptr<Job> job_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int world_rank_ = 0;
  int rank_ = 0;
  bool is_head_ = false;
  int status_ = 0;
  bool is_noted_ = false;  // in the configuration file: there is something to recover
  std::uint64_t next_version_ = 1;
  std::map<int, FtiVariable> variables_;
  std::map<int, Stored> stored_;
  std::optional<Parts> parts_;
  std::unique_ptr<SharedVersions> shared_;  // null until it is needed
  Copies recovered_;                        // of global datasets, for recover_variable()
  int flipped_ = 0;
  double last_flip_s_ = 0;
  std::vector<bool> sent_;  // by number: whether the file has arrived
};

}  // namespace diapause::drop_in
