#include "config/settings.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <map>

#include "config/keys.hpp"

namespace diapause::config {
namespace {

struct Reading {
  std::string file;  // the name to use in messages
  Draft draft;
  // The origin of each value that was set: "file:line:column" or "environment variable NAME".
  std::map<const Key*, std::string> origins;

  std::string at(const toml::source_region& source) const {
    return fmt::format("{}:{}:{}", file, source.begin.line, source.begin.column);
  }
  // Returns the origin of a key's value, or "default" if it was not set.
  std::string origin(const Key& key) const {
    const auto found = origins.find(&key);
    return found == origins.end() ? "default" : found->second;
  }
};

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const Key& key : all_keys()) {
    if (!key.section.empty() && (names.empty() || names.back() != key.section))
      names.emplace_back(key.section);
  }
  return names;
}

std::vector<std::string> key_names(std::string_view section) {
  std::vector<std::string> names;
  for (const Key& key : all_keys()) {
    if (key.section == section) names.emplace_back(key.name);
  }
  return names;
}

// Returns a name or value for messages. It comes from the file and may be long or unprintable.
std::string printable(std::string_view text) {
  const std::string in_quotes = quoted(text);
  return in_quotes.substr(1, in_quotes.find_last_of('"') - 1);
}

Found found_in_node(const toml::node& node) {
  if (const auto* integer = node.as_integer())
    return {integer->get(), fmt::format("{}", integer->get())};
  if (const auto* number = node.as_floating_point())
    return {number->get(), fmt::format("{}", number->get())};
  if (const auto* text = node.as_string()) return {text->get(), quoted(text->get())};
  if (const auto* boolean = node.as_boolean()) return {{}, boolean->get() ? "true" : "false"};
  if (node.is_table()) return {{}, "a table"};
  const auto* array = node.as_array();
  if (array == nullptr) return {{}, "a date or time"};
  std::vector<std::string> texts;
  std::string shown;
  for (const toml::node& element : *array) {
    const auto* text = element.as_string();
    if (text == nullptr) return {{}, "an array with something else than strings"};
    texts.push_back(text->get());
    shown += (shown.empty() ? "" : ", ") + quoted(text->get());
  }
  constexpr std::size_t kMostShown = 200;
  if (shown.size() > kMostShown) shown = shown.substr(0, kMostShown) + "...";
  return {std::move(texts), "[" + shown + "]"};
}

Status set_key(const Key& key, const Found& found, std::string origin, Reading& reading) {
  if (!assign(key, found, reading.draft)) {
    return fail(Code::config, fmt::format("{}: {}: found {}; allowed is {}", origin,
                                          key.full_name(), found.shown, key.allowed()));
  }
  reading.origins[&key] = std::move(origin);
  return {};
}

Status read_section(const std::string& section, const toml::table& table, Reading& reading) {
  for (const auto& [name, node] : table) {
    const Key* key = find_key(section, name.str());
    if (key == nullptr) {
      const auto names = key_names(section);
      return fail(Code::config,
                  fmt::format("{}: unknown key {}.{}{} Keys of [{}] are {}",
                              reading.at(name.source()), section, printable(name.str()),
                              did_you_mean(name.str(), names), section, fmt::join(names, ", ")));
    }
    DIAPAUSE_TRY(set_key(*key, found_in_node(node), reading.at(node.source()), reading));
  }
  return {};
}

Status read_top(const toml::table& table, Reading& reading) {
  const auto sections = section_names();
  for (const auto& [name, node] : table) {
    if (const Key* key = find_key("", name.str())) {
      DIAPAUSE_TRY(set_key(*key, found_in_node(node), reading.at(node.source()), reading));
      continue;
    }
    if (std::ranges::find(sections, name.str()) == sections.end()) {
      auto candidates = key_names("");
      const std::string keys = fmt::format("{}", fmt::join(candidates, ", "));
      candidates.insert(candidates.end(), sections.begin(), sections.end());
      return fail(Code::config,
                  fmt::format("{}: unknown {} {}{} Keys here are {}; tables are {}",
                              reading.at(name.source()), node.is_table() ? "table" : "key",
                              printable(name.str()), did_you_mean(name.str(), candidates), keys,
                              fmt::join(sections, ", ")));
    }
    const auto* section = node.as_table();
    if (section == nullptr) {
      return fail(Code::config,
                  fmt::format("{}: {}: found {}; allowed is a table", reading.at(node.source()),
                              name.str(), found_in_node(node).shown));
    }
    DIAPAUSE_TRY(read_section(std::string(name.str()), *section, reading));
  }
  return {};
}

Status read_file(const std::string& text, Reading& reading) {
  // The TOML library reports errors by exceptions. No other exception than one for lack of memory
  // can leave this function.
  try {
    const toml::table table = toml::parse(text, reading.file);
    return read_top(table, reading);
  } catch (const toml::parse_error& error) {
    return fail(Code::config, fmt::format("{}: not valid TOML: {}", reading.at(error.source()),
                                          printable(error.description())));
  }
}

