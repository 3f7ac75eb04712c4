#include "engine/job/decision.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>

#include "sys/process.hpp"

namespace diapause::engine {
namespace {

Status check_request(const DecisionRequest& mine, const Decision& of_root) {
  if (mine.number == Decider::kNewest) {
    return fail(Code::argument, "this version number stands for the newest version");
  }
  if (mine.level < 1 || mine.level > 4) {
    return fail(Code::argument, fmt::format("level {}: levels are 1 to 4", mine.level));
  }
  if (of_root.number != mine.number || of_root.level != mine.level) {
    return fail(
        Code::argument,
        fmt::format(
            "asks for version {} at level {}, rank 0 for version {} at level {}: all ranks must "
            "make the same call",
            mine.number, mine.level, of_root.number, of_root.level));
  }
  if (of_root.ok == 0) return fail(Code::io, "the system gives no random numbers");
  return {};
}

// Passes rank 0's decision to all ranks, and returns on all whether they have made the same
// request. The least value of all ranks tells both: only rank 0 has others than the greatest where
// the decision stands, and equal numbers have the same least and greatest value. It also tells
// whether all ranks are prepared.
Result<bool> share(const Context& context, const DecisionRequest& mine, Decision& decision) {
  static_assert(std::is_trivially_copyable_v<Decision>);
  constexpr std::size_t kWords =
      (sizeof(Decision) + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
  const auto level = static_cast<std::uint32_t>(mine.level);
  std::array<std::uint64_t, kWords + 5> words;
  words.fill(UINT64_MAX);
  if (context.rank() == 0) std::memcpy(words.data(), &decision, sizeof decision);
  const std::uint64_t request[] = {mine.number, ~mine.number, level, ~std::uint64_t{level},
                                   mine.is_prepared ? 1U : 0U};
  std::ranges::copy(request, words.begin() + kWords);
  DIAPAUSE_TRY(context.comm->all_min(words));
  std::memcpy(static_cast<void*>(&decision), words.data(), sizeof decision);
  decision.is_prepared = static_cast<std::uint8_t>(words[kWords + 4]);
  return words[kWords] == ~words[kWords + 1] && words[kWords + 2] == ~words[kWords + 3];
}

}  // namespace

Result<Decision> Decider::decide(const Context& context, const DecisionRequest& mine) {
  Decision decision;
  if (context.rank() == 0) {
    decision.number = mine.number;
    decision.level = mine.level;
    decision.lossy_restarts = mine.lossy_restarts;
    decision.skip = mine.skip ? 1 : 0;
    decision.ends_period = mine.ends_period ? 1 : 0;
    decision.suspect = mine.suspect ? 1 : 0;
    decision.created_unix_ns = sys::unix_time_ns();
    decision.ok = sys::random_bytes(std::as_writable_bytes(std::span(decision.commit))) ? 1 : 0;
    // Attempts at one number must be ordered, by their ids: an id begins with the number of the
    // attempt.
    ++attempts_;
    for (std::size_t i = 0; i < 4; ++i)
      decision.commit[i] = static_cast<std::uint8_t>(attempts_ >> (24 - 8 * i));
  }
  DIAPAUSE_TRY_ASSIGN(const bool are_requests_equal, share(context, mine, decision));
  const Status usable = check_request(mine, decision);
  if (!usable || !are_requests_equal) DIAPAUSE_TRY(agree(context, usable));
  return decision;
}

}  // namespace diapause::engine
