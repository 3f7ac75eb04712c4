// An actuator that logs what it would do, and does nothing.
#pragma once

#include <memory>

#include "base/log.hpp"
#include "governor/actuator.hpp"

namespace diapause::governor {

std::unique_ptr<Actuator> make_dry_run(LogSink log);

}  // namespace diapause::governor
