// What a node's meters say, sampled by a thread of its own from start() until the object goes:
// energy of every domain between any two moments since then. One for each node. docs/energy.md.
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

// What all sources say about a stretch of time.
struct Usage {
  std::vector<Amount> domains;  // in the order of Sampler::domains()
  // Of the node, each joule once. Its name and kind: Sampler::total(). Nothing is covered if there
  // is no source.
  Amount total;
};

// The profile that the settings name. Code::config: it cannot be read.
Result<Profile> load_profile(const config::EnergySettings& settings, sys::Kernel& kernel);

struct SamplerState;

// All functions may be called from any thread. Those that need to know which sources are live wait
// until the thread has found out: 0.1 s where there are counters, in the worst case some seconds
// after start().
class Sampler {
 public:
  // Finds the meters in the thread, so that nobody waits for them. Code::config: the profile cannot
  // be read, or there is no meter of a name (which names there are is said). A machine without any
  // source is no failure: domains() is empty then. {"off"} starts no thread.
  static Result<std::unique_ptr<Sampler>> start(const config::EnergySettings& settings,
                                                sys::Kernel& kernel);
  ~Sampler();  // ends the thread
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Live sources; fixed.
  const std::vector<Zone>& domains() const;
  bool is_running() const;  // not if all meters are off
  // Which of them make the total, and what it is called.
  const Total& total() const;
  // By which of them the total is told apart in time, where its own meter is slow: node_curve.hpp.
  // Empty: by its own.
  const Total& fast_parts() const;
  // What is there and cannot be used, with the reason and what would help.
  const std::vector<Obstacle>& obstacles() const;
  // Of these, accelerator boards of which no meter tells.
  const std::vector<Obstacle>& boards_left_out() const;
  const Profile& profile() const;
  double period_s() const;
  double started_s() const;  // when the first sample was taken

  // Energy from one moment to another, sys::monotonic_s(). Takes a sample at once if the end is
  // later than the last one. What is before the first sample or in the future is a gap.
  Usage between(double from_s, double to_s);
  // From the first sample until now.
  Usage since_start();
  // The same as a point in time for each domain: rows of these make a trace. Neither joules nor
  // seconds are ever less than they were told before, also where a source that tells of late puts
  // right what was taken to go on.
  std::vector<Point> now();
  // Why a domain could not be read when it was last tried; empty if it could.
  std::string failure(std::size_t domain) const;

  // That a phase begins or ends: a sample is taken soon, in the thread, so that the energy until
  // now is known well. The caller does not wait, and they come no more often than each 10 ms, and
  // take at most 1/500 of the time: where they are dear there are few.
  void mark();
  // Tells the model that so many bytes went through memory: no file of the kernel says so. Costs
  // nothing.
  void moved(std::uint64_t bytes);
  // Processor time of the thread so far.
  double cost_s() const;

 private:
  explicit Sampler(std::unique_ptr<SamplerState> state);
  std::unique_ptr<SamplerState> state_;
};

}  // namespace diapause::energy
