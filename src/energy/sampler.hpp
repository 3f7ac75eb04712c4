// Samples a node's meters in a thread of its own from start() until the object goes, and tells the
// energy of every domain between any two moments since then. Each node has one sampler
// (docs/energy.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "energy/meter.hpp"
#include "energy/profile.hpp"
#include "energy/series.hpp"
#include "energy/total.hpp"
#include "sys/kernel.hpp"

namespace diapause::energy {

// This is what all sources say about a stretch of time.
struct Usage {
  std::vector<Amount> domains;  // in the order of Sampler::domains()
  // It is that of the node, each joule once. Sampler::total() has its name and kind. Nothing is
  // covered if there is no source.
  Amount total;
};

// Reads the profile that the settings name. Code::config says that it cannot be read.
Result<Profile> load_profile(const config::EnergySettings& settings, sys::Kernel& kernel);

struct SamplerState;

// All functions may be called from any thread. Those that need to know which sources are live wait
// until the thread has found out. That is 0.1 s after start() where there are counters, and some
// seconds in the worst case.
class Sampler {
 public:
  // Finds the meters in the thread, so that nobody waits for them. Code::config says that the
  // profile cannot be read, or that there is no meter of a name, and which names there are. A
  // machine without any source is no failure: domains() is empty then. {"off"} starts no thread.
  static Result<std::unique_ptr<Sampler>> start(const config::EnergySettings& settings,
                                                sys::Kernel& kernel);
  ~Sampler();  // ends the thread
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Takes sources that have shown no life until now for dead, so that nobody has to wait any
  // longer. Nothing changes if the thread has found out already.
  void hurry();
  // Returns the live sources. They do not change.
  const std::vector<Zone>& domains() const;
  bool is_running() const;  // not if all meters are off
  // Returns which of them make the total, and what it is called.
  const Total& total() const;
  // Returns by which of them the total is told apart in time where its own meter is slow
  // (node_curve.hpp). If it is empty, its own meter does it.
  const Total& fast_parts() const;
  // Returns what is there and cannot be used, with the reason and what would help.
  const std::vector<Obstacle>& obstacles() const;
  // Returns those of the obstacles that are accelerator boards of which no meter tells.
  const std::vector<Obstacle>& boards_left_out() const;
  const Profile& profile() const;
  double period_s() const;
  double started_s() const;  // when the first sample was taken

  // Returns the energy from one moment of sys::monotonic_s() to another. It takes a sample at once
  // if the end is later than the last one. Time before the first sample or in the future is a gap.
  Usage between(double from_s, double to_s);
  // Returns the energy from the first sample until now.
  Usage since_start();
  // This is the same as a point in time for each domain, and by how much the samples may miss its
  // joules. Rows of these make a trace. Neither joules nor seconds are ever less than they were
  // told before, also where a source that tells of late puts right what was taken to go on.
  struct Now {
    std::vector<Point> points;
    std::vector<double> off_j;
  };
  Now now();
  // Returns why a domain could not be read when it was last tried; the text is empty if it could.
  std::string failure(std::size_t domain) const;

  // Says that a phase begins or ends. The thread takes a sample soon, so that the energy until now
  // is known well. The caller does not wait. Such samples come no more often than each 10 ms and
  // take at most 1/500 of the time, so that there are few where they are dear.
  void mark();
  // Tells the model that so many bytes went through memory, because no file of the kernel says so.
  // The call costs nothing.
  void moved(std::uint64_t bytes);
  // Returns the processor time of the thread so far.
  double cost_s() const;

 private:
  explicit Sampler(std::unique_ptr<SamplerState> state);
  std::unique_ptr<SamplerState> state_;
};

}  // namespace diapause::energy