// Returns why an unknown variable must be a misspelt key, or an empty text if it need not be one.
// Sites set names of their own, such as DIAPAUSE_ROOT and DIAPAUSE_HOME, in the modules that make
// the library available.
std::string resembles_key(std::string_view name) {
  std::vector<std::string> candidates{"DIAPAUSE_CONFIG"};
  for (const Key& key : all_keys()) candidates.push_back(key.environment());
  const std::string nearest = did_you_mean(name, candidates);
  if (nearest != ".") return nearest;
  for (const std::string& section : section_names()) {
    if (name.starts_with(Key{section, "", {}}.environment())) {
      return fmt::format(". Keys of [{}] are {}.", section, fmt::join(key_names(section), ", "));
    }
  }
  return "";
}

Status read_variable(const std::string& name, const std::string& value, Reading& reading) {
  const auto keys = all_keys();
  const auto key =
      std::ranges::find_if(keys, [&](const Key& one) { return one.environment() == name; });
  if (key != keys.end()) {
    return set_key(*key, found_in_text(*key, value), "environment variable " + name, reading);
  }
  const std::string why = resembles_key(name);
  if (!why.empty()) {
    return fail(Code::config,
                fmt::format("environment variable {} is not known{} A variable is DIAPAUSE_, the "
                            "table, _ and the key, such as DIAPAUSE_LEVEL1_KEEP",
                            printable(name), why));
  }
  reading.draft.settings.unknown_variables.push_back(printable(name));
  return {};
}

Status read_environment(const Environment& environment, Reading& reading) {
  for (const auto& [name, value] : environment) {
    // The Python package reads the last two.
    const bool is_ours = name == "DIAPAUSE_CONFIG" || name.starts_with("DIAPAUSE_TEST_") ||
                         name.starts_with("DIAPAUSE_RUN_") || name == "DIAPAUSE_COMMAND" ||
                         name == "DIAPAUSE_LIBRARY_PATH";
    if (is_ours || !name.starts_with("DIAPAUSE_")) continue;
    DIAPAUSE_TRY(read_variable(name, value, reading));
  }
  return {};
}

// Returns an error for two settings that exclude each other. It names the place of both.
tl::unexpected<Error> conflict(const Reading& reading, const Key& first, const Key& second,
                               const std::string& why) {
  return fail(Code::config,
              fmt::format("{}: {} and {} ({}): {}", reading.origin(first), first.full_name(),
                          second.full_name(), reading.origin(second), why));
}

Status check_levels(const Reading& reading) {
  const Settings& settings = reading.draft.settings;
  const Key& schedule = *find_key("", "schedule");
  for (int level = 1; level <= 4; ++level) {
    const std::string section = fmt::format("level{}", level);
    const Interval& interval = settings.level(level).interval;
    const Key& every_s = *find_key(section, "every_s");
    const Key& every_calls = *find_key(section, "every_calls");
    if (interval.seconds > 0 && interval.calls > 0) {
      return conflict(reading, every_s, every_calls,
                      "a level is due by time or by calls; set one of them to 0");
    }
    if (!reading.draft.schedule.empty() && (interval.seconds > 0 || interval.calls > 0)) {
      return conflict(reading, schedule, interval.seconds > 0 ? every_s : every_calls,
                      "a schedule sets the intervals of all levels; use one way or the other");
    }
    if (settings.level(level).tier == TierKind::local && settings.local_path.empty()) {
      return conflict(
          reading, *find_key(section, "tier"), *find_key("local", "path"),
          "the tier \"local\" needs a directory; set local.path or use the tier \"memory\"");
    }
  }
  if (settings.parity >= settings.group_nodes) {
    return conflict(
        reading, *find_key("level3", "parity"), *find_key("level3", "group_nodes"),
        fmt::format(
            "found {} parity chunks in groups of {} nodes; allowed is parity below group_nodes",
            settings.parity, settings.group_nodes));
  }
  return {};
}

Status check_global(const Reading& reading) {
  const Settings& settings = reading.draft.settings;
  if (settings.global_mode != GlobalMode::mpi_io ||
      settings.global_files.kind != FileCount::Kind::per_rank)
    return {};
  return conflict(reading, *find_key("global", "mode"), *find_key("global", "files"),
                  "MPI-IO writes files that ranks share; set global.files to \"auto\" or a number");
}

Status check_nodes(const Reading& reading) {
  const Settings& settings = reading.draft.settings;
  const Key& ranks_per_node = *find_key("node", "ranks_per_node");
  if (!settings.node_names.empty() && settings.ranks_per_node == 0) {
    return conflict(reading, *find_key("node", "names"), ranks_per_node,
                    "the list names emulated nodes, and there are none without ranks_per_node");
  }
  if (!settings.node_name.empty() && settings.ranks_per_node > 0) {
    return conflict(reading, *find_key("node", "name"), ranks_per_node,
                    "emulated nodes need different names; use node.names");
  }
  return {};
}

