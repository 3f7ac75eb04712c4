// `diapause predict`: predicts the time of a published program with checkpoints, from the costs in
// a profile.
#include "energy/predict.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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
  DIAPAUSE_TRY_ASSIGN(const std::string text,
                      sys::read_text_file(sys::real_kernel(), arguments.machine));
  return energy::parse_app_costs(text, arguments.machine, arguments.app);
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

double more_percent(double value, double original) { return (value / original - 1) * 100; }

std::string predicted_text(const PredictArguments& arguments, const PredictedCase& one) {
  Table table({{printable(arguments.app + " on " + arguments.machine)},
               {"ORIGINAL", Align::right},
               {printable(arguments.schedule), Align::right},
               {"CHANGE", Align::right}});
  const auto row = [&](const char* what, const char* unit, double original, double value,
                       double off) {
    const double digits = std::min(off, original / 100);  // the original is known, whatever is off
    table.add({what,
               off > 0 ? to_the_digits_of(original, digits, unit) : rounded_text(original, 4, unit),
               off > 0 ? value_text(value, off, unit) : rounded_text(value, 4, unit),
               value_text(more_percent(value, original), off / original * 100, "%")});
  };
  row("runtime", "s", one.original.seconds, one.with.seconds, one.with.seconds_off);
  row("power of a node", "W", one.original.watts(), one.with.watts(), one.with.watts_off());
  row("energy of a node", "J", one.original.joules, one.with.joules, one.with.joules_off);
  const auto& taken = one.with.checkpoints;
  return table.text() + fmt::format("checkpoints of levels 1 to 4: {}, {}, {}, {}; costs: {}\n",
                                    taken[0], taken[1], taken[2], taken[3],
                                    printable(one.costs.source));
}

json predicted_json(const PredictArguments& arguments, const PredictedCase& one) {
  const auto value = [](double original, double with, double off) {
    return json{{"original", original},
                {"predicted", with},
                {"off", off},
                {"percent", more_percent(with, original)}};
  };
  return {{"schema", 1},
          {"machine", arguments.machine},
          {"app", arguments.app},
          {"schedule", arguments.schedule},
          {"checkpoints", one.with.checkpoints},
          {"runtime_s", value(one.original.seconds, one.with.seconds, one.with.seconds_off)},
          {"node_w", value(one.original.watts(), one.with.watts(), one.with.watts_off())},
          {"node_j", value(one.original.joules, one.with.joules, one.with.joules_off)},
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
