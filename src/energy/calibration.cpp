#include "energy/calibration.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "energy/fit.hpp"

namespace diapause::energy {
namespace {

using nlohmann::json;

constexpr double kBusy = 0.8;          // utilisation of a sample for P(f)
constexpr double kSameClock = 0.03;    // a clock up to this share below the base clock counts as it
constexpr double kLeastSpread = 0.25;  // of the utilisation; with less spread, idle power is noise
constexpr double kLeastRateGbS = 0.01;  // a lower rate tells nothing about the cost of a byte

bool is_near(double ghz, double base_ghz) {
  return ghz <= 0 || base_ghz <= 0 || ghz >= (1 - kSameClock) * base_ghz;
}

double rate_of(Domain domain, const Activity& activity) {
  if (domain == Domain::dram) return activity.memory_gb_s;
  if (domain == Domain::disk) return activity.disk_gb_s;
  return domain == Domain::network ? activity.network_gb_s : 0;
}

// The rest of the node has no rate of its own; disks that nothing measures belong to it.
double rate_in_rest(const Activity& activity) { return activity.disk_gb_s + activity.network_gb_s; }

class Fitter {
 public:
  Fitter(std::span<const CalibrationSample> samples, const std::string& where)
      : samples_(samples), where_(where) {}

  Result<Profile> fit() {
    if (samples_.size() < 3)
      return fail(Code::argument, "three samples are the least that a profile can be made of");
    const auto [least, most] =
        std::minmax_element(samples_.begin(), samples_.end(), [](const auto& a, const auto& b) {
          return a.activity.utilisation < b.activity.utilisation;
        });
    if (most->activity.utilisation - least->activity.utilisation < kLeastSpread) {
      return fail(
          Code::argument,
          fmt::format("the samples do not differ enough in what the node does: {:.0f} to {:.0f} % "
                      "of its processors were busy; is somebody else using it?",
                      100 * least->activity.utilisation, 100 * most->activity.utilisation));
    }
    profile_.name = "calibrated";
    profile_.machine = where_;
    fit_curve();
    for (const Domain domain : measured_domains()) DIAPAUSE_TRY(fit_domain(domain));
    if (profile_.domains.empty())
      return fail(Code::argument, "no domain was measured in all samples");
    return std::move(profile_);
  }

 private:
  std::set<Domain> measured_domains() const {
    std::set<Domain> domains;
    for (const auto& [domain, watts] : samples_.front().watts) {
      const bool is_everywhere =
          std::all_of(samples_.begin(), samples_.end(),
                      [d = domain](const auto& sample) { return sample.watts.contains(d); });
      const bool is_part = domain == Domain::package || domain == Domain::dram ||
                           domain == Domain::gpu || domain == Domain::disk ||
                           domain == Domain::network;
      if (is_everywhere && (is_part || domain == Domain::node)) domains.insert(domain);
    }
    return domains;
  }

  // Returns the power of a domain; for the node, what its measured parts leave of it.
  double watts_of(const CalibrationSample& sample, Domain domain) const {
    double watts = sample.watts.at(domain);
    if (domain != Domain::node) return watts;
    for (const Domain part : measured_domains()) {
      if (part != Domain::node) watts -= sample.watts.at(part);
    }
    return watts;
  }

  void fit_curve() {
    std::vector<double> ghz, watts;
    for (const CalibrationSample& sample : samples_) {
      const auto package = sample.watts.find(Domain::package);
      if (sample.activity.utilisation < kBusy || sample.activity.ghz <= 0 ||
          package == sample.watts.end())
        continue;
      ghz.push_back(sample.activity.ghz);
      watts.push_back(package->second);
    }
    if (ghz.empty()) return;
    base_ghz_ = *std::max_element(ghz.begin(), ghz.end());
    profile_.base_clock_ghz = Number{base_ghz_, "highest clock of all samples; " + where_};
    const double base_w =
        watts[static_cast<std::size_t>(std::max_element(ghz.begin(), ghz.end()) - ghz.begin())];
    const bool is_one_clock =
        std::all_of(ghz.begin(), ghz.end(), [this](double f) { return is_near(f, base_ghz_); });
    for (double& value : watts) value /= base_w;
    const auto fit = is_one_clock ? std::nullopt : fit_power_law(ghz, watts);
    if (!fit) return;
    const std::string source =
        fmt::format("fitted to {} samples, {:.3g} rms; {}", ghz.size(), fit->rms, where_);
    profile_.curve = PowerCurve{{fit->a, source}, {fit->b, source}, {fit->c, source}};
  }