Status check_deadline(const Reading& reading) {
  const DeadlineSettings& deadline = reading.draft.settings.deadline;
  if (deadline.at_unix_s == 0 || deadline.in_s == 0) return {};
  return conflict(reading, *find_key("deadline", "at_unix_s"), *find_key("deadline", "in_s"),
                  "both say when the allocation ends; set one of them to 0");
}

// Under Slurm, fills in the end of the allocation and the signals that Slurm sends: SIGTERM at the
// end, or SIGUSR1 before it, if the user asks for that.
void add_slurm_deadline(const Environment& environment, Reading& reading) {
  if (value_in(environment, "SLURM_JOB_ID").empty()) return;
  DeadlineSettings& deadline = reading.draft.settings.deadline;
  if (!reading.origins.contains(find_key("deadline", "signals")))
    deadline.signals = {"SIGTERM", "SIGUSR1"};
  const bool end_is_set = reading.origins.contains(find_key("deadline", "at_unix_s")) ||
                          reading.origins.contains(find_key("deadline", "in_s"));
  const Key& at = *find_key("deadline", "at_unix_s");
  if (!end_is_set)
    (void)assign(at, found_in_text(at, value_in(environment, "SLURM_JOB_END_TIME")), reading.draft);
}

// Drops the default schedule if intervals are set level by level.
void drop_default_schedule(Reading& reading) {
  if (reading.origins.contains(find_key("", "schedule"))) return;
  const bool by_level =
      std::any_of(reading.origins.begin(), reading.origins.end(), [](const auto& origin) {
        const Key& key = *origin.first;
        return key.section != "flips" && (key.name == "every_s" || key.name == "every_calls");
      });
  if (by_level) reading.draft.schedule.clear();
}

// Refuses an automatic schedule for which no failure rate is given.
Status check_failures(const Reading& reading) {
  const FailureSettings& failures = reading.draft.settings.failures;
  const Key& of_one_node = *find_key("failures", "node_mtbf_s");
  if (failures.node_mtbf_s > 0 && failures.mtbf_s[2] > 0) {
    return conflict(reading, of_one_node, *find_key("failures", "mtbf_node_s"),
                    "the first is of a single node and the second of all nodes of the job; set one "
                    "of them to 0");
  }
  const bool some_fail =
      failures.node_mtbf_s > 0 ||
      std::ranges::any_of(failures.mtbf_s, [](double mtbf_s) { return mtbf_s > 0; });
  if (reading.draft.schedule != kAutoSchedule || some_fail) return {};
  return conflict(
      reading, *find_key("", "schedule"), of_one_node,
      "\"auto\" needs to know how often something fails: set failures.node_mtbf_s, the mean time "
      "between "
      "failures of one node, or that of the whole job by class, such as failures.mtbf_system_s");
}

Status use_schedule(Reading& reading) {
  if (reading.draft.schedule.empty()) return {};
  Settings& settings = reading.draft.settings;
  const Key& schedule = *find_key("", "schedule");
  const auto bit = std::exchange(settings.flips.bit, std::nullopt);
  if (auto applied = apply_schedule(reading.draft.schedule, reading.draft.minute_s, settings);
      !applied) {
    return fail(Code::config, reading.origin(schedule) + ": " + applied.error().message);
  }
  if (bit && settings.flips.bit) {
    return conflict(reading, schedule, *find_key("flips", "bit"),
                    "both say which bit to flip; use one of them");
  }
  if (bit) settings.flips.bit = bit;
  return {};
}

}  // namespace

std::string value_in(const Environment& environment, std::string_view name) {
  const auto found = std::ranges::find_if(
      environment, [&](const auto& variable) { return variable.first == name; });
  return found == environment.end() ? "" : found->second;
}

Settings default_settings(std::uint32_t uid) {
  Settings settings;
  settings.memory_path = fmt::format("/dev/shm/diapause-{}", uid);
  settings.governor.state_path = fmt::format("/dev/shm/diapause-power-{}", uid);
  // Versions in memory cost memory of the program, so the newest of each level is kept there, and
  // no second one.
  for (const int level : {1, 2, 3}) settings.level(level).keep = 1;
  settings.level(4).tier = TierKind::global;
  return settings;
}

Result<Settings> parse_settings(const std::string& text, const std::string& path,
                                const Environment& environment, std::uint32_t uid) {
  Reading reading;
  reading.file = path.empty() ? "configuration" : path;
  reading.draft.settings = default_settings(uid);
  reading.draft.settings.source = path;
  DIAPAUSE_TRY(read_file(text, reading));
  DIAPAUSE_TRY(read_environment(environment, reading));
  drop_default_schedule(reading);
  DIAPAUSE_TRY(check_levels(reading));
  DIAPAUSE_TRY(check_global(reading));
  DIAPAUSE_TRY(check_nodes(reading));
  DIAPAUSE_TRY(check_deadline(reading));
  DIAPAUSE_TRY(check_failures(reading));
  add_slurm_deadline(environment, reading);
  DIAPAUSE_TRY(use_schedule(reading));
  return std::move(reading.draft.settings);
}

}  // namespace diapause::config
