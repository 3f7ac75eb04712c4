// A cap on what the scheduler takes a thread to need (uclamp.max): no privilege, and it ends with the thread. The
// scheduler asks cpufreq for less then, where the governor is schedutil. Only threads of the calling process are
// capped: those of others would stay so if this one died.
#pragma once

#include <memory>

#include "governor/actuator.hpp"

namespace diapause::governor {

// How a cap is read and written; replaced in tests, as kernels without CONFIG_UCLAMP_TASK are common.
struct CapCalls {
  Result<std::uint32_t> (*read)(std::int64_t thread);
  Status (*write)(std::int64_t thread, std::uint32_t most);
};
CapCalls kernel_cap_calls();

std::unique_ptr<Actuator> make_utilisation_cap(sys::Kernel& kernel, CapCalls calls);

}  // namespace diapause::governor
