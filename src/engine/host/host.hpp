// Where the node engine runs, as a rank sees it: in the rank's own calls, or in the background for the whole node.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/job/worker.hpp"
#include "engine/node/node_engine.hpp"

namespace diapause::engine {

// The progress of the work on one capture.
struct Progress {
  bool is_done = false;
  std::uint32_t levels = 0;  // bit l: level l holds
  Status result;             // if done: the first level that failed
  std::uint64_t bytes_total = 0;
  double seconds = 0;  // if done: what the work behind the capture took

  int deepest_level() const { return levels == 0 ? 0 : static_cast<int>(std::bit_width(levels)) - 1; }
};

class Host {
 public:
  virtual ~Host() = default;

  virtual std::uint32_t incarnation() const = 0;
  virtual std::uint32_t other_rank_count() const = 0;
  virtual Worker worker() const = 0;
  bool is_background() const { return worker() != Worker::call; }

  // A slot for a capture of this rank; old versions make room if they must. `use` is SlotUse::capture or, in the
  // background, SlotUse::later. Collective over the ranks.
  virtual Result<store::Slot> acquire(config::TierKind kind, std::uint64_t bytes, store::SlotUse use) = 0;

  // Between captures, by the thread that would call acquire() or one that it waits for: has a slot of the memory tier
  // ready for the next capture of so many bytes, and lets the others go; no longer than until `stop`. Not collective.
  virtual void keep_slot_ready(std::uint64_t /*bytes*/, std::uint64_t /*least_free*/,
                               const std::atomic<bool>& /*stop*/) {}

  // After a failure: forgets the tier if its directory was deleted, so that acquire() makes it anew. Collective.
  virtual Status check_tier(config::TierKind) { return {}; }

  // For as long as this rank captures so many bytes and the program waits: where the governor of its node is in this
  // process, it may slow the node's cores.
  virtual governor::PhaseGuard begin_capture(std::uint64_t) { return {}; }

  // The number that the next submit() will return.
  virtual std::uint64_t next_number() const = 0;
  // Hands over what this rank captured. All ranks do so in the same order. May come from another thread than the other
  // calls, of which only progress(), wait() and attend() may run meanwhile.
  virtual std::uint64_t submit(Captures captures) = 0;
  // Known for the last 64 captures.
  virtual Progress progress(std::uint64_t number) = 0;
  // Waits until the capture is done or one of `levels` holds, or the time is over.
  virtual void wait(std::uint64_t number, std::uint32_t levels, double at_most_s) = 0;

  // A signal that asks to stop and came to the process that acts for the node; 0: none.
  virtual int stop_signal() const { return 0; }

  // Lets the background give up the steps that it has not begun: the program closes the instance and will not wait.
  virtual void give_up() {}
  // What the background needs of the program's threads: called in every call of the program. Hands its messages to the
  // log, and goes on with what it has to communicate if nobody else may.
  virtual void attend() {}

  // For the account of energy: what was no checkpoint and took time, and that what there is be written down. In the
  // order in which all ranks submit. Collective; settle() waits for the background.
  virtual void add(std::span<const Phase> phases) = 0;
  virtual void settle() = 0;

  // As NodeEngine::finish(). Nothing may be in flight. Collective.
  virtual Status finish() = 0;

  virtual void reject(const format::VersionId& version) = 0;
  // Returns when the version is pinned. Taking the pin away waits for nothing: it comes after what was submitted
  // before.
  virtual void pin(std::optional<format::VersionId> version) = 0;
};

// Whether an instance whose work in the background could not be opened, for this reason, can do it in its calls.
inline bool can_go_inline(const Error& error) { return error.code != Code::busy && error.code != Code::comm; }

// Says whether threads of the program may communicate at the same time.
enum class ThreadsMay { communicate, not_communicate };

// Every rank acts for itself, and submit() does everything. Collective.
Result<std::unique_ptr<Host>> open_inline_host(Context& context, Bill& bill);

// A thread in the first rank of each node acts for the node's ranks. Where threads may not communicate, what they have
// to say is said in the program's calls: attend(), wait(), and all that wait for other ranks. Collective.
Result<std::unique_ptr<Host>> open_thread_host(Context& context, Bill& bill, ThreadsMay threads_may);

// The last rank of each node acts for the others, of which this is one; `whole` holds all of them, and those set aside
// open a DedicatedRank meanwhile. Collective over `whole`.
Result<std::unique_ptr<Host>> open_rank_host(Context& context, Context& whole);

}  // namespace diapause::engine
