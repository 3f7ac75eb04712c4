#include "config/keys.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

namespace diapause::config {
namespace {

template <int kLevel>
LevelSettings& level(Draft& draft) {
  return draft.settings.level(kLevel);
}

constexpr std::array<std::string_view, 2> kNodeTiers{"memory", "local"};
constexpr std::array<std::string_view, 3> kGlobalModes{"staged", "direct", "mpi-io"};
constexpr std::array<std::string_view, 4> kCaptureStrategies{"auto", "copy", "copy-on-write",
                                                             "incremental"};
constexpr std::array<std::string_view, 4> kCodecMethods{"none", "lz4", "zstd", "auto"};
constexpr std::array<std::string_view, 2> kCodecGoals{"time", "energy"};
constexpr std::array<std::string_view, 3> kAsyncModes{"off", "thread", "rank"};
constexpr std::array<std::string_view, 3> kFinishKeep{"nothing", "last", "all"};
constexpr std::array<std::string_view, 2> kFinishDirectories{"keep", "remove"};
constexpr std::array<std::string_view, 3> kScheduleGoals{"time", "energy", "mixed"};
constexpr std::array<std::string_view, 2> kWhenFull{"wait", "skip"};
constexpr std::array<std::string_view, 3> kThrottlePolicies{"off", "fixed", "measured"};
constexpr std::array<std::string_view, 6> kActuators{"auto",   "cpufreq", "powercap",
                                                     "uclamp", "dry-run", "emulated"};

void add_choice(Key key, std::span<const std::string_view> words, std::vector<Key>& keys) {
  key.words = words;
  keys.push_back(key);
}

template <int kLevel>
void add_level(std::string_view section, std::vector<Key>& keys) {
  if constexpr (kLevel < 4) {
    add_choice({section, "tier", [](Draft& draft) { return ChoiceRef(level<kLevel>(draft).tier); }},
               kNodeTiers, keys);
  }
  keys.push_back({section, "keep",
                  [](Draft& draft) -> std::uint32_t& { return level<kLevel>(draft).keep; },
                  Rule::any, 1});
  keys.push_back({section, "every_s",
                  [](Draft& draft) -> double& { return level<kLevel>(draft).interval.seconds; }});
  keys.push_back({section, "every_calls", [](Draft& draft) -> std::uint64_t& {
                    return level<kLevel>(draft).interval.calls;
                  }});
}

void add_places(std::vector<Key>& keys) {
  keys.push_back({"", "schedule", [](Draft& draft) -> std::string& { return draft.schedule; }});
  add_choice({"", "schedule_goal",
              [](Draft& draft) { return ChoiceRef(draft.settings.auto_schedule.goal); }},
             kScheduleGoals, keys);
  keys.push_back(
      {"", "schedule_bound_percent",
       [](Draft& draft) -> double& { return draft.settings.auto_schedule.bound_percent; },
       Rule::percent});
  keys.push_back(
      {"", "minute_s", [](Draft& draft) -> double& { return draft.minute_s; }, Rule::positive});
  keys.push_back(
      {"", "lock_wait_s", [](Draft& draft) -> double& { return draft.settings.lock_wait_s; }});
  keys.push_back({"memory", "path",
                  [](Draft& draft) -> std::string& { return draft.settings.memory_path; },
                  Rule::not_empty});
  keys.push_back(
      {"local", "path", [](Draft& draft) -> std::string& { return draft.settings.local_path; }});
  keys.push_back({"global", "path",
                  [](Draft& draft) -> std::string& { return draft.settings.global_path; },
                  Rule::not_empty});
  keys.push_back({"global", "files",
                  [](Draft& draft) -> FileCount& { return draft.settings.global_files; }, Rule::any,
                  1});
  add_choice({"global", "mode", [](Draft& draft) { return ChoiceRef(draft.settings.global_mode); }},
             kGlobalModes, keys);
  keys.push_back({"node", "ranks_per_node",
                  [](Draft& draft) -> std::uint32_t& { return draft.settings.ranks_per_node; }});
  keys.push_back({"node", "name",
                  [](Draft& draft) -> std::string& { return draft.settings.node_name; },
                  Rule::node_name});
  keys.push_back(
      {"node", "names",
       [](Draft& draft) -> std::vector<std::string>& { return draft.settings.node_names; },
       Rule::node_name});
}

void add_capture(std::vector<Key>& keys) {
  add_choice({"capture", "strategy",
              [](Draft& draft) { return ChoiceRef(draft.settings.capture.strategy); }},
             kCaptureStrategies, keys);
  keys.push_back({"capture", "threads",
                  [](Draft& draft) -> std::uint32_t& { return draft.settings.capture.threads; },
                  Rule::any, 0, 1024});
  keys.push_back({"capture", "audit_percent",
                  [](Draft& draft) -> double& { return draft.settings.capture.audit_percent; },
                  Rule::percent});
  keys.push_back({"capture", "referenced_files",
                  [](Draft& draft) -> std::vector<std::string>& {
                    return draft.settings.capture.referenced_files;
                  },
                  Rule::absolute});
}

void add_codec(std::vector<Key>& keys) {
  add_choice(
      {"codec", "method", [](Draft& draft) { return ChoiceRef(draft.settings.codec.method); }},
      kCodecMethods, keys);
  add_choice({"codec", "goal", [](Draft& draft) { return ChoiceRef(draft.settings.codec.goal); }},
             kCodecGoals, keys);
  keys.push_back({"codec", "zstd_level",
                  [](Draft& draft) -> std::uint32_t& { return draft.settings.codec.zstd_level; },
                  Rule::any, 1, 19});
  keys.push_back({"codec", "threads",
                  [](Draft& draft) -> std::uint32_t& { return draft.settings.codec.threads; },
                  Rule::any, 1, 1024});
  keys.push_back({"codec", "anchor_every",
                  [](Draft& draft) -> std::uint32_t& { return draft.settings.codec.anchor_every; },
                  Rule::any, 1});
}

template <int kLevel>
void add_mtbf(std::string_view name, std::vector<Key>& keys) {
  keys.push_back({"failures", name,
                  [](Draft& draft) -> double& { return draft.settings.failures.mtbf_s[kLevel]; }});
}

void add_failures(std::vector<Key>& keys) {
  keys.push_back({"failures", "node_mtbf_s",
                  [](Draft& draft) -> double& { return draft.settings.failures.node_mtbf_s; }});
  add_mtbf<1>("mtbf_process_s", keys);
  add_mtbf<2>("mtbf_node_s", keys);
  add_mtbf<3>("mtbf_nodes_s", keys);
  add_mtbf<4>("mtbf_system_s", keys);
}

void add_flips(std::vector<Key>& keys) {
  keys.push_back({"flips", "bit", [](Draft& draft) -> std::optional<std::uint32_t>& {
                    return draft.settings.flips.bit;
                  }});
  keys.push_back({"flips", "every_s",
                  [](Draft& draft) -> double& { return draft.settings.flips.every_s; },
                  Rule::positive});
  keys.push_back({"flips", "count",
                  [](Draft& draft) -> std::uint32_t& { return draft.settings.flips.count; },
                  Rule::any, 1});
  keys.push_back({"flips", "limit",
                  [](Draft& draft) -> std::uint64_t& { return draft.settings.flips.limit; }});
  keys.push_back({"flips", "region",
                  [](Draft& draft) -> std::string& { return draft.settings.flips.region; }});
  keys.push_back({"flips", "seed",
                  [](Draft& draft) -> std::uint64_t& { return draft.settings.flips.seed; },
                  Rule::any, 0, std::numeric_limits<std::int64_t>::max()});
}

void add_deadline(std::vector<Key>& keys) {
  keys.push_back(
      {"deadline", "signals",
       [](Draft& draft) -> std::vector<std::string>& { return draft.settings.deadline.signals; },
       Rule::signal});
  keys.push_back({"deadline", "at_unix_s",
                  [](Draft& draft) -> std::uint64_t& { return draft.settings.deadline.at_unix_s; },
                  Rule::any, 0, static_cast<std::int64_t>(100 * kMostSeconds)});
  keys.push_back(
      {"deadline", "in_s", [](Draft& draft) -> double& { return draft.settings.deadline.in_s; }});
  keys.push_back({"deadline", "grace_s",
                  [](Draft& draft) -> double& { return draft.settings.deadline.grace_s; }});
  keys.push_back({"deadline", "margin_s",
                  [](Draft& draft) -> double& { return draft.settings.deadline.margin_s; }});
}

void add_async(std::vector<Key>& keys) {
  add_choice({"async", "mode", [](Draft& draft) { return ChoiceRef(draft.settings.async.mode); }},
             kAsyncModes, keys);
  keys.push_back({"async", "nice",
                  [](Draft& draft) -> std::uint32_t& { return draft.settings.async.nice; },
                  Rule::any, 0, 19});
  keys.push_back(
      {"async", "cpu",
       [](Draft& draft) -> std::optional<std::uint32_t>& { return draft.settings.async.cpu; },
       Rule::any, 0, 1023});
  keys.push_back({"async", "flush_mib_s",
                  [](Draft& draft) -> double& { return draft.settings.async.flush_mib_s; }});
  keys.push_back({"async", "in_flight",
                  [](Draft& draft) -> std::uint32_t& { return draft.settings.async.in_flight; },
                  Rule::any, 1, 8});
  keys.push_back({"async", "in_flight_mib", [](Draft& draft) -> std::uint64_t& {
                    return draft.settings.async.in_flight_mib;
                  }});
  add_choice({"async", "when_full",
              [](Draft& draft) { return ChoiceRef(draft.settings.async.when_full); }},
             kWhenFull, keys);
}

void add_energy(std::vector<Key>& keys) {
  keys.push_back(
      {"energy", "meters",
       [](Draft& draft) -> std::vector<std::string>& { return draft.settings.energy.meters; },
       Rule::words});
  keys.push_back({"energy", "period_ms",
                  [](Draft& draft) -> std::uint32_t& { return draft.settings.energy.period_ms; },
                  Rule::any, 1, 60000});
  keys.push_back({"energy", "profile",
                  [](Draft& draft) -> std::string& { return draft.settings.energy.profile; },
                  Rule::not_empty});
  keys.push_back(
      {"energy", "tdp_w", [](Draft& draft) -> double& { return draft.settings.energy.tdp_w; }});
  keys.push_back({"energy", "stream",
                  [](Draft& draft) -> std::string& { return draft.settings.energy.stream; }});
  keys.push_back({"energy", "stream_offset_s",
                  [](Draft& draft) -> double& { return draft.settings.energy.stream_offset_s; },
                  Rule::any_sign});
  keys.push_back({"energy", "trace",
                  [](Draft& draft) -> std::string& { return draft.settings.energy.trace; }});
  keys.push_back(
      {"energy", "root", [](Draft& draft) -> std::string& { return draft.settings.energy.root; }});
}

void add_governor(std::vector<Key>& keys) {
  add_choice({"governor", "policy",
              [](Draft& draft) { return ChoiceRef(draft.settings.governor.policy); }},
             kThrottlePolicies, keys);
  add_choice({"governor", "actuator",
              [](Draft& draft) { return ChoiceRef(draft.settings.governor.actuator); }},
             kActuators, keys);
  keys.push_back({"governor", "ratio_compress",
                  [](Draft& draft) -> double& { return draft.settings.governor.ratio_compress; },
                  Rule::ratio});
  keys.push_back({"governor", "ratio_write",
                  [](Draft& draft) -> double& { return draft.settings.governor.ratio_write; },
                  Rule::ratio});
  keys.push_back(
      {"governor", "max_slowdown_percent",
       [](Draft& draft) -> double& { return draft.settings.governor.max_slowdown_percent; },
       Rule::percent});
  keys.push_back({"governor", "state_path",
                  [](Draft& draft) -> std::string& { return draft.settings.governor.state_path; },
                  Rule::not_empty});
  keys.push_back({"governor", "watchdog",
                  [](Draft& draft) -> std::string& { return draft.settings.governor.watchdog; },
                  Rule::not_empty});
}

std::vector<Key> make_keys() {
  std::vector<Key> keys;
  add_places(keys);
  add_level<1>("level1", keys);
  add_level<2>("level2", keys);
  add_level<3>("level3", keys);
  keys.push_back({"level3", "group_nodes",
                  [](Draft& draft) -> std::uint32_t& { return draft.settings.group_nodes; },
                  Rule::any, 2, 255});
  keys.push_back({"level3", "parity",
                  [](Draft& draft) -> std::uint32_t& { return draft.settings.parity; }, Rule::any,
                  1, 254});
  add_level<4>("level4", keys);
  add_failures(keys);
  add_choice({"finish", "keep", [](Draft& draft) { return ChoiceRef(draft.settings.finish_keep); }},
             kFinishKeep, keys);
  add_choice({"finish", "directories",
              [](Draft& draft) { return ChoiceRef(draft.settings.finish_directories); }},
             kFinishDirectories, keys);
  add_capture(keys);
  add_codec(keys);
  add_deadline(keys);
  add_async(keys);
  add_energy(keys);
  add_governor(keys);
  add_flips(keys);
  return keys;
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return result;
}

struct Shower {
  const Key& key;
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(std::uint32_t value) const { return fmt::format("{}", value); }
  std::string operator()(std::uint64_t value) const { return fmt::format("{}", value); }
  std::string operator()(const std::optional<std::uint32_t>& value) const {
    return value ? fmt::format("{}", *value) : "none";
  }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const std::vector<std::string>& values) const {
    std::string list;
    for (const std::string& value : values) list += (list.empty() ? "" : ", ") + quoted(value);
    return "[" + list + "]";
  }
  std::string operator()(const FileCount& files) const {
    if (files.kind == FileCount::Kind::fixed) return fmt::format("{}", files.count);
    return files.kind == FileCount::Kind::per_rank ? "\"rank\"" : "\"auto\"";
  }
  std::string operator()(ChoiceRef choice) const { return quoted(key.words[choice.index()]); }
};

}  // namespace

