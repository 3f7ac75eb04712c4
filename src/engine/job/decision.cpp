#include "engine/job/decision.hpp"

#include <fmt/core.h>

#include <span>

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
    return fail(Code::argument,
                fmt::format("asks for version {} at level {}, rank 0 for version {} at level {}: all ranks must "
                            "make the same call",
                            mine.number, mine.level, of_root.number, of_root.level));
  }
  if (of_root.ok == 0) return fail(Code::io, "the system gives no random numbers");
  return {};
}

}  // namespace

Result<Decision> Decider::decide(const Context& context, const DecisionRequest& mine) {
  Decision decision;
  if (context.rank() == 0) {
    decision.number = mine.number;
    decision.level = mine.level;
    decision.lossy_restarts = mine.lossy_restarts;
    decision.skip = mine.skip ? 1 : 0;
    decision.settle = mine.settle ? 1 : 0;
    decision.suspect = mine.suspect ? 1 : 0;
    decision.created_unix_ns = sys::unix_time_ns();
    decision.ok = sys::random_bytes(std::as_writable_bytes(std::span(decision.commit))) ? 1 : 0;
    // Attempts at one number must be ordered, by their ids: an id begins with the number of the
    // attempt.
    ++attempts_;
    for (std::size_t i = 0; i < 4; ++i) decision.commit[i] = static_cast<std::uint8_t>(attempts_ >> (24 - 8 * i));
  }
  DIAPAUSE_TRY(context.comm->broadcast(std::as_writable_bytes(std::span(&decision, 1)), 0));
  DIAPAUSE_TRY(agree(context, check_request(mine, decision)));
  return decision;
}

}  // namespace diapause::engine
