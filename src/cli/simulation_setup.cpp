#include "cli/simulation_setup.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cli/planning.hpp"
#include "cli/quantities.hpp"
#include "sys/text_file.hpp"

namespace diapause::cli {
namespace {

constexpr double kYear_s = 31557600;

// Parses "a:b:c" into numbers. The first `times` of them are times.
Result<std::vector<double>> colon_values(const std::string& text, std::size_t times,
                                         std::size_t all) {
  std::vector<double> values;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    DIAPAUSE_TRY_ASSIGN(const double value,
                        values.size() < times ? parse_time_s(part) : parse_amount(part));
    values.push_back(value);
    begin = end + 1;
  }
  if (values.size() == all) return values;
  return fail(Code::argument,
              fmt::format("'{}' should have {} values with ':' between them", text, all));
}

Result<model::FailureLaw> law_of(const std::string& text) {
  model::FailureLaw law;
  const std::string name = text.substr(0, text.find(':'));
  if (name == "exponential" && name == text) return law;
  law.kind = name == "weibull" ? model::LawKind::weibull : model::LawKind::lognormal;
  if ((name == "weibull" || name == "lognormal") && name.size() < text.size()) {
    DIAPAUSE_TRY_ASSIGN(law.shape, parse_amount(text.substr(name.size() + 1)));
    if (law.shape >= 0.05 && law.shape <= 20) return law;
  }
  return fail(
      Code::argument,
      fmt::format("--law: '{}' is not exponential, weibull:SHAPE or lognormal:SHAPE with a shape "
                  "from 0.05 to 20",
                  text));
}

class SetupMaker {
 public:
  SetupMaker(const SimulateArguments& arguments, const JobModel& model) : arguments_(arguments) {
    setup_.model = model;
  }

  Result<SimulationSetup> make(const std::optional<simulate::FailureTrace>& trace) {
    DIAPAUSE_TRY(set_machine());
    DIAPAUSE_TRY(set_schedule());
    DIAPAUSE_TRY(set_ends());
    note_lost_allocations();
    if (trace) {
      DIAPAUSE_TRY(set_trace(*trace));
    } else {
      DIAPAUSE_TRY(set_classes());
    }
    DIAPAUSE_TRY(simulate::check(setup_.job, setup_.machine));
    return std::move(setup_);
  }

 private:
  Status set_schedule() {
    simulate::Job& job = setup_.job;
    job.powers = setup_.model.powers;
    job.levels = setup_.model.levels;
    if (arguments_.interval.empty()) {
      const auto goal = arguments_.goal == "time" ? model::Goal::time : model::Goal::energy;
      const auto plan = model::best_plan(levels_with_all_failures(), setup_.model.powers, goal);
      if (!plan) {
        return fail(Code::argument,
                    nothing_helps_text(setup_.model) + ", or --interval to play it nevertheless");
      }
      job.levels = plan->levels;
      job.pattern = plan->pattern;
      take_last_checkpoints();
      return {};
    }
    DIAPAUSE_TRY_ASSIGN(job.pattern.work_s, parse_time_s(arguments_.interval));
    job.pattern.every.assign(job.levels.size(), 1);
    if (arguments_.every.empty() && job.levels.size() == 1) return {};
    if (arguments_.every.size() + 1 != job.levels.size()) {
      return fail(Code::argument,
                  fmt::format("--every needs {} numbers: one for each level but the first",
                              job.levels.size() - 1));
    }
    for (std::size_t i = 0; i < arguments_.every.size(); ++i) {
      job.pattern.every[i + 1] = static_cast<double>(arguments_.every[i]);
    }
    return {};
  }

  // The last checkpoint of an allocation has the deepest level of the job, also where the schedule
  // takes it never.
  void take_last_checkpoints() {
    const model::Level& deepest = setup_.model.levels.back();
    const bool has_deepest = setup_.job.levels.back().number == deepest.number;
    if (!arguments_.allocation.empty() && !has_deepest) setup_.job.levels.push_back(deepest);
  }