  Status fit_domain(Domain domain) {
    std::vector<std::vector<double>> rows;
    std::vector<double> watts;
    double most_rate = 0;
    for (const CalibrationSample& sample : samples_) {
      if (!is_near(sample.activity.ghz, base_ghz_)) continue;
      const double rate =
          domain == Domain::node ? rate_in_rest(sample.activity) : rate_of(domain, sample.activity);
      rows.push_back({1, sample.activity.utilisation, rate});
      watts.push_back(watts_of(sample, domain));
      most_rate = std::max(most_rate, rate);
    }
    const bool has_rate = domain != Domain::node && most_rate >= kLeastRateGbS;
    if (!has_rate) {
      for (auto& row : rows) row.pop_back();
    }
    const auto fit = fit_linear(rows, watts);
    if (!fit) {
      return fail(Code::argument,
                  fmt::format("{}: the samples do not differ enough in what the node does",
                              domain_name(domain)));
    }
    const std::string source =
        fmt::format("fitted to {} samples, {:.2g} W rms; {}", rows.size(), fit->rms, where_);
    DomainModel model;
    model.domain = domain == Domain::node ? Domain::other : domain;
    model.idle_w = {fit->coefficients[0], source};
    model.busy_w = {fit->coefficients[1], source};
    if (has_rate) model.j_per_gb = {fit->coefficients[2], source};
    profile_.domains.push_back(model);
    return {};
  }

  std::span<const CalibrationSample> samples_;
  const std::string& where_;
  double base_ghz_ = 0;
  Profile profile_;
};

}  // namespace

std::string sample_line(const CalibrationSample& sample) {
  json watts = json::object();
  for (const auto& [domain, value] : sample.watts) watts[std::string(domain_name(domain))] = value;
  const Activity& activity = sample.activity;
  return json{{"step", sample.step},
              {"utilisation", activity.utilisation},
              {"ghz", activity.ghz},
              {"memory_gb_s", activity.memory_gb_s},
              {"disk_gb_s", activity.disk_gb_s},
              {"network_gb_s", activity.network_gb_s},
              {"watts", watts}}
      .dump();
}

Result<CalibrationSample> parse_sample(const std::string& line) {
  const json object = json::parse(line, nullptr, false);
  if (!object.is_object() || !object.contains("watts") || !object["watts"].is_object()) {
    return fail(Code::corrupt, "is no sample");
  }
  const auto number = [&](const char* name) {
    return object.contains(name) && object[name].is_number() ? object[name].get<double>() : 0.0;
  };
  CalibrationSample sample;
  sample.step = object.contains("step") && object["step"].is_string()
                    ? object["step"].get<std::string>()
                    : "";
  sample.activity = {number("utilisation"), number("ghz"), number("memory_gb_s"),
                     number("disk_gb_s"), number("network_gb_s")};
  for (const auto& [name, value] : object["watts"].items()) {
    const auto found = std::find(kDomainNames.begin(), kDomainNames.end(), name);
    if (found == kDomainNames.end() || !value.is_number())
      return fail(Code::corrupt, "has no watts of '" + name + "'");
    sample.watts[static_cast<Domain>(found - kDomainNames.begin())] = value.get<double>();
  }
  return sample;
}

Result<Profile> fit_profile(std::span<const CalibrationSample> samples, const std::string& where) {
  return Fitter(samples, where).fit();
}

Result<Number> hold_out_error(const Profile& profile, std::span<const CalibrationSample> samples,
                              double counters_off, const std::string& where) {
  const auto is_rest = [](const DomainModel& model) { return model.domain == Domain::other; };
  const bool is_node = std::any_of(profile.domains.begin(), profile.domains.end(), is_rest);
  double greatest = 0;
  for (const CalibrationSample& sample : samples) {
    double modelled_w = 0;
    double measured_w = 0;
    for (const DomainModel& model : profile.domains) {
      modelled_w += model_watts(profile, model, sample.activity);
      const Domain measured_as = is_rest(model) ? Domain::node : model.domain;
      const auto watts = sample.watts.find(measured_as);
      if (watts == sample.watts.end()) {
        return fail(Code::argument, fmt::format("step {}: {} was not measured", sample.step,
                                                domain_name(measured_as)));
      }
      // The reading of the node contains all its parts.
      if (is_rest(model) || !is_node) measured_w += watts->second;
    }
    if (measured_w <= 0)
      return fail(Code::argument, fmt::format("step {}: no power was measured", sample.step));
    if (modelled_w <= 0)
      return fail(Code::argument, fmt::format("step {}: the profile says 0 W", sample.step));
    greatest = std::max(greatest, std::abs(modelled_w - measured_w) / modelled_w);
  }
  return Number{
      greatest + counters_off * (1 + greatest),
      fmt::format("greatest of {} samples that were not fitted, {:.2g} %, and {:.2g} % of "
                  "the counters; {}",
                  samples.size(), 100 * greatest, 100 * counters_off, where)};
}

}  // namespace diapause::energy
