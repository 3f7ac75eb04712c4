#include "cli/job_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>

#include "cli/ledgers.hpp"
#include "cli/quantities.hpp"
#include "energy/measured_job.hpp"
#include "energy/profile.hpp"
#include "model/rates.hpp"
#include "sys/text_file.hpp"

namespace diapause::cli {
namespace {

using Values = std::map<std::string, double>;

// Checkpoints have waited for room if more than the rest of their blocked time went into that.
constexpr double kAllButWaiting = 0.99;

// Parses "a=1,b=2" into values. Only the given names are allowed.
Status read_values(std::string_view words, const std::vector<std::string>& names,
                   const std::string& option,
                   const std::function<Result<double>(std::string_view)>& parse, Values& values) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(','), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(words.size(), end + 1));
    const std::size_t sign = word.find('=');
    const std::string name(word.substr(0, sign));
    if (sign == std::string_view::npos || std::ranges::find(names, name) == names.end()) {
      return fail(Code::argument, fmt::format("{}: '{}' is not NAME=VALUE with a name out of {}",
                                              option, word, fmt::join(names, ", ")));
    }
    if (values.contains(name))
      return fail(Code::argument, fmt::format("{}: '{}' is given twice", option, name));
    DIAPAUSE_TRY_ASSIGN(values[name], parse(word.substr(sign + 1)));
  }
  return {};
}

// Of a rate or a time between failures, 0 would stand for never.
Status refuse_zero(const Values& values, const std::string& option) {
  for (const auto& [name, value] : values) {
    if (!(value > 0))
      return fail(Code::argument, fmt::format("{} {} must be above 0", option, name));
  }
  return {};
}

// Typed values take precedence, then measured ones, then those that follow from the profile.
class ModelMaker {
 public:
  // `assumed_processors` are those for which the profile's powers are; 0: they are for the node.
  ModelMaker(const JobOptions& options, const energy::Profile& profile,
             const energy::MeasuredJob& measured, unsigned assumed_processors)
      : options_(options),
        profile_(profile),
        measured_(measured),
        assumed_processors_(assumed_processors) {}

  Result<JobModel> make() {
    DIAPAUSE_TRY(read_options());
    DIAPAUSE_TRY(set_size());
    set_powers();
    for (const int number : numbers_) {
      DIAPAUSE_TRY(add_level(number));
    }
    DIAPAUSE_TRY(set_failures());
    return std::move(job_);
  }

 private:
  Status read_options() {
    numbers_ = options_.levels.empty() ? std::vector{1, 2, 3, 4} : options_.levels;
    std::ranges::sort(numbers_);
    numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
    if (options_.parity >= options_.group_nodes) {
      return fail(Code::argument,
                  fmt::format("--parity {} must be less than --group-nodes {}: the rest of a group "
                              "has the data",
                              options_.parity, options_.group_nodes));
    }
    for (const std::string& word : options_.level) DIAPAUSE_TRY(read_level(word));
    for (const std::string& word : options_.rates) {
      DIAPAUSE_TRY(
          read_values(word, {"memory", "network", "storage"}, "--rate", parse_amount, rates_));
    }
    DIAPAUSE_TRY(refuse_zero(rates_, "--rate"));
    for (const std::string& word : options_.watts) {
      const std::vector<std::string> names = {"compute", "checkpoint", "restart", "idle", "behind"};
      DIAPAUSE_TRY(read_values(word, names, "--watts", parse_amount, watts_));
    }
    for (const std::string& word : options_.mtbf) {
      const std::vector<std::string> names = {"process", "node", "nodes", "system", "site"};
      DIAPAUSE_TRY(read_values(word, names, "--mtbf", parse_time_s, mtbf_));
    }
    return refuse_zero(mtbf_, "--mtbf");
  }

