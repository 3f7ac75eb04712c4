// Versions of global datasets, which jobs of other numbers of ranks can read. They take the place
// of FTI's files of variate processor recovery. docs/decisions/0057-global-datasets-of-fti.md.
#pragma once

#include <mpi.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../common/job.hpp"
#include "configuration.hpp"
#include "datasets.hpp"

namespace diapause::drop_in {

// All functions throw std::runtime_error, and all but stored_lengths() are collective over the
// communicator.
class SharedVersions {
 public:
  SharedVersions(MPI_Comm comm, const FtiSharedConfiguration& configuration);
  ~SharedVersions();
  SharedVersions(const SharedVersions&) = delete;
  SharedVersions& operator=(const SharedVersions&) = delete;

  // Takes a version of these parts, and returns when the global directory has it.
  void take(const std::vector<DatasetPart>& parts);

  // Opens the newest version, of which job ever. Returns false if there is none.
  bool find();
  // Reads these parts from it. All of them are stored, or nothing is read.
  void read(const std::vector<DatasetPart>& parts);
  // Returns the lengths of a dataset in it.
  std::vector<std::uint64_t> stored_lengths(const std::string& dataset) const;

 private:
  struct StoredPiece {
    int rank;
    std::size_t number;  // among those of its rank
    Box box;
  };
  struct StoredDataset {
    std::vector<std::uint64_t> lengths;
    std::uint64_t element_bytes;
    std::vector<StoredPiece> pieces;
  };
  // What this rank has stored, in the order of its pieces.
  struct OwnPiece {
    std::string region;
    std::string dataset;
    Box box;
  };
  struct Request {
    StoredPiece piece;
    Box part;                   // what is wanted of it
    const DatasetPart* wanted;  // where it is to go
  };

  // A part of an own piece that another rank has asked for.
  struct Delivery {
    int rank;
    std::size_t number;
    Box part;
  };

  std::string note_path() const;
  int noted_ranks() const;
  void note_ranks() const;
  void open(int ranks);
  void read_catalogue();
  void add_to_catalogue(const std::string& text, int rank);
  std::vector<Request> requests_for(const DatasetPart& wanted) const;
  void exchange(const std::vector<Request>& requests);
  std::vector<Delivery> deliveries_for(const std::vector<std::vector<std::uint64_t>>& asked) const;

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int ranks_ = 0;
  FtiSharedConfiguration configuration_;
  std::unique_ptr<Job> job_;  // of the first job_ranks_ ranks; null on others
  int job_ranks_ = 0;         // 0 while no job is open
  std::map<std::string, StoredDataset> catalogue_;
  std::vector<OwnPiece> own_;
};

}  // namespace diapause::drop_in
