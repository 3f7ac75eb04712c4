// Attributes time and energy on the machine of this process to the phases of checkpoints and
// restarts, and delivers the ledger lines that report them. docs/energy-account.md,
// docs/formats/ledger.md.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "energy/charge.hpp"
#include "energy/node_share.hpp"
#include "energy/sampler.hpp"
#include "engine/accounting/background_worker.hpp"
#include "engine/job/context.hpp"
#include "governor/governor.hpp"

namespace diapause::engine {

// A phase, as plain bytes: it is copied between processes.
struct Phase {
  std::array<char, 16> name{};
  std::uint64_t version = 0;
  std::int32_t level = 0;  // 0 stands for all levels, or for a restart
  energy::Beside beside = energy::Beside::nothing;
  double from_s = 0;  // seconds of sys::monotonic_s()
  double to_s = 0;
  double share = 1;  // fraction of that time, because several phases may alternate in one step
  std::uint64_t bytes = 0;  // protected bytes on all ranks of the job
  governor::Ratios ratios;  // the clocks that the phase ran at

  double seconds() const { return (to_s - from_s) * share; }
};
Phase make_phase(std::string_view name, double from_s, double to_s);

// Starts the sampler of a process that keeps the account of its machine, or governs or compresses
// by joules. Returns null for other processes, and where sampling is impossible; that is logged,
// and only the numbers are lost.
std::unique_ptr<energy::Sampler> start_sampler(const Context& context);

// The energy account of a machine. Ranks of a machine take their checkpoints together, so the first
// process with an account there keeps it for all. Nobody waits for computations that can be done in
// the background. All calls come from one thread.
class Account {
 public:
  // Takes the fields of a ledger line. It is called in a thread of the account.
  using Deliver = std::function<void(nlohmann::json&& fields)>;
  // The objects around the account: where its data come from, and where its lines go.
  struct Environment {
    energy::Sampler* sampler = nullptr;  // must outlive the object; null: energy is not measured
    std::string actuator;  // name of the governor's actuator, for phases that it slowed
    Deliver deliver;       // used by rank 0 only
  };
  // Opens the account. Collective.
  Status open(const Context& context, Environment environment);
  // Returns the share of `seconds` that the processes of this machine spent on an activity which
  // took `seconds_of_rank` on each rank.
  double share_here(std::span<const double> seconds_of_rank, double seconds) const;
  // Adds a phase, as soon as it is over, because a model derives energy from the bytes that it
  // moved through memory.
  void add(const Phase& phase);
  // Divides the energy used since the last call among the phases and the program, adds up all
  // machines, and delivers the result. With a single machine everything is done in the background.
  // With several machines the data is collected in the call, and the rest is done in the
  // background. If the program may have been waiting since `unknown_from_s`, as a call has begun
  // then whose wait is not added yet, versions with phases in the background after that have all of
  // those told in the next line, together with the wait. Collective.
  Status end_period(const Context& context, std::optional<double> unknown_from_s);
  // Waits until everything is delivered. What comes afterwards is delivered in the call.
  void end_background() { background_.reset(); }

 private:
  // The data that a period ends with.
  struct Book {
    std::vector<Phase> phases;
    double from_s = 0, to_s = 0;
    double to_unix_s = 0;
    std::vector<Phase> later = {};  // in the background, and told in the next line
  };
  Book take_book(std::size_t later_versions);
  std::vector<std::uint64_t> versions_behind() const;
  std::size_t count_unknown(double unknown_from_s) const;
  nlohmann::json describe(const Book& book);
  // Prepares to tell the job's processor time on this machine from that of other programs.
  // Collective.
  Status open_processor_times(const Context& context, std::span<const std::uint32_t> machine_of);
  void deliver(const std::vector<nlohmann::json>& machines) const;
  void behind(std::function<void()> work);

  bool is_kept_here_ = false;
  std::string machine_;                    // tells it from others
  std::vector<std::uint32_t> ranks_here_;  // ranks that the processes of this machine act for
  std::size_t processes_here_ = 1;
  double share_ = 1;  // share of the ranks that are on this machine
  bool is_only_machine_ = true;
  energy::Sampler* sampler_ = nullptr;
  std::string actuator_;
  Deliver deliver_;
  energy::Charger charger_;
  std::optional<energy::ProcessorTimeReader> processor_times_;  // null if nobody can tell
  std::vector<Phase> phases_;                                   // the phases since period_from_s_
  double period_from_s_ = 0;
  // Null after end_background(). The last member, so that it is destroyed first.
  std::optional<BackgroundWorker> background_;
};

}  // namespace diapause::engine
