#include "engine/job/context.hpp"

#include <fmt/core.h>

namespace diapause::engine {
namespace {

// Describes a place of the Comm: a rank, or the process that acts for a node.
std::string where(const Context& context, std::uint32_t place) {
  if (context.comm->size() == 1) return "";
  const Topology& topology = context.topology;
  if (topology.node_of_rank.empty()) return fmt::format("rank {}: ", place);
  if (topology.by_node) return fmt::format("{}: ", topology.node_names[place]);
  return fmt::format("rank {} on {}: ", place, topology.node_names[topology.node_of_rank[place]]);
}

// Packs a message: one byte of code (0: no error), then the error's text or the payload.
ByteVector pack(const Status& mine, ByteView payload) {
  ByteVector message;
  const int code = mine ? 0 : -static_cast<int>(mine.error().code);
  if (!mine) payload = as_byte_view(mine.error().message);
  message.reserve(1 + payload.size());
  message.push_back(static_cast<std::byte>(code));
  message.insert(message.end(), payload.begin(), payload.end());
  return message;
}

// Returns whether the text already says where the error occurred, because it was agreed on before.
bool is_placed(const Context& context, const std::string& text) {
  for (std::uint32_t place = 0; place < context.comm->size(); ++place) {
    const std::string its = where(context, place);
    if (!its.empty() && text.starts_with(its)) return true;
  }
  return false;
}

Status first_error(const Context& context, const std::vector<ByteVector>& messages) {
  for (std::uint32_t r = 0; r < messages.size(); ++r) {
    if (messages[r].empty() || messages[r][0] == std::byte{0}) continue;
    const std::string text(reinterpret_cast<const char*>(messages[r].data()) + 1,
                           messages[r].size() - 1);
    const auto code = static_cast<Code>(-static_cast<int>(messages[r][0]));
    return fail(code, is_placed(context, text) ? text : where(context, r) + text);
  }
  return {};
}

}  // namespace

Status agree(const Context& context, const Status& mine) {
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t all_well, context.comm->all_min(mine ? 1 : 0));
  if (all_well == 1) return {};
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> messages,
                      context.comm->all_gather(pack(mine, {})));
  return first_error(context, messages);
}

Result<std::vector<ByteVector>> agree_and_gather(const Context& context, const Status& mine,
                                                 ByteView payload) {
  DIAPAUSE_TRY_ASSIGN(std::vector<ByteVector> messages,
                      context.comm->all_gather(pack(mine, payload)));
  DIAPAUSE_TRY(first_error(context, messages));
  for (ByteVector& message : messages) message.erase(message.begin());
  return messages;
}

}  // namespace diapause::engine
