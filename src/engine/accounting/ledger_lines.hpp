// The lines of the ledger, as docs/formats/ledger.md describes them.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "capture/region_capture.hpp"
#include "engine/accounting/account.hpp"
#include "engine/encoding/encoding.hpp"
#include "engine/job/worker.hpp"
#include "format/manifest.hpp"
#include "policy/pace_choice.hpp"

namespace diapause::engine {

struct CheckpointLine {
  const format::Manifest* manifest = nullptr;
  int level_asked = 0;
  double blocked_s = 0;
  double waited_s = 0;  // of that, for versions in flight to make room
  double wait_s = 0;    // of that, before the capture: for room and for other ranks
  double capture_s = 0;
  governor::Ratios capture_ratios;
  const std::vector<Phase>* steps = nullptr;
  std::string actuator;  // name of the governor's actuator; empty: the governor is off
  std::string error;     // empty if there is none
};

struct RestartLine {
  std::uint32_t incarnation = 0;
  const format::Manifest* manifest = nullptr;
  bool stepped_back = false;
  std::string reason;
  std::vector<std::string> sources;
  bool healed = false;
  double seconds = 0;
  double greatest_error = 0;  // greatest error of the restored values; 0 if they are exact
};

struct StopLine {
  std::uint32_t incarnation = 0;
  std::string why;
  std::uint64_t version = 0;  // number of the last checkpoint
  int level_reached = 0;      // 0 if it failed
};

struct ScheduleLine {
  std::uint32_t incarnation = 0;
  config::AutoSchedule goal;
  const policy::PaceDecision* decision = nullptr;
  // The numbers of checkpoints and restarts that were measured, by level. The times of levels
  // without any are assumed.
  std::array<std::size_t, 5> checkpoints{}, restarts{};
  bool is_compute_power_measured = false, is_checkpoint_power_measured = false;
};

struct OpenLine {
  std::uint32_t incarnation = 0;
  std::uint32_t ranks = 0;
  std::size_t nodes = 0;
  Worker worker = Worker::call;
  std::string slurm_job;  // number of Slurm's job that this process is a part of; empty: none
};

// Returns what SLURM_JOB_ID says in the environment of this process; empty if that is no number.
std::string slurm_job();
std::string open_line(const OpenLine& open);
std::string checkpoint_line(const CheckpointLine& line);
// Describes how the regions of this process were stored in the global tier.
std::string compression_line(const format::VersionId& version,
                             std::span<const EncodedRegion> regions);
std::string capture_line(const format::VersionId& version,
                         const std::vector<capture::RegionReport>& regions);
std::string restart_line(const RestartLine& line);
std::string stop_line(const StopLine& line);
// `number` counts the energy lines of a start, from 1. `account` is what Account::end_period()
// delivers; its time is the time of the line. `place` says whether it is the last one of the start.
enum class EnergyLinePlace { followed, last };
std::string energy_line(std::uint32_t incarnation, std::uint64_t number, EnergyLinePlace place,
                        nlohmann::json&& account);
std::string schedule_line(const ScheduleLine& line);
// Says that so many lines could not be written, and are in no ledger.
std::string lost_line(std::uint64_t lines);
std::string close_line(std::uint32_t incarnation);

}  // namespace diapause::engine
