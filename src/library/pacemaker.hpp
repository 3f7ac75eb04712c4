// Chooses the pace of `schedule = "auto"` on rank 0, from the costs of checkpoints and restarts in
// the ledger. Reading and computing happen in a thread of its own; the program's calls only report
// changes and fetch the choice. policy/pace_choice.hpp decides.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "energy/measured_job.hpp"
#include "engine/accounting/background_worker.hpp"
#include "engine/accounting/ledger_writer.hpp"
#include "engine/job/context.hpp"
#include "policy/pace_choice.hpp"
#include "sys/file.hpp"

namespace diapause::library {

class Pacemaker {
 public:
  // `context` and `writer` must outlive the object. The ledger is read from now on; without a
  // ledger nothing is measured, which is logged.
  Pacemaker(const engine::Context& context, engine::LedgerWriter& writer,
            std::uint32_t incarnation);

  // Reports that something may have changed, for example that a checkpoint was taken. `bytes` are
  // those protected on this rank. The caller only leaves this message.
  void consider(std::uint64_t bytes);
  // Returns the newest choice; its number is 0 if there is none.
  policy::Pace pace() const;

 private:
  // The data that only the program's thread knows.
  struct Word {
    double bytes = 0;  // bytes of all ranks
    std::array<bool, 5> possible{};
  };
  void choose(const Word& word);
  void read_ledger();
  policy::PaceInputs inputs(const Word& word, const energy::MeasuredJob& measured) const;
  model::Powers powers(const energy::MeasuredJob& measured) const;
  void write_down(const policy::PaceDecision& decision, const energy::MeasuredJob& measured);

  const engine::Context& context_;
  engine::LedgerWriter& writer_;
  const std::uint32_t incarnation_;
  const policy::FailureRates rates_;

  mutable std::mutex mutex_;  // protects the two members below
  policy::Pace pace_;
  bool is_busy_ = false;

  // These members belong to the thread.
  std::optional<sys::File> ledger_;
  std::uint64_t read_to_ = 0;
  std::string cut_line_;
  energy::MeasuredJobReader reader_;
  policy::PaceChoice choice_;
  model::Powers assumed_powers_;

  engine::BackgroundWorker worker_;  // the last member, so that it is destroyed first
};

}  // namespace diapause::library
