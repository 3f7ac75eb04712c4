// The checkpoints that this rank took last, and their progress in the background.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "engine/host/host.hpp"
#include "engine/job/context.hpp"

namespace diapause::library {

// One checkpoint that was handed over to the host.
struct Flight {
  std::uint64_t request = 0;  // its number at the host
  std::uint64_t version = 0;
  int level = 0;
  std::uint64_t bytes = 0;  // size of this rank's image
  engine::Progress progress;
  // The version was restored, and is taken again to put back its redundancy.
  bool is_repair = false;
};

// All calls come from the program's thread.
class VersionsInFlight {
 public:
  // Called for every version that has reached the level asked for, with the level, the bytes of all
  // ranks, and the seconds.
  using Learn = std::function<void(int level, std::uint64_t bytes, double seconds)>;

  // `context` and `host` must outlive the object.
  VersionsInFlight(const engine::Context& context, engine::Host& host, Learn learn)
      : context_(context), host_(host), learn_(std::move(learn)) {}

  void add(Flight flight) { taken_.push_back(std::move(flight)); }

  // Updates the progress of all versions.
  void catch_up();
  // Waits until nothing is in flight.
  void finish();
  // Waits like finish(), but gives up what is not done after `at_most_s` seconds.
  void finish_within(double at_most_s);

  // Returns the last version with this number; it stays valid until the next add() or catch_up().
  // Code::not_found for a version that was not taken recently.
  Result<const Flight*> get(std::uint64_t version) const;
  const Flight& newest() const { return taken_.back(); }
  engine::Progress progress_of(const Flight& flight) const;
  // Waits until the version holds at `level` or deeper. Returns the error that kept it from doing
  // so, or Code::timeout.
  Status wait(const Flight& flight, int level, double at_most_s);

  // Returns whether no version is in flight, as of the last catch_up().
  bool are_done() const;

  // Returns whether there is no room in flight for another version of so many bytes. This rank
  // knows its own images only, and assumes that all images of its node are as large. One version is
  // always permitted.
  bool is_full(std::uint64_t next_bytes) const;
  // Waits until the oldest version in flight is done. At least one must be in flight.
  void wait_for_oldest();

  // Returns the first failure that the program has not been told of. It counts as told from then
  // on.
  std::optional<Flight> take_failure();
  // Returns whether a version was not kept at all since the last call, which may be because its
  // tier is gone.
  bool take_suspicion() { return std::exchange(is_suspect_, false); }
  // Returns why the ranks cannot communicate any more; nullopt if they can.
  const std::optional<Error>& cut_off() const { return cut_off_; }

 private:
  void note_failure(const Flight& flight);

  const engine::Context& context_;
  engine::Host& host_;
  Learn learn_;
  std::deque<Flight> taken_;  // oldest first
  std::optional<Flight> failed_;
  std::optional<Error> cut_off_;
  bool is_suspect_ = false;
};

}  // namespace diapause::library