  Status read_level(const std::string& word) {
    const auto wrong = [&](const std::string& why) {
      return fail(Code::argument, fmt::format("--level: '{}' {}", word, why));
    };
    if (word.size() < 2 || word[1] != ':' || word[0] < '0' || word[0] > '9')
      return wrong("does not begin with the number of a level and ':'");
    const int number = word[0] - '0';
    if (number < 1 || number > 5) return wrong("is of no level: levels are 1 to 5");
    if (word.size() == 2)
      return wrong(fmt::format("says nothing of level {}: write {}blocked=TIME", number, word));
    if (std::ranges::find(numbers_, number) == numbers_.end()) {
      return wrong(fmt::format("is of a level that the job does not take: it takes {} (--levels)",
                               fmt::join(numbers_, ", ")));
    }
    const std::vector<std::string> names = {"blocked", "behind", "restart", "down"};
    const std::string option = fmt::format("--level {}", number);
    return read_values(std::string_view(word).substr(2), names, option, parse_time_s,
                       times_[number]);
  }

  Status set_size() {
    job_.nodes = options_.nodes.value_or(std::max(measured_.nodes, 1U));
    job_.group_nodes = options_.group_nodes;
    job_.parity = options_.parity;
    const double ranks = options_.ranks.value_or(
        measured_.ranks > 0 && !options_.nodes ? measured_.ranks : job_.nodes);
    if (options_.bytes_per_rank.empty()) {
      job_.bytes = static_cast<double>(measured_.bytes);
      if (measured_.nodes > 0) job_.bytes *= static_cast<double>(job_.nodes) / measured_.nodes;
      return {};
    }
    DIAPAUSE_TRY_ASSIGN(const double bytes, parse_size_bytes(options_.bytes_per_rank));
    job_.bytes = bytes * ranks;
    return {};
  }

  template <class... T>
  void note(fmt::format_string<T...> text, T&&... values) {
    job_.notes.push_back(fmt::format(text, std::forward<T>(values)...));
  }

  // Returns a rate in MB/s: as typed, else from the profile, else an assumed one.
  double rate(const std::string& name, const std::string& key, double assumed, const char* why) {
    if (const auto typed = rates_.find(name); typed != rates_.end()) return typed->second;
    if (const auto known = profile_.rates.find(key); known != profile_.rates.end())
      return known->second.value;
    const std::string text = fmt::format("{} rate: {:g} MB/s, assumed: {}", name, assumed, why);
    if (std::ranges::find(job_.notes, text) == job_.notes.end()) job_.notes.push_back(text);
    return assumed;
  }

  // Returns the times of a level for which nothing is measured. Only the rates that the level needs
  // are looked up, so that only these are reported as assumed.
  model::LevelTimes times_from_rates(int number) {
    model::Rates rates;
    rates.memory_mb_s = rate("memory", "memory_copy_mb_s", rates.memory_mb_s, "a copy by one core");
    if (number == 2 || number == 3) {
      rates.network_mb_s =
          rate("network", "network_mb_s", rates.network_mb_s, "one adapter of 100 Gbit/s");
    }
    if (number >= 4) {
      rates.storage_mb_s =
          rate("storage", "storage_write_mb_s", model::assumed_storage_mb_s(job_.nodes),
               "500 MB/s a node, at most 100 GB/s");
    }
    return model::times_at_rates(number, {job_.bytes, job_.nodes, job_.group_nodes, job_.parity},
                                 rates);
  }

