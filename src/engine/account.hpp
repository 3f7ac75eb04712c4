// Which phase of which checkpoint or restart used how much time and energy, on the machine of this process; and the
// lines of the ledger that say so. docs/energy-account.md, docs/formats/ledger.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "energy/charge.hpp"
#include "energy/sampler.hpp"
#include "engine/context.hpp"
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

// The sampler of a process that keeps the account of its machine, or governs by joules; null for others, and where it
// cannot be had: that is logged, and costs nothing but the numbers.
std::unique_ptr<energy::Sampler> start_sampler(const Context& context);

// Ranks of a machine take their checkpoints together, so the first process that has an account there keeps it for all.
// Not thread-safe.
class Account {
 public:
  // `sampler` must outlive the object, and is used where the account is kept; null: energy is not measured. `actuator`:
  // of the governor, for what it has slowed. Collective.
  Status open(const Context& context, energy::Sampler* sampler, std::string actuator);
  // Of `seconds`, the share that the processes of this machine spent on something, which took each rank's so long.
  double share_here(std::span<const double> seconds_of_rank, double seconds) const;
  // As soon as it is over: what it has moved through memory is energy that a model finds.
  void add(const Phase& phase);
  // Divides what was used since the last time among the phases and the program, and adds up all machines: the fields of
  // a ledger line, on rank 0; empty on others. Collective.
  Result<std::string> settle(Context& context);

 private:
  std::string describe();

  bool is_kept_here_ = false;
  std::vector<std::uint32_t> ranks_here_;  // those that the processes of this machine act for
  std::size_t processes_here_ = 1;
  double share_ = 1;  // of the ranks, that are on this machine
  energy::Sampler* sampler_ = nullptr;
  std::string actuator_;
  energy::Charger charger_;
  std::vector<Phase> phases_;  // since settled_s_
  double settled_s_ = 0;
};

}  // namespace diapause::engine
