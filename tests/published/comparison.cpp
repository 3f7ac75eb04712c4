#include "published/comparison.hpp"

#include <fmt/core.h>

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace diapause::published {
namespace {

// The runtime of the published rule over that at the base clock (Wilkins 2023, section 2.5.1.3).
constexpr double kCompressRule = 0.875, kCompressSlowdown = 1.075;
constexpr double kWriteRule = 0.85, kWriteSlowdown = 1.093;

constexpr int kPhases = 100;

using Row = std::map<std::string, std::string>;

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

std::vector<Row> read_csv(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error("cannot read " + path);
  const auto names = split(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const auto cells = split(line);
    Row row;
    for (std::size_t i = 0; i < cells.size() && i < names.size(); ++i) row[names[i]] = cells[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

const Row& row_of(const std::vector<Row>& rows, const std::string& column,
                  const std::string& value) {
  for (const Row& row : rows) {
    if (row.at(column) == value) return row;
  }
  throw std::runtime_error("no row with " + column + " " + value);
}

std::string percent(double ratio) { return fmt::format("{:+.1f} %", 100 * (ratio - 1)); }

std::string rule_table(const std::vector<Case>& cases, double phi) {
  std::string text =
      "| phase | processor | ratio | time | energy of the processor | of a node that draws half as "
      "much again | as "
      "much "
      "again | twice as much |\n|---|---|---|---|---|---|---|---|\n";
  for (const Case& which : cases) {
    text += fmt::format("| {} | {} | {} | {:.3f} |", which.phase, which.processor, which.rule,
                        policy::slowdown(phi, which.rule));
    for (const double rest : {0.0, 0.5, 1.0, 2.0}) {
      text += fmt::format(" {:.3f} |", policy::energy_ratio(node_of(which, rest), phi, which.rule));
    }
    text += "\n";
  }
  return text;
}

std::string measured_table(const std::vector<Case>& cases) {
  std::string text =
      "| phase | processor | rest of the node | ratio | energy, measured policy | energy, fixed "
      "rule |\n"
      "|---|---|---|---|---|---|\n";
  for (const Case& which : cases) {
    for (const double rest : {0.0, 0.5, 1.0, 2.0}) {
      const Outcome outcome = run_measured(which, rest, kPhases);
      const double rule = policy::energy_ratio(node_of(which, rest), published_phi(), which.rule);
      text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", which.phase, which.processor, rest,
                          outcome.ratio < 1 ? fmt::format("{:.3f}", outcome.ratio) : "not slowed",
                          percent(outcome.energy), percent(rule));
    }
  }
  return text;
}

std::string break_even_table(const std::vector<Case>& cases, double phi) {
  std::string text =
      "| phase | processor | best ratio for the processor alone | the rule stops saving where the "
      "rest draws |\n"
      "|---|---|---|---|\n";
  for (const Case& which : cases) {
    // The equation is slowdown (P(r) + rest) = P(1) + rest.
    const double slower = policy::slowdown(phi, which.rule);
    const double rest =
        (which.cpu.at(1) - slower * which.cpu.at(which.rule)) / (slower - 1) / which.cpu.at(1);
    text += fmt::format("| {} | {} | {:.3f} | {:.2f} times the processor |\n", which.phase,
                        which.processor,
                        policy::best_ratio(node_of(which, 0), phi, policy::kLowestRatio), rest);
  }
  return text;
}

std::string share_table(const std::vector<Case>& cases) {
  std::string text = "| phase | processor |";
  const auto shares = {0.0, 0.25, 0.5, 0.75, 1.0};
  for (const double phi : shares) text += fmt::format(" phi = {} |", phi);
  text += "\n|---|---|---|---|---|---|---|\n";
  for (const Case& which : cases) {
    text += fmt::format("| {} | {} |", which.phase, which.processor);
    for (const double phi : shares) {
      text += fmt::format(" {:.3f} |", policy::energy_ratio(node_of(which, 1), phi, which.rule));
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::vector<Case> read_cases(const std::string& folder) {
  const auto hardware = read_csv(folder + "/wilkins2023_table2_2_hardware.csv");
  std::vector<Case> cases;
  const auto add = [&](const std::string& phase, policy::PhaseKind kind, double rule,
                       const std::string& file) {
    const auto fits = read_csv(folder + "/" + file);
    for (const std::string processor : {"Broadwell", "Skylake"}) {
      const Row& fit = row_of(fits, "model_data", processor);
      const double base_ghz =
          std::stod(row_of(hardware, "series", processor).at("cpu_base_clock_ghz"));
      cases.push_back(
          {phase,
           processor,
           kind,
           rule,
           {std::stod(fit.at("a")), std::stod(fit.at("b")), std::stod(fit.at("c")), base_ghz}});
    }
  };
  add("compress", policy::PhaseKind::compress, kCompressRule,
      "wilkins2023_table2_4_compress_fits.csv");
  add("write", policy::PhaseKind::write, kWriteRule, "wilkins2023_table2_5_datawrite_fits.csv");
  return cases;
}

double published_phi() {
  return (policy::cpu_bound_share(kCompressSlowdown, kCompressRule) +
          policy::cpu_bound_share(kWriteSlowdown, kWriteRule)) /
         2;
}

policy::NodePower node_of(const Case& which, double rest) {
  return {which.cpu, rest * which.cpu.at(1)};
}

Outcome run_measured(const Case& which, double rest, int phases) {
  config::GovernorSettings settings;
  settings.policy = config::ThrottlePolicy::measured;
  const policy::NodePower power = node_of(which, rest);
  policy::Throttle throttle(settings);
  Outcome outcome{1, 0};
  for (int i = 0; i < phases; ++i) {
    const policy::Choice choice = throttle.choose({which.kind, 1}, power);
    if (choice.why == policy::Why::saves) outcome.ratio = choice.ratio;
    throttle.learn(
        {choice.ratio, 1, policy::slowdown(published_phi(), choice.ratio), std::nullopt});
    outcome.energy += policy::energy_ratio(power, published_phi(), choice.ratio) / phases;
  }
  return outcome;
}

std::string tables(const std::vector<Case>& cases) {
  const double phi = published_phi();
  return fmt::format(
             "With phi = {:.3f}, the fixed rule costs, over the same phase at the base clock:\n\n",
             phi) +
         rule_table(cases, phi) + "\nIt stops saving early:\n\n" + break_even_table(cases, phi) +
         fmt::format(
             "\nThe measured policy on the same machines, over {} phases with all its trials and "
             "comparisons:\n\n",
             kPhases) +
         measured_table(cases) +
         "\nThe fixed rule where the rest of the node draws as much as the processor, for phases "
         "that depend more or "
         "less "
         "on the clock:\n\n" +
         share_table(cases);
}

}  // namespace diapause::published
