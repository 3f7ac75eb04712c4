// Which phase of which checkpoint or restart used how much time and energy, on the machine of this process; and the
// lines of the ledger that say so. docs/energy-account.md, docs/formats/ledger.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "energy/charge.hpp"
#include "energy/sampler.hpp"
#include "engine/context.hpp"

namespace diapause::engine {

// Plain bytes: it is copied between processes.
struct Phase {
  std::array<char, 16> name{};
  std::uint64_t version = 0;
  std::int32_t level = 0;  // 0: of all levels, or of a restart
  energy::Beside beside = energy::Beside::nothing;
  double from_s = 0;  // sys::monotonic_s()
  double to_s = 0;
  std::uint64_t bytes = 0;  // protected ones of all ranks of the job
};
Phase make_phase(std::string_view name, double from_s, double to_s);

// Ranks of a machine take their checkpoints together, so the first process that has an account there keeps it for all.
// Not thread-safe.
class Account {
 public:
  // What cannot be measured is logged, and costs nothing but its numbers.
  void open(const Context& context);
  void add(const Phase& phase);
  // Divides what was used since the last time among the phases and the program, and adds up all machines: the fields of
  // a ledger line, on rank 0; empty on others. Collective.
  Result<std::string> settle(Context& context);

 private:
  std::string describe();

  bool is_kept_here_ = false;
  std::unique_ptr<energy::Sampler> sampler_;
  energy::Charger charger_;
  std::vector<Phase> phases_;  // since settled_s_
  double settled_s_ = 0;
};

}  // namespace diapause::engine
