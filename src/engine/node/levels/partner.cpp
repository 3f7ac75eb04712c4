#include "engine/node/levels/partner.hpp"

#include <cstring>
#include <span>

#include "engine/node/levels/incoming.hpp"
#include "redundancy/layout.hpp"

namespace diapause::engine {
namespace {

// Returns how many bytes travel in one message. Every message makes both ranks wait for each other,
// so messages between memories are long. Data for a file travel in the pieces in which the file is
// written, to overlap with the writes.
std::uint64_t piece_bytes(config::TierKind tier) {
  return tier == config::TierKind::memory ? 64 * kMiB : capture::StreamWriter::kBufferBytes;
}

// Sends and receives in step until all copies are complete. A failed local read or write is
// recorded, and the messages continue, so that a rank that waits for them does not hang. Images of
// several ranks travel side by side in the order of their ranks, by which both sides match them.
Status transfer(const Context& context, const Work& work, std::span<Image* const> outgoing,
                const std::vector<Incoming>& incoming, std::vector<IncomingSink>& sinks,
                std::span<const sys::AlignedBuffer> scratch) {
  Status result;
  const auto note = [&result](Status step) {
    if (result && !step) result = std::move(step);
  };
  const std::uint64_t piece = piece_bytes(work.node_tier);
  for (std::uint64_t sent = 0; true; sent += piece) {
    std::vector<comm::Send> sends;
    std::vector<comm::Receive> receives;
    for (std::size_t i = 0; i < outgoing.size(); ++i) {
      Image& image = *outgoing[i];
      if (sent >= image.bytes->size()) continue;
      const MutableBytes room =
          scratch[i].bytes().first(std::min(piece, image.bytes->size() - sent));
      auto view = image.bytes->view(sent, room);
      const std::uint32_t partner = work.manifest.ranks[image.facts.rank].partner;
      sends.push_back({context.actor(partner), view ? *view : ByteView(room)});
      if (!view) note(fail(std::move(view.error())));
    }
    for (std::size_t i = 0; i < sinks.size(); ++i) {
      const std::uint64_t length = std::min(piece, sinks[i].left());
      if (length > 0) receives.push_back({context.actor(incoming[i].owner), sinks[i].room(length)});
    }
    if (sends.empty() && receives.empty()) break;
    DIAPAUSE_TRY(context.comm->exchange(sends, receives));
    for (IncomingSink& sink : sinks) note(sink.advance(std::min(piece, sink.left())));
  }
  for (IncomingSink& sink : sinks) note(sink.finish());
  return result;
}

}  // namespace

Status copy_images(const Context& context, Catalogue& catalogue, Work& work,
                   const std::set<std::uint32_t>& ranks) {
  std::vector<Image*> outgoing;
  for (Image& image : work.images) {
    if (ranks.contains(image.facts.rank)) outgoing.push_back(&image);
  }
  std::vector<Incoming> incoming;
  std::vector<std::uint64_t> sizes;
  for (const std::uint32_t r : ranks) {
    if (!context.topology.acts_for(work.manifest.ranks[r].partner)) continue;
    incoming.push_back({r, work.manifest.ranks[r].image.file_bytes, {}});
    sizes.push_back(incoming.back().bytes);
  }
  DIAPAUSE_TRY_ASSIGN(std::vector<store::Slot> slots,
                      catalogue.acquire(context, work.node_tier, sizes));
  for (std::size_t i = 0; i < slots.size(); ++i) incoming[i].slot = std::move(slots[i]);

  auto sinks = make_sinks(incoming);
  Status ready = sinks ? Status{} : fail(sinks.error());
  std::vector<sys::AlignedBuffer> scratch;
  for (std::size_t i = 0; i < outgoing.size() && ready; ++i) {
    auto buffer = sys::AlignedBuffer::allocate(piece_bytes(work.node_tier));
    ready = buffer ? Status{} : fail(buffer.error());
    if (buffer) scratch.push_back(std::move(*buffer));
  }
  DIAPAUSE_TRY(agree(context, ready));
  Status mine = transfer(context, work, outgoing, incoming, *sinks, scratch);
  for (Incoming& copy : incoming) {
    if (mine) mine = keep_incoming(context, catalogue, work, std::move(copy));
  }
  return agree(context, mine);
}

Status copy_to_partners(const Context& context, Catalogue& catalogue, Work& work) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<std::uint32_t> partners,
                      redundancy::partners(context.topology.node_of_rank));
  std::set<std::uint32_t> all;
  for (std::uint32_t r = 0; r < partners.size(); ++r) {
    work.manifest.ranks[r].partner = partners[r];
    all.insert(r);
  }
  return copy_images(context, catalogue, work, all);
}

}  // namespace diapause::engine
