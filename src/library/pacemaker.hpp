// With `schedule = "auto"`, on rank 0: follows what the ledger says that checkpoints and restarts cost, and chooses the
// pace. It reads and reckons in a thread of its own; the calls of the program only leave word, and take what was
// chosen. policy/pace_choice.hpp decides.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "energy/measured_job.hpp"
#include "engine/accounting/background_worker.hpp"
#include "engine/accounting/bill.hpp"
#include "engine/job/context.hpp"
#include "policy/pace_choice.hpp"
#include "sys/file.hpp"

namespace diapause::library {

class Pacemaker {
 public:
  // `context` and `bill` must outlive the object. The ledger is read from here on; without one nothing is measured, and
  // that is logged.
  Pacemaker(engine::Context& context, engine::Bill& bill, std::uint32_t incarnation);

  // Something may have changed, such as that a checkpoint was taken. `bytes`: protected on this rank. Costs the caller
  // nothing but the word.
  void consider(std::uint64_t bytes);
  // The newest choice; none: number 0.
  policy::Pace pace() const;

 private:
  // What only the program's thread knows.
  struct Word {
    double bytes = 0;  // of all ranks
    std::array<bool, 5> possible{};
  };
  void choose(const Word& word);
  void read_ledger();
  policy::PaceInputs inputs(const Word& word, const energy::MeasuredJob& measured) const;
  model::Powers powers(const energy::MeasuredJob& measured) const;
  void write_down(const policy::PaceDecision& decision, const energy::MeasuredJob& measured);

  engine::Context& context_;
  engine::Bill& bill_;
  const std::uint32_t incarnation_;
  const policy::FailureRates rates_;

  mutable std::mutex mutex_;  // of what follows
  policy::Pace pace_;
  bool is_busy_ = false;

  // Of the thread.
  std::optional<sys::File> ledger_;
  std::uint64_t read_to_ = 0;
  std::string cut_line_;
  energy::MeasuredJobReader reader_;
  policy::PaceChoice choice_;
  model::Powers assumed_powers_;

  engine::BackgroundWorker worker_;  // the last member: it goes first
};

}  // namespace diapause::library
