// `diapause power restore` restores settings that the watchdogs of dead jobs could not; it is for
// people, and for the epilogue of a batch system. `diapause power watch` is such a watchdog.
#include <fmt/core.h>

#include "cli/collection.hpp"
#include "cli/verbs.hpp"
#include "governor/actuators/choice.hpp"
#include "governor/watchdog.hpp"
#include "sys/tasks.hpp"

namespace diapause::cli {
namespace {

Result<governor::Controls::Outcome> restore(const PowerRestoreArguments& arguments) {
  std::string state = arguments.state;
  if (state.empty()) {
    DIAPAUSE_TRY_ASSIGN(const config::Settings settings, read_settings(arguments.config));
    state = settings.governor.state_path;
  }
  sys::Kernel& kernel = sys::real_kernel();
  // To open the controls would make the directory. A node on which no governor has run has none,
  // and the epilogue of a batch system finds nothing to do there.
  if (const auto there = sys::Directory::open_private(kernel, state);
      !there && there.error().code == Code::not_found) {
    if (arguments.state.empty()) return governor::Controls::Outcome{};
    return fail(
        Code::not_found,
        fmt::format("there is no directory {}: no governor has kept its state there", state));
  }
  DIAPAUSE_TRY_ASSIGN(const std::string boot, sys::boot_id(kernel));
  DIAPAUSE_TRY_ASSIGN(governor::Controls controls, governor::Controls::open(kernel, state, boot));
  return governor::put_back_leftovers(kernel, controls);
}

}  // namespace

int power_restore(const PowerRestoreArguments& arguments) {
  const auto outcome = restore(arguments);
  if (!outcome) return complain(outcome.error());
  for (const Error& error : outcome->errors) complain(error);
  fmt::print("{} put back, {} left alone\n", outcome->put_back, outcome->left_alone);
  return outcome->errors.empty() ? kDone : kTrouble;
}

int power_watch(const PowerWatchArguments& arguments) {
  const Status watched = governor::keep_watch(sys::real_kernel(), arguments.state, arguments.owner);
  return watched ? kDone : complain(watched.error());
}

}  // namespace diapause::cli
