// The actuator that caps the utilisation that the scheduler assumes for a thread (uclamp.max). It
// needs no privilege, and the cap ends with the thread. The scheduler then asks cpufreq for a lower
// clock if the governor is schedutil. Only threads of the calling process are capped, because the
// caps of others would remain if this process died.
#pragma once

#include <memory>

#include "governor/actuator.hpp"

namespace diapause::governor {

// The functions that read and write a cap. Tests replace them, because kernels without
// CONFIG_UCLAMP_TASK are common.
struct CapCalls {
  Result<std::uint32_t> (*read)(std::int64_t thread);
  Status (*write)(std::int64_t thread, std::uint32_t most);
};
CapCalls kernel_cap_calls();

std::unique_ptr<Actuator> make_utilisation_cap(sys::Kernel& kernel, CapCalls calls);

}  // namespace diapause::governor