  Status add_level(int number) {
    const energy::MeasuredLevel& seen = measured_.levels[static_cast<std::size_t>(number)];
    const Values& typed = times_[number];
    const bool all_typed = typed.contains("blocked") &&
                           (typed.contains("behind") || options_.sync) && typed.contains("restart");
    // If only the whole time of a checkpoint is typed, it also stands for the time of a restart.
    const bool known = job_.bytes > 0 || typed.contains("blocked") || seen.with_room_s;
    if (!known) {
      return fail(
          Code::argument,
          fmt::format("nothing says how long level {} takes: give --bytes-per-rank, --level "
                      "{}:blocked=TIME, or --from a job that has taken it",
                      number, number));
    }
    std::array<double, 3> times{};
    if (job_.bytes > 0 && !all_typed) {
      const model::LevelTimes assumed = times_from_rates(number);
      times = {assumed.blocked_s, assumed.behind_s, assumed.restart_s};
    }
    if (job_.bytes == 0 && typed.contains("blocked")) {
      times = {0, 0, typed.at("blocked")};
      if (!typed.contains("restart") && !seen.restart_s)
        note("level {}: a restart takes as long as its checkpoint blocks, assumed", number);
    }
    if (seen.with_room_s) times[0] = *seen.with_room_s;
    if (seen.behind_s) times[1] = *seen.behind_s;
    if (seen.restart_s) times[2] = *seen.restart_s;
    const std::array<const char*, 3> names = {"blocked", "behind", "restart"};
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (const auto at = typed.find(names[i]); at != typed.end()) times[i] = at->second;
    }
    model::Level level;
    level.number = number;
    level.blocked_s = times[0] + (options_.sync ? times[1] : 0);
    level.behind_s = options_.sync ? 0 : times[1];
    level.slowed = level.behind_s > 0 ? options_.slowed : 0;
    level.restart_s = times[2];
    if (const auto down = typed.find("down"); down != typed.end()) level.downtime_s = down->second;
    job_.levels.push_back(level);
    if (seen.blocked_s)
      note("level {}: measured in {} checkpoints and {} restarts", number, seen.checkpoints,
           seen.restarts);
    if (seen.blocked_s && *seen.with_room_s < kAllButWaiting * *seen.blocked_s) {
      note(
          "level {}: with the wait for versions in flight to make room, checkpoints blocked for "
          "{}; the plan leaves those the time and is without that wait",
          number, duration_text(*seen.blocked_s));
    }
    return {};
  }

  Status set_failures() {
    if (!options_.node_mtbf.empty()) {
      DIAPAUSE_TRY_ASSIGN(const double node_s, parse_time_s(options_.node_mtbf));
      if (!(node_s > 0)) return fail(Code::argument, "--node-mtbf must be above 0");
      if (mtbf_.contains("node"))
        return fail(Code::argument, "--node-mtbf and --mtbf node both say how often nodes fail");
      mtbf_["node"] = node_s / job_.nodes;
    }
    if (mtbf_.empty() && measured_.failed_starts > 0 && measured_.ran_s > 0) {
      mtbf_["process"] = measured_.ran_s / static_cast<double>(measured_.failed_starts);
      note("failures: {} starts in {} did not end with a close; taken for failures of the process",
           measured_.failed_starts, duration_text(measured_.ran_s));
    }
    if (mtbf_.empty())
      return fail(Code::argument,
                  "nothing says what fails: give --node-mtbf TIME or --mtbf CLASS=TIME");
    // Failures of a class count for the first level of the job that recovers from them.
    std::array<double, 6> rates{};
    for (std::size_t number = 1; number < rates.size(); ++number) {
      const auto known = mtbf_.find(kClassNames[number]);
      if (known != mtbf_.end()) rates[number] = 1 / known->second;
    }
    std::size_t number = 1;
    for (model::Level& level : job_.levels) {
      for (; number <= static_cast<std::size_t>(level.number); ++number)
        level.failures_per_s += rates[number];
    }
    for (; number < rates.size(); ++number) {
      if (rates[number] <= 0) continue;
      note("no level stands against failures of class '{}', and they are left out",
           kClassNames[number]);
      job_.lacks_level = static_cast<int>(number);
    }
    return {};
  }

  // Sets the powers. What is assumed of the others follows from the power that computing takes, and
  // not from the profile's if that is of another machine.
  void set_powers() {
    double idle_w = 0;  // of a node
    double busy_w = 0;  // with all processors busy
    for (const energy::DomainModel& domain : profile_.domains) {
      idle_w += domain.idle_w.value;
      busy_w += domain.idle_w.value + domain.busy_w.value;
    }
    const double nodes = job_.nodes;
    const double measured_nodes = std::max(measured_.nodes, 1U);
    const auto take_typed = [&](const char* name, double& watts, double factor) {
      const auto typed = watts_.find(name);
      if (typed != watts_.end()) watts = factor * typed->second;
    };
    const bool is_by_profile = !measured_.compute_w && !watts_.contains("compute");
    double compute_w = is_by_profile ? busy_w : measured_.compute_w.value_or(0) / measured_nodes;
    take_typed("compute", compute_w, 1);
    if (!is_by_profile && busy_w > 0) idle_w *= compute_w / busy_w;
    take_typed("idle", idle_w, 1);
    job_.powers = model::assumed_powers(nodes, idle_w, std::max(idle_w, compute_w));
    job_.powers.compute_w = nodes * compute_w;
    if (measured_.checkpoint_w) {
      job_.powers.checkpoint_w = job_.powers.restart_w =
          *measured_.checkpoint_w * nodes / measured_nodes;
    }
    take_typed("checkpoint", job_.powers.checkpoint_w, nodes);
    take_typed("restart", job_.powers.restart_w, nodes);
    take_typed("behind", job_.powers.behind_w, nodes);
    note_powers(is_by_profile);
  }

  void note_powers(bool is_by_profile) {
    if (measured_.compute_w && !watts_.contains("compute"))
      note("compute power: from the energy lines of the ledger");
    if (is_by_profile && assumed_processors_ > 0) {
      note(
          "power of a node: that of {} processors by the profile, assumed; --watts compute=W says "
          "it",
          assumed_processors_);
    }
    if (!is_by_profile && !watts_.contains("idle"))
      note("idle power: the same share of the power computing as in the profile, assumed");
    std::string waiting;
    for (const char* const name : {"checkpoint", "restart"}) {
      if (measured_.checkpoint_w || watts_.contains(name)) continue;
      waiting += waiting.empty() ? name : std::string(" and ") + name;
    }
    if (!waiting.empty())
      note("{} power: idle and a quarter of what computing adds, assumed", waiting);
    if (!watts_.contains("behind"))
      note("power of work behind a checkpoint: a twentieth of what computing adds, assumed");
    note("machine: {}", profile_.machine);
  }

  const JobOptions& options_;
  const energy::Profile& profile_;
  const energy::MeasuredJob& measured_;
  const unsigned assumed_processors_;
  JobModel job_;
  std::vector<int> numbers_;
  std::map<int, Values> times_;
  Values rates_, watts_, mtbf_;
};

