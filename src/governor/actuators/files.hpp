// The actuator behind every planner: values in files, journalled and watched.
#pragma once

#include <memory>

#include "governor/actuator.hpp"
#include "governor/controls.hpp"
#include "governor/watchdog.hpp"

namespace diapause::governor {

// `controls` must outlive it. Its destructor puts back what is left, groups too.
std::unique_ptr<Actuator> make_file_actuator(std::unique_ptr<Planner> planner, Controls& controls, Owner owner);

}  // namespace diapause::governor