std::string_view capture_strategy_name(CaptureStrategy strategy) {
  return kCaptureStrategies[static_cast<std::size_t>(strategy)];
}

std::span<const Key> all_keys() {
  static const std::vector<Key> keys = make_keys();
  return keys;
}

const Key* find_key(std::string_view section, std::string_view name) {
  const auto keys = all_keys();
  const auto found = std::ranges::find_if(
      keys, [&](const Key& key) { return key.section == section && key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

std::string Key::full_name() const {
  return section.empty() ? std::string(name) : fmt::format("{}.{}", section, name);
}

std::string Key::environment() const {
  return section.empty() ? "DIAPAUSE_" + upper(name)
                         : "DIAPAUSE_" + upper(section) + "_" + upper(name);
}

std::string Key::shown(Draft& draft) const {
  return std::visit([&](auto place_of) { return Shower{*this}(place_of(draft)); }, place);
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::string result = "\"";
  for (const char c : text.substr(0, kMost))
    result += std::iscntrl(static_cast<unsigned char>(c)) ? '?' : c;
  return result + (text.size() > kMost ? "\"..." : "\"");
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr std::size_t kMostEdits = 2;
  std::size_t least = kMostEdits + 1;
  const std::string* nearest = nullptr;
  for (const std::string& candidate : candidates) {
    const std::size_t longer = std::max(name.size(), candidate.size());
    if (longer - std::min(name.size(), candidate.size()) > kMostEdits) continue;
    std::vector<std::size_t> row(candidate.size() +
                                 1);  // holds the Levenshtein distances of a prefix of `name`
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = i;
    for (std::size_t n = 1; n <= name.size(); ++n) {
      std::size_t diagonal = row[0];
      row[0] = n;
      for (std::size_t c = 1; c < row.size(); ++c) {
        const std::size_t replaced = diagonal + (name[n - 1] == candidate[c - 1] ? 0 : 1);
        diagonal = row[c];
        row[c] = std::min({replaced, row[c] + 1, row[c - 1] + 1});
      }
    }
    if (row.back() < least && row.back() < candidate.size()) {
      least = row.back();
      nearest = &candidate;
    }
  }
  return nearest == nullptr ? "." : "; did you mean " + *nearest + "?";
}

}  // namespace diapause::config