  // Whatever level a job takes last, what is on the nodes is lost with them.
  void note_lost_allocations() {
    const int deepest = setup_.model.levels.back().number;
    if (arguments_.allocation.empty() || deepest >= 4) return;
    setup_.model.notes.push_back(
        fmt::format("the next allocation may have other nodes, where level {} has nothing: each "
                    "allocation begins from scratch; --levels with 4 lets it continue",
                    deepest));
  }

  // Returns the levels with the failures of power domains counted for the first of them that
  // survives the loss of one.
  std::vector<model::Level> levels_with_all_failures() const {
    std::vector<model::Level> levels = setup_.model.levels;
    if (power_domain_s_ <= 0) return levels;
    simulate::Losses one_domain;
    for (std::uint32_t node = 0; node < power_domain_nodes_; ++node) one_domain.nodes.insert(node);
    const auto fits = [&](const model::Level& level) {
      return simulate::survives(setup_.machine.placement, level.number, one_domain);
    };
    const auto found = std::ranges::find_if(levels, fits);
    (found == levels.end() ? levels.back() : *found).failures_per_s += 1 / power_domain_s_;
    return levels;
  }

  Status set_time(const std::string& text, double& seconds) {
    if (text.empty()) return {};
    DIAPAUSE_TRY_ASSIGN(seconds, parse_time_s(text));
    return {};
  }

  Status set_ends() {
    DIAPAUSE_TRY(set_time(arguments_.work, setup_.job.work_s));
    DIAPAUSE_TRY(set_time(arguments_.horizon, setup_.job.horizon_s));
    if (arguments_.work.empty() && arguments_.horizon.empty()) setup_.job.horizon_s = kYear_s;
    // A run that makes hardly any progress must end as well.
    if (arguments_.horizon.empty() && !arguments_.work.empty())
      setup_.job.horizon_s = setup_.job.work_s * 1000;
    return {};
  }

  Status set_machine() {
    simulate::Machine& machine = setup_.machine;
    machine.placement = {setup_.model.nodes, setup_.model.group_nodes, setup_.model.parity};
    machine.spares = arguments_.spares;
    if (arguments_.shrink) machine.without_spare = simulate::WithoutSpare::shrink;
    DIAPAUSE_TRY(set_time(arguments_.allocation, machine.allocation_s));
    DIAPAUSE_TRY(set_time(arguments_.queue, machine.queue_s));
    DIAPAUSE_TRY(set_time(arguments_.repair, repair_s_));
    DIAPAUSE_TRY(set_power_domains());
    if (!arguments_.throttle.empty()) {
      DIAPAUSE_TRY_ASSIGN(const auto factors, colon_values(arguments_.throttle, 0, 2));
      setup_.job.throttling = {factors[0], factors[1]};
    }
    if (!arguments_.others.empty()) {
      DIAPAUSE_TRY_ASSIGN(const auto values, colon_values(arguments_.others, 2, 3));
      machine.contention = {values[0], values[1], values[2]};
    }
    return {};
  }

  Status set_power_domains() {
    const std::string& text = arguments_.power_domain;
    if (text.empty()) return {};
    const std::size_t colon = std::min(text.find(':'), text.size());
    DIAPAUSE_TRY_ASSIGN(const double nodes, parse_amount(text.substr(0, colon)));
    DIAPAUSE_TRY_ASSIGN(power_domain_s_,
                        parse_time_s(text.substr(std::min(colon + 1, text.size()))));
    if (nodes >= 1 && nodes <= setup_.model.nodes && nodes == std::floor(nodes) &&
        power_domain_s_ > 0) {
      power_domain_nodes_ = static_cast<std::uint32_t>(nodes);
      return {};
    }
    return fail(Code::argument,
                fmt::format("--power-domain: '{}' is not NODES:TIME with 1 to {} nodes of the job "
                            "and a mean time between failures",
                            text, setup_.model.nodes));
  }

