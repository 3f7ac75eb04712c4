// Fabrics that programs use by other means than verbs. What is in their adapters cannot be seen
// from here, so it cannot be restored.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace diapause::fabric {

// Fails if a variable of this environment chooses such a fabric, with its name and what to set
// instead.
Status check_choice(std::span<const std::pair<std::string, std::string>> environment);

// How a process uses verbs.
enum class Way { by_our_library, otherwise };
// Says why a process that has this device open cannot be restored, and what to set instead. The
// text is empty if the device is none of a fabric, or is dealt with.
std::string trouble_with_device(const std::string& path, Way way);

}  // namespace diapause::fabric
