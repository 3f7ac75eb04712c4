// Fills memory of restored processes while they run. A thread of this process gives a page to
// whoever touches it first, and fills the rest meanwhile (userfaultfd). It follows what the
// processes do to this memory before it is filled: they fork, unmap, move and discard it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "process/calls.hpp"
#include "process/foreign_userfault.hpp"
#include "process/openings.hpp"
#include "process/proc.hpp"
#include "sys/thread.hpp"

namespace diapause::process {

struct SoundPiece {
  std::uint64_t offset = 0;  // from the beginning of the contents
  ByteView bytes;            // there until the next call of ReadPiece
};
// Reads the piece that holds the byte at `offset` of the contents. Only one thread calls it.
using ReadPiece = std::function<Result<SoundPiece>(const StoredContents&, std::uint64_t offset)>;

class FillBehind {
 public:
  // `keeper` is process 1 of the job. It is killed, and the job with it, if a piece cannot be read,
  // and also if this process ends before all is filled: what is missing would be zeros then.
  // `filled` is called when all is filled.
  FillBehind(pid_t keeper, ReadPiece read, std::function<void()> filled);
  // Stops. If something is missing still, the job is ended before.
  ~FillBehind();
  FillBehind(const FillBehind&) = delete;
  FillBehind& operator=(const FillBehind&) = delete;

  // Takes over areas of a process that stands still, whose contents they are. From then on every
  // access to them, also by the kernel, waits for its page. Fails without an effect if the kernel
  // cannot do it, or forbids it.
  struct Part {
    Extent area;
    ContentsList contents;
  };
  Status take(const Calls& calls, const ThreadName& thread, const std::vector<Part>& parts);
  // Fills also what nobody waits for, from now on.
  void begin();
  // Returns whether a process lacks something.
  bool is_filling() const;
  // Returns when all is filled, or why it never will be.
  Status wait();
  // Returns why not all could be filled; success as long as nothing is wrong.
  Status result() const;

 private:
  struct Missing {
    std::uint64_t end = 0;
    const StoredContents* contents = nullptr;
    std::uint64_t offset = 0;  // place of its beginning in the contents
  };
  // This is what is missing in a process, by address. Only changes that are known are in it: before
  // a page is filled, the kernel must agree that there are no others.
  struct Space {
    explicit Space(ForeignUserfault made) : userfault(std::move(made)) {}
    ForeignUserfault userfault;
    std::map<std::uint64_t, Missing> missing = {};
    std::vector<std::uint64_t> waits = {};  // addresses that somebody waits for
  };
  using Spaces = std::vector<std::unique_ptr<Space>>;

  Status begin_work();
  void work();
  void serve();
  Status serve_waits(Space& space);
  void take_messages(Space& space);
  Status fill_at(Space& space, std::uint64_t address);
  enum class Given { all, changed, gone };
  Result<Given> give(Space& space, std::uint64_t address, ByteView bytes);
  static void forget(Space& space, const Extent& range);
  static void move(Space& space, const Extent& from, std::uint64_t to);
  void give_up(Error why);
  void end_guard();

  const int keeper_;  // a descriptor of the keeper
  const ReadPiece read_;
  const std::function<void()> filled_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Spaces spaces_;  // the spaces that lack something
  Status result_;
  bool fills_all_ = false, stops_ = false;
  int wake_ = -1;
  int guard_ = -1;  // a descriptor of the process that outlives this one
  std::unique_ptr<sys::Thread> thread_;
};

}  // namespace diapause::process
