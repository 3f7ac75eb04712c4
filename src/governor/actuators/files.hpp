// The actuator of every planner, which writes values into files, with a journal and a watchdog.
#pragma once

#include <memory>

#include "governor/actuator.hpp"
#include "governor/controls.hpp"
#include "governor/watchdog.hpp"

namespace diapause::governor {

// `controls` must outlive the actuator. The actuator's destructor restores what is left, and
// removes groups.
std::unique_ptr<Actuator> make_file_actuator(std::unique_ptr<Planner> planner, Controls& controls,
                                             Owner owner);

}  // namespace diapause::governor
