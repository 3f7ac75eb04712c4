#include "library/deadline.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/job/allocation.hpp"
#include "sys/process.hpp"
#include "sys/text_file.hpp"

namespace diapause::library {
namespace {

// The signals and the end that rank 0's settings ask to watch. Launchers do not always pass the
// environment on to other nodes.
struct Watch {
  std::uint64_t signals = 0;  // bit n - 1 for signal number n
  std::uint8_t has_end = 0;
};

struct Choice {
  std::int32_t level = 0;
  double left_s = 0;
};

// A rank's request to stop as a number, of which the largest counts: 0 for none, then the end of
// the allocation, then signals, those of lower ranks first.
constexpr std::uint64_t kEndIsNear = std::uint64_t{1} << 32;

std::uint64_t wish_of(int signal, std::uint32_t rank) {
  return (static_cast<std::uint64_t>(signal) + 1) << 32 | (UINT32_MAX - rank);
}

Stop stop_of(std::uint64_t wish) {
  if (wish == kEndIsNear) return {};
  return {static_cast<int>(wish >> 32) - 1, UINT32_MAX - static_cast<std::uint32_t>(wish)};
}

}  // namespace

std::string in_words(const Stop& stop) {
  if (stop.signal == 0) return "the allocation ends";
  return fmt::format("{} on rank {}", sys::signal_name(stop.signal), stop.rank);
}

Status Deadline::open(const engine::Context& context, std::unique_ptr<sys::StopSignals> signals,
                      std::string note_path) {
  const config::DeadlineSettings& settings = context.settings.deadline;
  agreed_s_ = sys::monotonic_s();
  Watch watch;
  if (context.rank() == 0) {
    note_path_ = std::move(note_path);
    for (const int number : engine::stop_signals(settings))
      watch.signals |= std::uint64_t{1} << (number - 1);
    if (const auto left_s = engine::seconds_to_end(settings)) {
      whole_s_ = *left_s;
      end_s_ = agreed_s_ + *left_s;
      watch.has_end = 1;
    }
  }
  DIAPAUSE_TRY(context.comm->broadcast(std::as_writable_bytes(std::span(&watch, 1)), 0));
  watches_ = watch.signals != 0 || watch.has_end != 0;
  std::vector<int> numbers;
  for (int number = 1; number <= 64; ++number) {
    if ((watch.signals >> (number - 1) & 1) != 0) numbers.push_back(number);
  }
  Status taken;
  if (signals && !numbers.empty()) {
    taken = signals->take(numbers);
    signals_ = std::move(signals);
  }
  return agree(context, taken);
}

policy::LevelSeconds Deadline::expected(const engine::Context& context, std::uint64_t bytes) const {
  // Rank 0 assumes that all ranks have as much as itself.
  return engine::expected_seconds(context, times_, bytes * context.rank_count());
}

std::uint64_t Deadline::wish(const engine::Context& context, double next_s,
                             std::uint64_t bytes) const {
  const int signal = signals_ ? signals_->received() : 0;
  if (signal != 0) return wish_of(signal, context.rank());
  if (!end_s_) return 0;
  const double left_s = *end_s_ - sys::monotonic_s() - context.settings.deadline.margin_s;
  return policy::must_begin(left_s, policy::lead_s(expected(context, bytes), whole_s_), next_s)
             ? kEndIsNear
             : 0;
}

Result<int> Deadline::level_now(const engine::Context& context, double next_s, std::uint64_t bytes,
                                int due) {
  if (!watches_ || stop_) return due;
  const double now_s = sys::monotonic_s();
  const double since_s = now_s - agreed_s_;  // a signal may have arrived at any time since then
  agreed_s_ = now_s;
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t most,
                      context.comm->all_max(wish(context, next_s, bytes)));
  if (most == 0) return due;
  stop_ = stop_of(most);
  const double margin_s = context.settings.deadline.margin_s;
  Choice choice;
  if (context.rank() == 0) {
    if (end_s_) choice.left_s = *end_s_ - now_s;
    if (stop_->signal != 0) {
      const double until_killed_s = context.settings.deadline.grace_s - since_s;
      choice.left_s = end_s_ ? std::min(choice.left_s, until_killed_s) : until_killed_s;
    }
    choice.level = policy::deepest_in_time(expected(context, bytes), choice.left_s - margin_s);
  }
  DIAPAUSE_TRY(context.comm->broadcast(std::as_writable_bytes(std::span(&choice, 1)), 0));
  if (context.rank() == 0) {
    context.log(Severity::information,
                fmt::format("{}: stopping with a checkpoint at level {}; {:.0f} s are left, {:.0f} "
                            "s of them for the "
                            "program itself",
                            in_words(*stop_), choice.level, choice.left_s, margin_s));
  }
  return choice.level;
}

std::optional<Stop> Deadline::note_checkpoint(const engine::Context& context, std::uint64_t version,
                                              int level_reached) {
  if (!stop_ || std::exchange(noted_, true)) return std::nullopt;
  note(context,
       level_reached > 0
           ? fmt::format("{}: version {} at level {}", in_words(*stop_), version, level_reached)
           : fmt::format("{}: the last checkpoint failed", in_words(*stop_)));
  return stop_;
}

std::optional<Stop> Deadline::ask(const engine::Context& context) {
  if (stop_ && !std::exchange(told_, true)) note(context, "told");
  return stop_;
}

void Deadline::note(const engine::Context& context, const std::string& line) {
  if (note_path_.empty()) return;
  if (Status noted = sys::append_line(context.kernel, note_path_, line); !noted) {
    context.log(Severity::warning, noted.error().message);
  }
}

}  // namespace diapause::library
