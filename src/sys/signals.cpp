// A signal handler has no object to work on, so this file has a table for the whole process. The
// rule is that the handler only increments a lock-free atomic and calls the handler installed
// before it. Everything else happens outside of handlers and under the table's mutex, and changes
// what the handler reads only while the handler is not installed.
#include "sys/signals.hpp"

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace diapause::sys {
namespace {

struct Entry {
  std::atomic<std::uint64_t> count{0};
  struct sigaction before {};
  unsigned users = 0;
  bool installed = false;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct Table {
  std::mutex mutex;
  std::array<Entry, NSIG> entries;
};

constinit Table table;

bool has_handler(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

void note_signal(int number, siginfo_t* info, void* context) {
  const int error = errno;
  Entry& entry = table.entries[static_cast<std::size_t>(number)];
  entry.count.fetch_add(1, std::memory_order_relaxed);
  if (has_handler(entry.before)) {
    if ((entry.before.sa_flags & SA_SIGINFO) != 0) {
      entry.before.sa_sigaction(number, info, context);
    } else {
      entry.before.sa_handler(number);
    }
  }
  errno = error;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == note_signal;
}

// Installs our handler. A handler that the program has put over ours may call ours in turn. Ours
// then stays where it is and must not be installed over that one, or each would call the other for
// ever.
Status install(int number, Entry& entry) {
  struct sigaction now {};
  if (::sigaction(number, nullptr, &now) != 0) {
    return fail(os_error(fmt::format("cannot take over {}", signal_name(number)), errno));
  }
  if (entry.installed && has_handler(now)) return {};
  entry.before = now;  // set here, because the handler may run before the next call returns
  struct sigaction ours = now;  // keeps the mask and the SA_RESTART of the program's handler
  if (!has_handler(now)) ours.sa_flags = SA_RESTART;
  ours.sa_flags |= SA_SIGINFO | SA_ONSTACK;
  ours.sa_flags &= ~static_cast<int>(SA_RESETHAND);
  ours.sa_sigaction = note_signal;
  if (::sigaction(number, &ours, nullptr) != 0) {
    return fail(os_error(fmt::format("cannot take over {}", signal_name(number)), errno));
  }
  entry.installed = true;
  return {};
}

void uninstall(int number, Entry& entry) {
  struct sigaction now {};
  if (::sigaction(number, nullptr, &now) != 0 || !is_ours(now)) return;
  if (::sigaction(number, &entry.before, nullptr) == 0) entry.installed = false;
}

class ProcessStopSignals final : public StopSignals {
 public:
  ~ProcessStopSignals() override {
    const std::lock_guard lock(table.mutex);
    for (const auto& [number, count] : taken_) {
      Entry& entry = table.entries[static_cast<std::size_t>(number)];
      if (--entry.users == 0) uninstall(number, entry);
    }
  }

  Status take(std::span<const int> numbers) override {
    const std::lock_guard lock(table.mutex);
    for (const int number : numbers) {
      if (number < 1 || number >= NSIG)
        return fail(Code::argument, fmt::format("{} is no signal", number));
      Entry& entry = table.entries[static_cast<std::size_t>(number)];
      DIAPAUSE_TRY(install(number, entry));
      ++entry.users;
      taken_.emplace_back(number, entry.count.load(std::memory_order_relaxed));
    }
    return {};
  }

  int received() const override {
    for (const auto& [number, count] : taken_) {
      const Entry& entry = table.entries[static_cast<std::size_t>(number)];
      if (entry.count.load(std::memory_order_relaxed) != count) return number;
    }
    return 0;
  }

 private:
  // This has the number, and how often it had come before.
  std::vector<std::pair<int, std::uint64_t>> taken_;
};

}  // namespace

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

std::optional<int> signal_number(const std::string& name) {
  for (int number = 1; number < NSIG; ++number) {
    if (signal_name(number) == name) return number;
  }
  return std::nullopt;
}

std::unique_ptr<StopSignals> process_stop_signals() {
  return std::make_unique<ProcessStopSignals>();
}

}  // namespace diapause::sys
