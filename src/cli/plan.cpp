// `diapause plan`: computes how often to take which level, and what that costs.
#include <fmt/core.h>

#include <limits>

#include "cli/outputs.hpp"
#include "cli/planning.hpp"
#include "cli/python.hpp"
#include "cli/quantities.hpp"
#include "cli/runs_progress.hpp"
#include "cli/simulation_setup.hpp"
#include "cli/verbs.hpp"
#include "model/fill_time.hpp"
#include "simulate/simulation.hpp"
#include "sys/text_file.hpp"
#include "sys/thread.hpp"
#include "sys/thread_pool.hpp"

namespace diapause::cli {
namespace {

// Reads the capacity of a storage, or the number of its nodes and of the devices of each, such as
// 75x64.
Result<double> capacity_of_word(const std::string& word, double device_bytes) {
  const std::size_t by = word.find('x');
  if (by == std::string::npos) return parse_size_bytes(word);
  DIAPAUSE_TRY_ASSIGN(const double nodes, parse_amount(word.substr(0, by)));
  DIAPAUSE_TRY_ASSIGN(const double devices, parse_amount(word.substr(by + 1)));
  return nodes * devices * device_bytes;
}

struct Dump {
  model::Storage storage;
  double memory_bytes = 0;
  double used = 1;  // share of the memory that is in use, and written
};

Result<Dump> dump_of_words(const std::vector<std::string>& words) {
  Dump dump;
  DIAPAUSE_TRY_ASSIGN(dump.memory_bytes, parse_size_bytes(words[0]));
  DIAPAUSE_TRY_ASSIGN(dump.storage.device_bytes, parse_size_bytes(words[2]));
  DIAPAUSE_TRY_ASSIGN(dump.storage.capacity_bytes,
                      capacity_of_word(words[1], dump.storage.device_bytes));
  DIAPAUSE_TRY_ASSIGN(const double mb_s, parse_amount(words[3]));
  dump.storage.device_bytes_per_s = mb_s * 1e6;
  const bool sound = dump.storage.capacity_bytes > 0 && dump.storage.device_bytes > 0 && mb_s > 0;
  if (!sound) return fail(Code::argument, "--fill-time: storage, device and rate must be above 0");
  if (words.size() > 4) {
    DIAPAUSE_TRY_ASSIGN(const double percent, parse_amount(words[4]));
    if (percent <= 0 || percent > 100)
      return fail(Code::argument,
                  "--fill-time: the percentage of memory in use must be above 0 and at most 100");
    dump.used = percent / 100;
  }
  return dump;
}

int fill_time(const PlanArguments& arguments) {
  const auto dump = dump_of_words(arguments.fill_time);
  if (!dump) return complain(dump.error());
  const model::Storage& storage = dump->storage;
  const double written_bytes = dump->used * dump->memory_bytes;
  const double ratio = dump->memory_bytes / storage.capacity_bytes;
  const double device_s = model::device_fill_time_s(storage);
  const double least_s = model::fill_time_s(storage, written_bytes);
  if (arguments.json) {
    fmt::print(
        "{{\"schema\": 1, \"kind\": \"fill_time\", \"memory_over_storage\": {}, \"written_bytes\": "
        "{}, "
        "\"device_fill_s\": {}, \"storage_bytes_per_s\": {}, \"least_s\": {}}}\n",
        ratio, written_bytes, device_s, model::storage_bytes_per_s(storage), least_s);
    return kDone;
  }
  const std::string what = dump->used < 1
                               ? fmt::format("a dump of {:.4g} %   takes", 100 * dump->used)
                               : std::string("a full dump takes   ");
  fmt::print(
      "memory over storage  {:.4g}\na device fills in    {}\nall devices write    {:.4g} GB/s\n"
      "{} {} at least\n\n"
      "The law takes all devices for busy at their full rate. Published dumps of real programs "
      "took 7 to 17 times "
      "as long.\n",
      ratio, duration_text(device_s), model::storage_bytes_per_s(storage) / 1e9, what,
      duration_text(least_s));
  return kDone;
}

// Returns a row for each size. At each size every node has the same share of the job and the same
// failure rate.
Result<std::vector<SizeRow>> size_rows(const PlanArguments& arguments) {
  if (arguments.job.node_mtbf.empty())
    return fail(Code::argument, "--sizes needs --node-mtbf: failures grow with the nodes");
  std::vector<SizeRow> rows;
  for (const std::uint64_t nodes : arguments.sizes) {
    JobOptions options = arguments.job;
    options.nodes = static_cast<std::uint32_t>(nodes);
    if (options.ranks && arguments.job.nodes) {
      options.ranks =
          static_cast<std::uint32_t>(std::uint64_t{*options.ranks} * nodes / *arguments.job.nodes);
    }
    DIAPAUSE_TRY_ASSIGN(const JobModel job, load_job_model(options));
    double rate = 0;
    for (const model::Level& level : job.levels) rate += level.failures_per_s;
    rows.push_back(
        {nodes, 1 / rate, model::best_plan(job.levels, job.powers, model::Goal::time), job.notes});
  }
  return rows;
}

// If failures have memory, or were recorded, the formula's pattern is only the start of a search.
Status search_by_runs(const PlanArguments& arguments, PlanReport& report) {
  SimulateArguments played = arguments.played;
  if (played.law == "exponential" && played.trace.empty()) return {};
  if (!played.trace.empty()) played.replicas = 1;  // a record has only one history
  DIAPAUSE_TRY_ASSIGN(const auto trace, read_failure_trace(played.trace));
  DIAPAUSE_TRY_ASSIGN(const SimulationSetup setup, simulation_setup(played, report.job, trace));
  sys::ThreadPool pool(played.threads > 0 ? played.threads : sys::usable_cores());
  RunsProgress progress(0);
  const simulate::Play play = [&](const model::Pattern& pattern, std::uint64_t first_seed) {
    simulate::Job job = setup.job;
    job.pattern = pattern;
    std::vector<double> values(played.replicas);
    pool.run(played.replicas, [&](std::uint64_t i) {
      const simulate::History run = simulate::simulate(job, setup.machine, first_seed + i);
      values[i] =
          run.work_s > 0 ? run.wall_s / run.work_s : std::numeric_limits<double>::infinity();
      progress.one_more();
    });
    return values;
  };
  const model::Pattern formula = setup.job.pattern;
  report.by_runs =
      ByRuns{played.trace.empty() ? played.law : played.trace, setup.job.levels,
             simulate::best_pattern(formula, play, played.seed), formula, played.replicas};
  return {};
}

// Writes the numbers beside the figure, under its name with .json, and draws it.
int draw(const std::string& picture, const std::string& text) {
  const std::string numbers = numbers_of_picture(picture);
  const Status written = sys::replace_text_file(sys::real_kernel(), numbers, text + "\n");
  if (!written) return complain(written.error());
  return become_python({"plan", "--output=" + picture, "--", numbers});
}

}  // namespace

int plan(const PlanArguments& arguments) {
  if (!arguments.fill_time.empty()) return fill_time(arguments);
  if (const Status can_draw = check_picture("--plot", arguments.plot); !can_draw)
    return complain(can_draw.error());
  std::string text;
  std::string numbers;
  if (!arguments.sizes.empty()) {
    const auto rows = size_rows(arguments);
    if (!rows) return complain(rows.error());
    text = sizes_text(*rows);
    numbers = sizes_json(*rows);
  } else {
    const auto job = load_job_model(arguments.job);
    if (!job) return complain(job.error());
    PlanReport report = make_plan(*job, arguments.bound_percent / 100);
    if (const Status found = search_by_runs(arguments, report); !found)
      return complain(found.error());
    text = plan_text(report);
    numbers = plan_json(report);
  }
  if (arguments.json) {
    fmt::print("{}\n", numbers);
  } else {
    fmt::print("{}", text);
  }
  if (arguments.plot.empty()) return kDone;
  std::fflush(stdout);
  return draw(arguments.plot, numbers);
}

}  // namespace diapause::cli
