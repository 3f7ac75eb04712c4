#include "governor/actuators/files.hpp"

#include <algorithm>
#include <charconv>

namespace diapause::governor {
namespace {

// Returns the ratio of the value to that of the base clock; 1 if there is no limit.
double ratio_of(const std::string& value, double full) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  return error == std::errc() && number > 0 ? std::min(1.0, number / full) : 1.0;
}

class FileActuator final : public Actuator {
 public:
  FileActuator(std::unique_ptr<Planner> planner, Controls& controls, Owner owner)
      : planner_(std::move(planner)), controls_(controls), owner_(owner) {}
  ~FileActuator() override { (void)controls_.disband(owner_); }

  Traits traits() const override { return planner_->traits(); }
  Status check(const Where& where) override { return planner_->check(where); }

  Result<double> slow(const Where& where, double ratio) override {
    DIAPAUSE_TRY_ASSIGN(const Plan plan, planner_->plan(where, ratio));
    DIAPAUSE_TRY_ASSIGN(const auto held, controls_.want(owner_, plan.settings));
    double highest = 0;
    for (std::size_t i = 0; i < held.size(); ++i)
      highest = std::max(highest, ratio_of(held[i], plan.full[i]));
    return highest;
  }

  Status restore() override {
    DIAPAUSE_TRY_ASSIGN(const Controls::Outcome outcome, controls_.want_nothing(owner_));
    if (outcome.errors.empty()) return {};
    return fail(outcome.errors.front());
  }

 private:
  std::unique_ptr<Planner> planner_;
  Controls& controls_;
  Owner owner_;
};

}  // namespace

std::unique_ptr<Actuator> make_file_actuator(std::unique_ptr<Planner> planner, Controls& controls,
                                             Owner owner) {
  return std::make_unique<FileActuator>(std::move(planner), controls, owner);
}

}  // namespace diapause::governor
