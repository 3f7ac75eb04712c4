#include "governor/actuators/dry_run.hpp"

#include <fmt/core.h>

namespace diapause::governor {
namespace {

class DryRun final : public Actuator {
 public:
  explicit DryRun(LogSink log) : log_(std::move(log)) {}

  Traits traits() const override {
    return {.name = "dry-run", .sets_clock = true, .slows_cores = false};
  }
  Status check(const Where&) override { return {}; }

  Result<double> slow(const Where& where, double ratio) override {
    log_(Severity::information,
         fmt::format("governor (dry run): would slow {} cores and {} threads to {:.3f} of the "
                     "base clock",
                     where.cpus.size(), where.threads.size(), ratio));
    slowed_ = true;
    return 1.0;  // the ratio obtained
  }

  Status restore() override {
    if (slowed_) log_(Severity::information, "governor (dry run): would put the clock back");
    slowed_ = false;
    return {};
  }

 private:
  LogSink log_;
  bool slowed_ = false;
};

}  // namespace

std::unique_ptr<Actuator> make_dry_run(LogSink log) {
  return std::make_unique<DryRun>(std::move(log));
}

}  // namespace diapause::governor
