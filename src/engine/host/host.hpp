// The host of the node engine, as a rank sees it. The engine runs in the rank's own calls, or in
// the background for the whole node.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
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
  Status result;             // once it is done: the error of the first level that failed
  std::uint64_t bytes_total = 0;
  double seconds = 0;  // if done: duration of the work behind the capture

  int deepest_level() const {
    return levels == 0 ? 0 : static_cast<int>(std::bit_width(levels)) - 1;
  }
};

class Host {
 public:
  virtual ~Host() = default;

  virtual std::uint32_t incarnation() const = 0;
  virtual std::uint32_t other_rank_count() const = 0;
  virtual Worker worker() const = 0;
  bool is_background() const { return worker() != Worker::call; }

  // Returns a slot for a capture of this rank. Old versions are removed to make room if necessary.
  // `use` is SlotUse::capture or, in the background, SlotUse::later. Collective over the ranks.
  virtual Result<store::Slot> acquire(config::TierKind kind, std::uint64_t bytes,
                                      store::SlotUse use) = 0;
  // Returns a slot for a capture of this rank if that is possible without the other ranks: the tier
  // is in order and has room. Not collective.
  virtual std::optional<store::Slot> try_acquire(config::TierKind kind, std::uint64_t bytes) = 0;

  // Prepares a slot of the memory tier for the next capture of so many bytes, and releases the
  // others. Returns no later than `stop` becomes true. It is called between captures, by the thread
  // that would call acquire() or by one that this thread waits for. Not collective.
  virtual void keep_slot_ready(std::uint64_t /*bytes*/, std::uint64_t /*least_free*/,
                               const std::atomic<bool>& /*stop*/) {}

  // Closes the tier if its directory was deleted, so that acquire() makes it anew. It is called
  // after a failure. Collective.
  virtual Status check_tier(config::TierKind) { return {}; }

  // Returns a guard to hold while this rank captures so many bytes and the program waits. If the
  // governor of the node is in this process, it may slow the node's cores.
  virtual governor::PhaseGuard begin_capture(std::uint64_t) { return {}; }

  // Tells the energy account that the program is in a call which began at that time and leads to a
  // capture: submit() will say how long it waited. The second says that there is no capture after
  // all. Not collective.
  virtual void expect_capture(double /*called_s*/) {}
  virtual void expect_no_capture() {}

  // Returns the number that the next submit() will return.
  virtual std::uint64_t next_number() const = 0;
  // Hands over what this rank captured. All ranks do so in the same order. It may be called from
  // another thread than the other calls, of which only progress(), wait() and attend() may run
  // concurrently.
  virtual std::uint64_t submit(Captures captures) = 0;
  // Returns the progress of a capture; it is known for the last 64.
  virtual Progress progress(std::uint64_t number) = 0;
  // Waits until the capture is done, one of `levels` holds, or `at_most_s` seconds are over.
  virtual void wait(std::uint64_t number, std::uint32_t levels, double at_most_s) = 0;

  // Returns a signal that asks to stop and that the process acting for the node received; 0: none.
  virtual int stop_signal() const { return 0; }

  // Lets the background drop what it has not written: the program closes the instance and will
  // not wait.
  virtual void give_up() {}
  // Does what the background needs from the program's threads: passes its messages to the log, and
  // carries out its communication if nobody else may. Called in every call of the program.
  virtual void attend() {}

  // These two are for the energy account: add() adds phases that are no part of a checkpoint, and
  // end_period() has everything written down. All ranks call them in the order in which they
  // submit. Collective; end_period() waits for the background.
  virtual void add(std::span<const Phase> phases) = 0;
  virtual void end_period() = 0;

  // Ends the job like NodeEngine::finish(). Nothing may be in flight. Collective.
  virtual Status finish() = 0;

  virtual void reject(const format::VersionId& version) = 0;
  // Pins a version, and returns when that is done. Removing the pin (nullopt) waits for nothing: it
  // takes effect after what was submitted before.
  virtual void pin(std::optional<format::VersionId> version) = 0;
};

// Returns whether an instance that could not open its background for this reason can work in its
// calls.
inline bool can_go_inline(const Error& error) {
  return error.code != Code::busy && error.code != Code::comm;
}

// Says whether threads of the program may communicate at the same time.
enum class ThreadsMay { communicate, not_communicate };

// Opens a host in which every rank acts for itself, and submit() does everything. Collective.
Result<std::unique_ptr<Host>> open_inline_host(Context& context, LedgerWriter& ledger);

// Opens a host in which a thread in the first rank of each node acts for the node's ranks. If
// threads must not communicate, their communication is carried out in the program's calls:
// attend(), wait(), and all that wait for other ranks. Collective.
Result<std::unique_ptr<Host>> open_thread_host(Context& context, LedgerWriter& ledger,
                                               ThreadsMay threads_may);

// Opens a host in which the last rank of each node acts for the others. The calling rank is one of
// the others. `whole` holds all ranks; the dedicated ones open a DedicatedRank meanwhile.
// Collective over `whole`.
Result<std::unique_ptr<Host>> open_rank_host(Context& context, const Context& whole);

}  // namespace diapause::engine