// Where a profile gives a power for each processor, a node is taken to have so many.
constexpr unsigned kAssumedProcessors = 64;

struct NamedProfile {
  energy::Profile profile;
  bool depends_on_processors = false;
};

Result<NamedProfile> profile_of_text(std::string_view text, const std::string& origin) {
  const auto watts = [](const energy::Profile& profile) {
    double sum_w = 0;
    for (const energy::DomainModel& domain : profile.domains)
      sum_w += domain.idle_w.value + domain.busy_w.value;
    return sum_w;
  };
  DIAPAUSE_TRY_ASSIGN(auto profile, energy::parse_profile(text, origin, {kAssumedProcessors, 0}));
  DIAPAUSE_TRY_ASSIGN(const auto of_one, energy::parse_profile(text, origin, {1, 0}));
  const bool depends = watts(profile) != watts(of_one);
  return NamedProfile{std::move(profile), depends};
}

Result<NamedProfile> named_profile(const std::string& name) {
  if (const auto text = energy::built_in_profile(name); !text.empty())
    return profile_of_text(text, "built-in profile " + name);
  const auto text = sys::read_text_file(sys::real_kernel(), name);
  if (text) return profile_of_text(*text, name);
  return fail(Code::config, fmt::format("{}; built-in machines are {}", text.error().message,
                                        fmt::join(energy::built_in_profiles(), ", ")));
}

}  // namespace

Result<JobModel> load_job_model(const JobOptions& options) {
  DIAPAUSE_TRY_ASSIGN(const NamedProfile named, named_profile(options.machine));
  energy::MeasuredJobReader reader;
  if (!options.from.empty()) {
    Places places;
    places.config = options.config;
    places.global = options.global;
    DIAPAUSE_TRY_ASSIGN(const std::string path, ledger_of(options.from, places));
    DIAPAUSE_TRY(read_ledger(path, [&](std::string_view line) { reader.add_line(line); }));
  }
  const energy::MeasuredJob measured = reader.job();
  const unsigned processors = named.depends_on_processors ? kAssumedProcessors : 0;
  return ModelMaker(options, named.profile, measured, processors).make();
}

}  // namespace diapause::cli
