#include "governor/actuators/uclamp.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "sys/process.hpp"
#include "sys/tasks.hpp"

namespace diapause::governor {
namespace {

constexpr double kWholeCore = 1024;

class UtilisationCap final : public Actuator {
 public:
  UtilisationCap(sys::Kernel& kernel, CapCalls calls) : kernel_(kernel), calls_(calls) {}

  Traits traits() const override {
    return {.name = "uclamp", .sets_clock = false, .slows_cores = false, .is_real = true};
  }

  Status check(const Where&) override {
    const std::int64_t self = sys::thread_id();
    DIAPAUSE_TRY_ASSIGN(const std::uint32_t cap, calls_.read(self));
    return calls_.write(self, cap);  // some kernels can read the cap and not set it
  }

  Result<double> slow(const Where& where, double ratio) override {
    const auto most = static_cast<std::uint32_t>(std::lround(ratio * kWholeCore));
    DIAPAUSE_TRY_ASSIGN(const auto own, sys::threads_of(kernel_, sys::process_id()));
    for (const std::int64_t thread : where.threads) {
      if (!std::ranges::binary_search(own, thread)) continue;
      if (const Status capped = cap(thread, most); !capped) {
        (void)restore();
        return fail(capped.error());
      }
    }
    if (capped_.empty())
      return fail(Code::not_found, "there is no thread whose utilisation could be capped lower");
    return ratio;
  }

  Status restore() override {
    Status result;
    for (const Capped& one : capped_) {
      const auto current = calls_.read(one.thread);
      // It has ended, or another process has changed its cap.
      if (!current || *current != one.ours) continue;
      if (auto status = calls_.write(one.thread, one.original); !status) result = status;
    }
    capped_.clear();
    return result;
  }

 private:
  struct Capped {
    std::int64_t thread;
    std::uint32_t original, ours;
  };

  Status cap(std::int64_t thread, std::uint32_t most) {
    const auto original = calls_.read(thread);
    if (!original) return original.error().os_errno == ESRCH ? Status() : fail(original.error());
    if (*original <= most) return {};
    DIAPAUSE_TRY(calls_.write(thread, most));
    capped_.push_back({thread, *original, most});
    return {};
  }

  sys::Kernel& kernel_;
  CapCalls calls_;
  std::vector<Capped> capped_;
};

}  // namespace

CapCalls kernel_cap_calls() { return {sys::utilisation_cap, sys::cap_utilisation}; }

std::unique_ptr<Actuator> make_utilisation_cap(sys::Kernel& kernel, CapCalls calls) {
  return std::make_unique<UtilisationCap>(kernel, calls);
}

}  // namespace diapause::governor
