#include "engine/accounting/ledger_lines.hpp"

#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "base/fixed_text.hpp"
#include "engine/accounting/json_text.hpp"
#include "sys/process.hpp"

namespace diapause::engine {
namespace {

using nlohmann::json;

constexpr int kLedgerSchema = 2;  // docs/formats/ledger.md

json event(const char* name, std::uint64_t time_unix_ns) {
  return {{"schema", kLedgerSchema},
          {"event", name},
          {"time_unix_s", static_cast<double>(time_unix_ns) * 1e-9}};
}

// The beginning of a line that is written in every checkpoint.
JsonText frequent_event(const char* name, std::uint64_t time_unix_ns,
                        const format::VersionId& version) {
  JsonText line;
  line.put("schema", kLedgerSchema);
  line.put("event", name);
  line.put("time_unix_s", static_cast<double>(time_unix_ns) * 1e-9);
  line.put("incarnation", version.incarnation);
  line.put("version", version.number);
  return line;
}

// Returns the line as text. Names of files and nodes in error messages need not be UTF-8.
std::string text(const json& line) {
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string slurm_job() {
  for (const auto& [name, value] : sys::environment()) {
    const bool is_number =
        !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
    if (name == "SLURM_JOB_ID" && is_number) return value;
  }
  return "";
}

std::string open_line(const OpenLine& open) {
  constexpr std::array<const char*, 4> kWorkers = {"call", "thread", "thread in calls", "rank"};
  json line = event("open", sys::unix_time_ns());
  line["incarnation"] = open.incarnation;
  line["ranks"] = open.ranks;
  line["nodes"] = open.nodes;
  line["worker"] = kWorkers.at(static_cast<std::size_t>(open.worker));
  if (!open.slurm_job.empty()) line["slurm_job"] = open.slurm_job;
  return text(line);
}

std::string checkpoint_line(const CheckpointLine& checkpoint) {
  const format::Manifest& manifest = *checkpoint.manifest;
  JsonText line = frequent_event("checkpoint", manifest.created_unix_ns, manifest.version);
  line.put("level_asked", checkpoint.level_asked);
  line.put("level_reached", manifest.deepest_level());
  line.put("bytes_total", manifest.protected_bytes());
  line.put("blocked_s", checkpoint.blocked_s);
  line.put("waited_s", checkpoint.waited_s);
  line.open_object("phases");
  line.put("wait", checkpoint.wait_s);
  line.put("capture", checkpoint.capture_s);
  for (const Phase& step : *checkpoint.steps)
    line.put(get_text(step.name), step.to_s - step.from_s);
  line.close();
  if (!checkpoint.actuator.empty()) {
    const auto add = [&](const std::string& name, governor::Ratios ratios) {
      if (!ratios.are_slowed()) return;
      line.open_object(name);
      line.put("asked", ratios.asked);
      line.put("obtained", ratios.obtained);
      line.close();
    };
    line.open_object("slowed");
    line.put("actuator", checkpoint.actuator);
    line.open_object("phases");
    add("capture", checkpoint.capture_ratios);
    for (const Phase& step : *checkpoint.steps) add(get_text(step.name), step.ratios);
    line.close();
    line.close();
  }
  if (checkpoint.error.empty()) {
    line.put_null("error");
  } else {
    line.put("error", checkpoint.error);
  }
  return line.take();
}

// Regions of several ranks that were treated in the same way form one entry.
std::string compression_line(const format::VersionId& version,
                             std::span<const EncodedRegion> regions) {
  struct Sum {
    codec::RegionReport report;
    std::string reason;
    double encode_s = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const EncodedRegion& region : regions) {
    Sum& sum = sums[{region.name, codec::codec_name(region.choice.method.codec)}];
    sum.report.add(region.report);
    sum.reason = region.choice.reason;
    sum.encode_s += region.encode_s;
  }
  json line = event("compression", sys::unix_time_ns());
  line["incarnation"] = version.incarnation;
  line["version"] = version.number;
  line["regions"] = json::array();
  for (const auto& [what, sum] : sums) {
    line["regions"].push_back({{"region", what.first},
                               {"codec", what.second},
                               {"reason", sum.reason},
                               {"bytes", sum.report.raw_bytes},
                               {"stored_bytes", sum.report.stored_bytes},
                               {"blocks", sum.report.blocks},
                               {"lossy_blocks", sum.report.lossy_blocks},
                               {"smaller_without_loss", sum.report.smaller_without_loss},
                               {"bound_too_small", sum.report.bound_too_small},
                               {"guarded", sum.report.guarded},
                               {"greatest_error", sum.report.greatest_error},
                               {"encode_s", sum.encode_s}});
  }
  return text(line);
}

// Regions captured in the same way for the same reason form one entry, because there may be
// hundreds.
std::string capture_line(const format::VersionId& version,
                         const std::vector<capture::RegionReport>& regions) {
  constexpr std::size_t kNamed = 4;
  struct Way {
    std::vector<std::string> named;
    std::uint64_t regions = 0, in_call = 0, behind = 0, stopped_writes = 0;
    double blocked_s = 0;
  };
  std::map<std::pair<std::string, std::string>, Way> ways;
  const capture::RegionReport* before = nullptr;
  Way* of_before = nullptr;
  for (const capture::RegionReport& region : regions) {
    const bool is_same =
        before != nullptr && region.method == before->method && region.reason == before->reason;
    Way& way =
        is_same ? *of_before : ways[{policy::capture_method_name(region.method), region.reason}];
    before = &region;
    of_before = &way;
    if (++way.regions <= kNamed) way.named.push_back(region.region);
    way.in_call += region.copied_in_begin;
    way.behind += region.copied_in_drain;
    way.stopped_writes += region.faults;
    way.blocked_s += region.blocked_s;
  }
  JsonText line = frequent_event("capture", sys::unix_time_ns(), version);
  line.open_array("ways");
  for (const auto& [what, way] : ways) {
    line.open_object("");
    line.put("method", what.first);
    line.put("reason", what.second);
    line.put("regions", way.regions);
    line.open_array("named");
    for (const std::string& name : way.named) line.put("", name);
    line.close();
    line.put("bytes_copied_in_call", way.in_call);
    line.put("bytes_copied_behind", way.behind);
    line.put("stopped_writes", way.stopped_writes);
    line.put("blocked_s", way.blocked_s);
    line.close();
  }
  line.close();
  return line.take();
}

std::string restart_line(const RestartLine& restart) {
  json line = event("restart", sys::unix_time_ns());
  line["incarnation"] = restart.incarnation;
  line["version"] = restart.manifest->version.number;
  line["level"] = restart.manifest->deepest_level();
  line["captured_unix_s"] = static_cast<double>(restart.manifest->created_unix_ns) * 1e-9;
  line["stepped_back"] = restart.stepped_back;
  line["reason"] = restart.reason;
  line["sources"] = restart.sources;
  line["healed"] = restart.healed;
  line["seconds"] = restart.seconds;
  line["greatest_error"] = restart.greatest_error;
  return text(line);
}

std::string stop_line(const StopLine& stop) {
  json line = event("stop", sys::unix_time_ns());
  line["incarnation"] = stop.incarnation;
  line["why"] = stop.why;
  line["version"] = stop.version;
  line["level_reached"] = stop.level_reached;
  return text(line);
}

std::string schedule_line(const ScheduleLine& schedule) {
  constexpr std::array<const char*, 3> kGoals = {"time", "energy", "mixed"};
  const policy::PaceDecision& decision = *schedule.decision;
  json line = event("schedule", sys::unix_time_ns());
  line["incarnation"] = schedule.incarnation;
  line["number"] = decision.pace.number;
  line["goal"] = kGoals.at(static_cast<std::size_t>(schedule.goal.goal));
  if (schedule.goal.goal == config::ScheduleGoal::mixed)
    line["bound_percent"] = schedule.goal.bound_percent;
  line["reason"] = decision.reason;
  line["saves"] = decision.saves;
  line["every_s"] = decision.pace.every_s;
  line["levels"] = json::array();
  for (const model::Level& level : decision.plan.levels) {
    const auto number = static_cast<std::size_t>(level.number);
    line["levels"].push_back({{"level", level.number},
                              {"one_in", decision.pace.one_in[number]},
                              {"blocked_s", level.blocked_s},
                              {"behind_s", level.behind_s},
                              {"slowed", level.slowed},
                              {"restart_s", level.restart_s},
                              {"mtbf_s", 1 / level.failures_per_s},
                              {"checkpoints", schedule.checkpoints[number]},
                              {"restarts", schedule.restarts[number]}});
  }
  const auto power = [](double watts, bool is_measured) {
    return json{{"watts", watts}, {"kind", is_measured ? "measured" : "assumed"}};
  };
  const model::Powers& powers = decision.powers;
  line["powers"] = {
      {"compute", power(powers.compute_w, schedule.is_compute_power_measured)},
      {"checkpoint", power(powers.checkpoint_w, schedule.is_checkpoint_power_measured)},
      {"restart", power(powers.restart_w, schedule.is_checkpoint_power_measured)},
      {"idle", power(powers.idle_w, false)},
      {"behind", power(powers.behind_w, false)}};
  line["expected"] = {{"time_over_work", decision.plan.wall_per_work()},
                      {"watts_per_work", decision.plan.cost.watts_per_work(powers)}};
  return text(line);
}

std::string energy_line(std::uint32_t incarnation, std::uint64_t number, EnergyLinePlace place,
                        nlohmann::json&& account) {
  json line = std::move(account);
  line["schema"] = kLedgerSchema;
  line["event"] = "energy";
  line["incarnation"] = incarnation;
  line["number"] = number;
  if (place == EnergyLinePlace::last) line["last"] = true;
  return text(line);
}

std::string lost_line(std::uint64_t lines) {
  json line = event("lost", sys::unix_time_ns());
  line["lines"] = lines;
  return text(line);
}

std::string close_line(std::uint32_t incarnation) {
  json line = event("close", sys::unix_time_ns());
  line["incarnation"] = incarnation;
  return text(line);
}

}  // namespace diapause::engine
