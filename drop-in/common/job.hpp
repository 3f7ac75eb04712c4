// The checkpoints that a program takes under one name: an instance of Diapause, with regions that
// go by numbers.
//
// All functions throw Failed where the library returns an error, and std::runtime_error on the
// other ranks where one cannot do its part of what is collective. The libraries that we take the
// place of allow more than our interface does, and so does this class: memory may be freed as soon
// as a checkpoint call has returned, regions may be larger than what is stored for them, and each
// rank may restore other regions.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "diapause/diapause_mpi.h"

namespace diapause::drop_in {

struct Failed : std::runtime_error {
  explicit Failed(int of_library) : std::runtime_error(diapause_last_error()), status(of_library) {}
  int status;  // a diapause_status
};

// Where a block lies in an array of all ranks, for the slowest dimension first.
struct Place {
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> global_shape;
  std::vector<std::uint64_t> start;
  bool operator==(const Place&) const = default;
};

struct Block {
  void* data = nullptr;
  std::uint64_t count = 0;
  std::uint64_t element_bytes = 1;
  diapause_type type = DIAPAUSE_BYTES;
  // Empty: no place is recorded. Nor is one of more dimensions than the library takes.
  Place place = {};

  std::uint64_t bytes() const { return count * element_bytes; }
  bool operator==(const Block&) const = default;
};

using Blocks = std::map<std::string, Block>;  // by the names of regions

// The version that was taken or restored last.
struct LastVersion {
  std::optional<std::uint64_t> number;
  int level = 0;
  bool is_ours = false;    // it was taken here, and not restored
  bool has_files = false;  // whether it has files on some rank
};

class Job {
 public:
  // Opens the job. With MPI_COMM_NULL it consists of this process alone. Collective over `comm`.
  Job(MPI_Comm comm, const std::string& name, const std::string& settings);
  // Opens it where users begin anew by removing the directories that they know of. Where none of
  // these has the job on any node, what memory still holds of it is removed, too.
  Job(MPI_Comm comm, const std::string& name, const std::string& settings,
      const std::vector<std::string>& directories);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  // Waits for what is in flight and keeps everything.
  ~Job();

  // The communicator of the ranks that compute; MPI_COMM_NULL on a dedicated rank.
  MPI_Comm program_comm() const;

  // A dedicated rank works here until the others close. Collective.
  void close();
  // Removes all versions. Collective.
  void finish();

  // Takes a checkpoint of exactly these blocks. Where the job has too few nodes for levels 2 and 3,
  // level 1 is taken instead. Where nothing advances the version between the program's calls (its
  // MPI was initialised without MPI_THREAD_MULTIPLE, and the job has several nodes), it waits until
  // that level holds. Collective.
  void checkpoint(const Blocks& blocks, std::uint64_t version, int level);
  // begin_files() returns an empty directory for files of the next version. The other call takes a
  // checkpoint of those files and these blocks, if the files are valid on all ranks. Collective.
  std::string begin_files();
  void checkpoint_files(const Blocks& blocks, std::uint64_t version, int level, bool is_valid);
  // Takes the same if one is due by the schedule, and returns its level, or 0 if none was due.
  // `blocks` is called if one is due. Collective.
  int snapshot(const std::function<Blocks()>& blocks, std::uint64_t version);
  // Waits until the last version holds at the level that was asked for, or at `level`.
  void wait();
  void wait_for(int level);
  // take_last_again() takes the last version again, with its files if any were taken here, under
  // this number, or the next one, at this level. Collective.
  const LastVersion& last() const { return last_; }
  bool has_last() const { return last_.number.has_value(); }
  void take_last_again(int level) { take_last_again(level, last_.number.value_or(0) + 1); }
  void take_last_again(int level, std::uint64_t version);
  // Puts a version that holds nothing in the place of one that failed, and goes on as if `before`
  // were still the last. The next version may have the same number. Collective.
  void withdraw(std::uint64_t version, const LastVersion& before);
  bool is_done() const;

  // Returns the newest version at or below `at_most` that can be had in full, which is opened for
  // reading, or nothing if there is none. Collective.
  std::optional<diapause_restart_info> find(std::uint64_t at_most);
  // Restores the redundancy that the open version has lost, and opens it again. Collective.
  void restore_redundancy();
  // Opens this version, if it is not open already. Collective.
  diapause_restart_info open(std::uint64_t version);
  bool is_open() const { return opened_.has_value(); }
  // Opens the version that was taken or opened last. Collective.
  void open_last();
  // Ends the reading. Collective.
  void end_reading();
  // Returns the number of the newest version that exists, damaged or not, or 0 if there is none.
  // Collective.
  std::uint64_t newest();

  // These tell of the open version: the size of a region, or nothing if it is not stored; all
  // names; and a copy of the data.
  std::optional<std::uint64_t> stored_bytes(const std::string& region) const;
  std::vector<std::string> stored_names() const;
  void read(const std::string& region, void* to);
  // The data itself, until unmap().
  void* map(const std::string& region);
  void unmap(void* data);
  // Returns the directory with the files of that version. Collective.
  std::string restore_files();

 private:
  Job() = default;
  void begin(MPI_Comm comm, const std::string& name, const std::string& settings);
  // Calls `body`, which must not be collective over program_comm(). If it throws on one rank, all
  // throw: none goes on alone to what is collective. Collective.
  void on_all(const std::function<void()>& body);
  void protect(const Blocks& blocks);
  void protect_here(const Blocks& blocks);
  using Taking = int (*)(diapause_t*, std::uint64_t version, int level, diapause_checkpoint_info*);
  void checkpoint_by(Taking taking, std::uint64_t version, int level);
  int deepest_possible(int level);
  Blocks map_last();
  void note(std::uint64_t version, int level);
  bool move_restored_files();
  void end_reading_if_open();

  diapause_t* instance_ = nullptr;
  bool is_single_ = false;  // it was opened without a communicator
  Blocks protected_;        // what the instance has registered
  std::optional<diapause_restart_info> opened_;
  LastVersion last_;
  bool is_first_ = true;  // whether this is the first of its ranks
  bool has_told_of_few_nodes_ = false;
};

}  // namespace diapause::drop_in
