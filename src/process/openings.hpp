// Opens all files and shared memories of a stored job again in this process. Processes that are
// made from it inherit them, and so share them as they did.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "process/other_nodes.hpp"
#include "process/relocation.hpp"
#include "process/state.hpp"

namespace diapause::process {

// Says where a part of the contents belongs.
struct StoredContents {
  std::uint32_t process = 0;     // 0 for a shared memory
  std::uint32_t shared = kNone;  // its index
  std::uint64_t offset = 0;      // address, or offset in the shared memory
  std::uint64_t bytes = 0;
  std::size_t region = 0;  // the region by which it is read
};
// Takes a piece of the contents: its offset from their beginning, and its bytes, which are sound.
// It is called from several threads at once.
using TakePiece = std::function<Status(const StoredContents&, std::uint64_t offset, ByteView)>;
// Reads these contents, in any order, and gives each piece to `take`.
using ContentsList = std::vector<const StoredContents*>;
using ReadContents = std::function<Status(const ContentsList&, const TakePiece&)>;
// Returns the contents of each memory that processes share.
std::vector<ContentsList> contents_of_memories(const Job& job,
                                               const std::vector<StoredContents>& contents);

// The opening talks to its user, and to the other nodes of the job (null if there are none).
struct OpeningEnvironment {
  const LogSink& log;
  OtherNodes* others = nullptr;
  Relocation& relocation;  // learns which ports have changed
};

class Openings {
 public:
  // Opens everything. Code::mismatch names a file that does not exist any more or is shorter. Ports
  // that have to change are changed in `job`.
  static Result<Openings> open(Job& job, const std::vector<StoredContents>& contents,
                               const ReadContents& read, const OpeningEnvironment& environment);
  Openings(Openings&& other) noexcept;
  Openings& operator=(Openings&&) = delete;
  ~Openings();  // closes what was not closed
  // Closes everything here. It stays open in the processes that have inherited it.
  void close_all();

  // These return numbers in this process, none of which the job uses, or -1 for none. A
  // description is none if only the processes that have it can open it.
  int of_description(std::uint32_t index) const { return descriptions_[index]; }
  std::vector<int> numbers() const;
  // Returns the end that programs have, or -1 if nobody in the job has it as its controlling
  // terminal.
  int of_terminal(std::uint32_t index) const { return controlling_[index]; }
  // Returns -1 for a segment of System V.
  int of_memory(std::uint32_t index) const { return memories_[index]; }
  // Makes the files that the job could write to what they were: what was written to them since is
  // lost. It must be called when nothing else can be refused any more, and before a process runs.
  // Until then no file holds anything else than before, and those that were made go again with the
  // object. A file that the job goes on to read as its standard input becomes that of this process,
  // too.
  Status finish(const Job& job, const std::vector<StoredContents>& contents,
                const ReadContents& read);
  // Seals memories as they were, when they hold what they held and all processes have mapped them.
  Status add_seals(const Job& job) const;

 private:
  Openings() = default;
  Status open_memory(const SharedMemory& memory, bool is_mapped);
  bool note_if_missing(const std::string& path);
  Status empty_holes(const Job& job, std::uint32_t index, const ContentsList& parts) const;
  Status write_files(const Job& job, const std::vector<StoredContents>& contents,
                     const ReadContents& read) const;
  Result<int> open_same_file(const SharedMemory& memory, const ContentsList& parts,
                             const ReadContents& read) const;
  Status fill_memories(const Job& job, const std::vector<StoredContents>& contents,
                       const ReadContents& read);
  Result<int> open_description(const Description& one);
  Status open_notifications(const Job& job);
  Result<int> open_file(const Description& one);
  Status open_channels(const Job& job);
  Status open_named_pipe(const Channel& channel);
  Status open_all_sockets(Job& job, const OpeningEnvironment& environment);
  Status open_terminals(const Job& job);
  Result<int> open_end_of_terminal(const Description& one);
  int open_end_of_pipe(const Description& one);
  void close_what_was_given_out();
  void find_free_numbers(const Job& job);
  Result<int> copy(int number) const;
  Result<int> move(int number) const;

  const LogSink* log_ = nullptr;           // while it opens
  std::uint64_t lowest_ = 0, beyond_ = 0;  // numbers from which the next is taken
  int input_ = -1;  // index of the description that is the standard input and was opened again
  std::set<std::string> held_;     // paths of files whose contents are written in the end
  std::vector<std::string> made_;  // paths of those that were not there
  std::vector<int> descriptions_, memories_, controlling_;
  struct Ends {
    int read = -1, write = -1;
    // Says whether the end belongs to a description of the job.
    bool is_read_given = false, is_write_given = false;
  };
  std::vector<Ends> channels_;
  std::vector<int> sockets_;
  std::vector<int> terminals_;  // ends that read what programs write
};

}  // namespace diapause::process
