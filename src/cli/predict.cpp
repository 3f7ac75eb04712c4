// `diapause predict`: predicts the time of a published program with checkpoints, from the costs in
// a profile.
#include "energy/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cli/quantities.hpp"
#include "cli/text.hpp"
#include "cli/verbs.hpp"
#include "energy/profile.hpp"
#include "sys/text_file.hpp"

namespace diapause::cli {
namespace {

using json = nlohmann::ordered_json;

struct PredictedCase {
  energy::AppCosts costs;
  energy::PredictedRun original, with;
};

Result<energy::AppCosts> costs_of(const PredictArguments& arguments) {
  if (const auto text = energy::built_in_profile(arguments.machine); !text.empty()) {
    return energy::parse_app_costs(text, "built-in profile " + arguments.machine, arguments.app);
  }
  const auto text = sys::read_text_file(sys::real_kernel(), arguments.machine);
  if (text) return energy::parse_app_costs(*text, arguments.machine, arguments.app);
  return fail(Code::config,
              fmt::format("--machine: {}; built-in machines are {}", text.error().message,
                          fmt::join(energy::built_in_profiles(), ", ")));
}

Result<PredictedCase> predict_case(const PredictArguments& arguments) {
  PredictedCase one;
  DIAPAUSE_TRY_ASSIGN(one.costs, costs_of(arguments));
  DIAPAUSE_TRY_ASSIGN(const auto schedule, energy::parse_minute_schedule(arguments.schedule));
  double bytes = one.costs.bytes;
  if (!arguments.bytes.empty()) {
    DIAPAUSE_TRY_ASSIGN(bytes, parse_size_bytes(arguments.bytes));
  }
  DIAPAUSE_TRY_ASSIGN(one.original, energy::predict_run(one.costs, {}, bytes));
  DIAPAUSE_TRY_ASSIGN(one.with, energy::predict_run(one.costs, schedule, bytes));
  return one;
}

// Returns what each part of the bound covers, by its name.
std::array<std::pair<const char*, std::string>, 3> covered_by_parts() {
  const energy::Accuracy meter = energy::published_meter();
  return {
      {{"fit",
        "twice what rows were off that were left out of the fit: runs that differ, what samples "
        "missed, and the model"},
       {"bytes", "costs are taken to grow with the bytes of a checkpoint"},
       {"meter", fmt::format("of that machine: {:g} %, {}; it was the same for both runs, and "
                             "is in no change. All that the node used is charged to the run",
                             100 * *meter.share, meter.source)}}};
}

double more_percent(double value, double original) { return (value / original - 1) * 100; }

std::string predicted_text(const PredictArguments& arguments, const PredictedCase& one) {
  Table table({{printable(arguments.app + " on " + arguments.machine)},
               {"ORIGINAL", Align::right},
               {printable(arguments.schedule), Align::right},
               {"CHANGE", Align::right}});
  Table parts({{"OFF BY AT MOST"},
               {"FIT", Align::right},
               {"BYTES", Align::right},
               {"METER", Align::right},
               {"TOGETHER", Align::right}});
  const auto row = [&](const char* what, const char* unit, double original, double value,
                       const energy::PredictionOff& off) {
    const double change = off.of_change(), all = off.together();
    // The original is known, whatever is off.
    const double digits = std::min(change > 0 ? change : original / 1000, original / 100);
    table.add({what, to_the_digits_of(original, digits, unit),
               all > 0 ? value_text(value, all, unit) : rounded_text(value, 4, unit),
               value_text(more_percent(value, original), change / original * 100, "%")});
    parts.add({what, rounded_text(off.fit, 2, unit), rounded_text(off.bytes, 2, unit),
               rounded_text(off.meter, 2, unit), rounded_text(all, 2, unit)});
  };
  row("runtime", "s", one.original.seconds, one.with.seconds, one.with.seconds_off);
  row("power of a node", "W", one.original.watts(), one.with.watts(), one.with.watts_off());
  row("energy of a node", "J", one.original.joules, one.with.joules, one.with.joules_off);
  std::string text = table.text() + "\n" + parts.text();
  for (const auto& [name, covers] : covered_by_parts())
    text += fmt::format("{}: {}\n", name, covers);
  const auto& taken = one.with.checkpoints;
  return text + fmt::format("checkpoints of levels 1 to 4: {}, {}, {}, {}; costs: {}\n", taken[0],
                            taken[1], taken[2], taken[3], printable(one.costs.source));
}

json predicted_json(const PredictArguments& arguments, const PredictedCase& one) {
  const auto value = [](double original, double with, const energy::PredictionOff& off) {
    return json{{"original", original},
                {"predicted", with},
                {"off", off.together()},
                {"off_by", {{"fit", off.fit}, {"bytes", off.bytes}, {"meter", off.meter}}},
                {"percent", more_percent(with, original)},
                {"percent_off", off.of_change() / original * 100}};
  };
  json covers = json::object();
  for (const auto& [name, text] : covered_by_parts()) covers[name] = text;
  return {{"schema", 1},
          {"machine", arguments.machine},
          {"app", arguments.app},
          {"schedule", arguments.schedule},
          {"checkpoints", one.with.checkpoints},
          {"runtime_s", value(one.original.seconds, one.with.seconds, one.with.seconds_off)},
          {"node_w", value(one.original.watts(), one.with.watts(), one.with.watts_off())},
          {"node_j", value(one.original.joules, one.with.joules, one.with.joules_off)},
          {"off_by_covers", covers},
          {"source", one.costs.source}};
}

}  // namespace

int predict(const PredictArguments& arguments) {
  const auto one = predict_case(arguments);
  if (!one) return complain(one.error());
  if (arguments.json) {
    fmt::print("{}\n",
               predicted_json(arguments, *one).dump(2, ' ', false, json::error_handler_t::replace));
  } else {
    fmt::print("{}", predicted_text(arguments, *one));
  }
  return kDone;
}

}  // namespace diapause::cli
