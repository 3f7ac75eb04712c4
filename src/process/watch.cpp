#include "process/watch.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <utility>

namespace diapause::process {
namespace {

constexpr std::array kHandedOn = {SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGUSR1,
                                  SIGUSR2, SIGCONT, SIGWINCH, SIGTSTP};

}  // namespace

Result<Watch> Watch::begin() {
  sigset_t taken;
  sigemptyset(&taken);
  sigaddset(&taken, SIGCHLD);
  for (const int number : kHandedOn) sigaddset(&taken, number);
  sigset_t before;
  if (::sigprocmask(SIG_BLOCK, &taken, &before) != 0)
    return fail(os_error("blocking signals", errno));
  const int signals = ::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) {
    const int error = errno;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return fail(os_error("making a signalfd", error));
  }
  return Watch(signals, before);
}

Watch::Watch(Watch&& other) noexcept
    : signals_(std::exchange(other.signals_, -1)), mask_before_(other.mask_before_) {}

Watch::~Watch() {
  if (signals_ < 0) return;
  ::close(signals_);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::optional<Event> Watch::wait(int door, std::optional<double> most_s) {
  std::array<pollfd, 2> asked = {pollfd{signals_, POLLIN, 0}, pollfd{door, POLLIN, 0}};
  const int most_ms = most_s ? static_cast<int>(std::ceil(*most_s * 1000)) : -1;
  const int found = ::poll(asked.data(), asked.size(), most_ms);
  if (found == 0) return std::nullopt;
  Event event;
  event.has_knocked = found > 0 && (asked[1].revents & POLLIN) != 0;
  signalfd_siginfo signal{};
  if (::read(signals_, &signal, sizeof signal) != sizeof signal) return event;
  if (signal.ssi_signo == SIGCHLD) {
    event.is_child = true;
  } else {
    event.signal = static_cast<int>(signal.ssi_signo);
    event.is_of_terminal = signal.ssi_code == SI_KERNEL;
  }
  return event;
}

}  // namespace diapause::process