  // Sets the failure classes. The rates of the whole job are divided among units of so many nodes.
  Status set_classes() {
    DIAPAUSE_TRY_ASSIGN(const model::FailureLaw law, law_of(arguments_.law));
    for (const model::Level& level : setup_.model.levels) {
      if (level.failures_per_s <= 0) continue;
      simulate::FailureClass one;
      one.name = kClassNames[level.number];
      const std::uint32_t nodes = setup_.model.nodes;
      one.nodes_each = level.number <= 2   ? 1
                       : level.number == 3 ? std::clamp(arguments_.cabinet_nodes, 1U, nodes)
                                           : nodes;
      constexpr simulate::Takes kTakes[] = {simulate::Takes::process,   simulate::Takes::process,
                                            simulate::Takes::nodes,     simulate::Takes::nodes,
                                            simulate::Takes::all_nodes, simulate::Takes::site};
      one.takes = kTakes[level.number];
      if (level.number == 3 && arguments_.cabinet_nodes == 0) one.least_level = 3;
      add_class(one, law, 1 / level.failures_per_s);
    }
    if (power_domain_s_ > 0) {
      simulate::FailureClass one;
      one.name = "power domain";
      one.nodes_each = power_domain_nodes_;
      add_class(one, law, power_domain_s_);
    }
    const bool plain = law.kind == model::LawKind::exponential && !setup_.machine.spares &&
                       arguments_.cabinet_nodes == 0 && power_domain_s_ <= 0 &&
                       arguments_.allocation.empty() && arguments_.throttle.empty() &&
                       arguments_.others.empty();
    if (plain) setup_.expected_wall_per_work = expected();
    return {};
  }

  // `mean_s` is the mean time between failures of any unit of the job.
  void add_class(simulate::FailureClass one, const model::FailureLaw& law, double mean_s) {
    const std::uint32_t units = (setup_.model.nodes + one.nodes_each - 1) / one.nodes_each;
    one.law = law;
    one.law.mean_s = units * mean_s;
    one.repair_s = repair_s_;
    setup_.machine.classes.push_back(std::move(one));
  }

  // Returns the expected cost of what is simulated, in which failures of levels that the schedule
  // leaves out count for the next deeper one.
  double expected() const {
    return model::cost_of(setup_.job.levels, setup_.job.pattern).wall_per_work();
  }

  Status set_trace(const simulate::FailureTrace& trace) {
    if (trace.nodes > setup_.model.nodes) {
      return fail(Code::argument,
                  fmt::format("the trace names node {}, and the job has {} nodes: give --nodes {}",
                              trace.nodes - 1, setup_.model.nodes, trace.nodes));
    }
    setup_.machine.record = trace.failures;
    setup_.machine.record_period_s = std::max(trace.length_s, 1.0);
    return {};
  }

  const SimulateArguments& arguments_;
  SimulationSetup setup_;
  double repair_s_ = 0;
  std::uint32_t power_domain_nodes_ = 0;
  double power_domain_s_ = 0;  // mean time between failures of any; 0: they do not fail
};

}  // namespace

Result<std::optional<simulate::FailureTrace>> read_failure_trace(const std::string& path) {
  if (path.empty()) return std::nullopt;
  std::string text;
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  DIAPAUSE_TRY(sys::read_lines(sys::real_kernel(), path, [&](std::string_view line) {
    if (text.size() < kMostBytes) text.append(line).push_back('\n');
  }));
  if (text.size() >= kMostBytes) return fail(Code::argument, path + " has more than 1 GiB");
  DIAPAUSE_TRY_ASSIGN(auto trace, simulate::parse_failure_trace(text, path));
  return std::optional(std::move(trace));
}

Result<SimulationSetup> simulation_setup(const SimulateArguments& arguments, const JobModel& model,
                                         const std::optional<simulate::FailureTrace>& trace) {
  return SetupMaker(arguments, model).make(trace);
}

}  // namespace diapause::cli
