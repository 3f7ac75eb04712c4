// The checkpoints that this rank took last, and how far each has come behind the program's back.
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
  std::uint64_t job = 0;  // its number at the host
  std::uint64_t version = 0;
  int level = 0;
  std::uint64_t bytes = 0;  // of this rank's image
  engine::Progress progress;
  bool is_repair = false;  // the version was restored, and is taken again to put back its redundancy
};

// All calls come from the program's thread.
class VersionsInFlight {
 public:
  // Is told of every version that has reached the level asked for: the level, the bytes of all ranks, and the seconds.
  using Learn = std::function<void(int level, std::uint64_t bytes, double seconds)>;

  // `context` and `host` must outlive the object.
  VersionsInFlight(engine::Context& context, engine::Host& host, Learn learn)
      : context_(context), host_(host), learn_(std::move(learn)) {}

  void add(Flight flight) { taken_.push_back(std::move(flight)); }

  // Learns what has happened behind the program since the last call.
  void catch_up();
  // Waits until nothing is in flight.
  void finish();
  // Waits as finish() does, but gives up what is not done when the time is over.
  void finish_within(double at_most_s);

  // The version taken last under this number; it stays valid until the next add() or catch_up(). Code::not_found for a
  // version that was not taken lately.
  Result<const Flight*> get(std::uint64_t version) const;
  const Flight& newest() const { return taken_.back(); }
  engine::Progress progress_of(const Flight& flight) const;
  // Waits until the version holds at `level` or deeper. Returns the error that kept it from doing so, or Code::timeout.
  Status wait(const Flight& flight, int level, double at_most_s);

  // Returns whether no version is in flight, as of the last catch_up().
  bool are_done() const;

  // Returns whether another version of so many bytes has no room. This rank knows its own images only, and counts all
  // images of its node as large. One version is always let through.
  bool is_full(std::uint64_t next_bytes) const;
  // Waits until the oldest version in flight is done. At least one must be in flight.
  void wait_for_oldest();

  // The first failure that the program was not told of yet. It counts as told from then on.
  std::optional<Flight> take_failure();
  // Returns whether a version was not kept at all since the last call, which may be because its tier is gone.
  bool take_suspicion() { return std::exchange(is_suspect_, false); }
  // The reason why the ranks cannot communicate any more; none if they can.
  const std::optional<Error>& cut_off() const { return cut_off_; }

 private:
  void note_failure(const Flight& flight);

  engine::Context& context_;
  engine::Host& host_;
  Learn learn_;
  std::deque<Flight> taken_;  // oldest first
  std::optional<Flight> failed_;
  std::optional<Error> cut_off_;
  bool is_suspect_ = false;
};

}  // namespace diapause::library
