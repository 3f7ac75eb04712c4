// Which phase of which checkpoint or restart used how much time and energy, on the machine of this process; and the
// lines of the ledger that say so. docs/energy-account.md, docs/formats/ledger.md.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "energy/charge.hpp"
#include "energy/sampler.hpp"
#include "engine/accounting/background_worker.hpp"
#include "engine/job/context.hpp"
#include "governor/governor.hpp"

namespace diapause::engine {

// Plain bytes: it is copied between processes.
struct Phase {
  std::array<char, 16> name{};
  std::uint64_t version = 0;
  std::int32_t level = 0;  // 0: of all levels, or of a restart
  energy::Beside beside = energy::Beside::nothing;
  double from_s = 0;  // sys::monotonic_s()
  double to_s = 0;
  double share = 1;         // of that time: several phases may take turns in one step
  std::uint64_t bytes = 0;  // protected ones of all ranks of the job
  governor::Ratios ratios;  // the clock it ran at

  double seconds() const { return (to_s - from_s) * share; }
};
Phase make_phase(std::string_view name, double from_s, double to_s);

// The sampler of a process that keeps the account of its machine, or governs or compresses by joules; null for others,
// and where it cannot be had: that is logged, and costs nothing but the numbers.
std::unique_ptr<energy::Sampler> start_sampler(const Context& context);

// Ranks of a machine take their checkpoints together, so the first process that has an account there keeps it for all.
// Nobody waits for what can be reckoned behind. All calls from one thread.
class Account {
 public:
  // Takes the fields of a ledger line, in a thread of the account.
  using Deliver = std::function<void(const std::string& fields)>;
  // What has happened here, and who wants to know.
  struct Environment {
    energy::Sampler* sampler = nullptr;  // must outlive the object; null: energy is not measured
    std::string actuator;                // of the governor, for what it has slowed
    Deliver deliver;                     // of rank 0
  };
  // Collective.
  Status open(const Context& context, Environment environment);
  // Of `seconds`, the share that the processes of this machine spent on something, which took each rank's so long.
  double share_here(std::span<const double> seconds_of_rank, double seconds) const;
  // As soon as it is over: what it has moved through memory is energy that a model finds.
  void add(const Phase& phase);
  // Divides what was used since the last time among the phases and the program, adds up all machines and delivers that.
  // Of a single machine all of it is done behind the caller, of several all but collecting it. Collective.
  Status settle(Context& context);
  // Until all is delivered.
  void wait() {
    if (background_) background_->wait();
  }

 private:
  // What is settled at once.
  struct Book {
    std::vector<Phase> phases;
    double from_s = 0, to_s = 0;
    double to_unix_s = 0;
  };
  Book take_book();
  std::string describe(const Book& book);
  void deliver(const std::vector<std::string>& machines) const;
  void behind(std::function<void()> work);

  bool is_kept_here_ = false;
  std::vector<std::uint32_t> ranks_here_;  // those that the processes of this machine act for
  std::size_t processes_here_ = 1;
  double share_ = 1;  // of the ranks, that are on this machine
  bool is_only_machine_ = true;
  energy::Sampler* sampler_ = nullptr;
  std::string actuator_;
  Deliver deliver_;
  energy::Charger charger_;
  std::vector<Phase> phases_;  // since settled_s_
  double settled_s_ = 0;
  std::optional<BackgroundWorker> background_;  // the last member: it goes first
};

}  // namespace diapause::engine
