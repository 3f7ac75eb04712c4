#include "agent/course.hpp"

#include <algorithm>

namespace diapause::agent {

void account_for(const Course& course, engine::Captures& captures) {
  captures.before = {engine::make_phase("freeze", course.stopped_s, course.frozen_s),
                     engine::make_phase("dump", course.frozen_s, course.connections_s),
                     engine::make_phase("connections", course.connections_s, course.dumped_s)};
  engine::CaptureTimes& times = captures.times;
  const double captured_s = times.begun_s + captures.capture_s;
  const double blocked_until_s = course.thawed_s.value_or(captured_s);
  times.called_s = times.begun_s = course.dumped_s;
  times.blocked_s = blocked_until_s - course.dumped_s;
  times.drain_begun_s = blocked_until_s;
  times.drain_s = std::max(captured_s - blocked_until_s, 0.0);
  if (course.thawed_s) captures.levels_beside = energy::Beside::program;
}

}  // namespace diapause::agent
