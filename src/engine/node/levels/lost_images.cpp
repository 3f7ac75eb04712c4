#include "engine/node/levels/lost_images.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/node/levels/incoming.hpp"
#include "engine/recovery/rebuild.hpp"
#include "redundancy/places.hpp"
#include "store/names.hpp"

namespace diapause::engine {
namespace {

// Returns what the nodes still have of the version.
StoredVersion what_is_left(const Context& context, const Work& work) {
  const Topology& topology = context.topology;
  StoredVersion left;
  left.id = work.manifest.version;
  left.manifest = work.manifest;
  left.nodes = redundancy::places(work.manifest, topology.node_of_rank, topology.node_names.size());
  for (const MissingFile& file : work.missing) {
    redundancy::Holdings& holdings = left.nodes[file.node];
    if (file.is_parity != 0) {
      holdings.parities.erase({file.index, file.member});
    } else {
      holdings.images.erase(file.index);
    }
  }
  for (std::uint32_t node = 0; node < left.nodes.size(); ++node) {
    for (const std::uint32_t rank : left.nodes[node].images)
      left.tier_of[{node, store::image_name(rank)}] = work.node_tier;
    for (const auto& [group, member] : left.nodes[node].parities)
      left.tier_of[{node, store::parity_name(group, member)}] = work.node_tier;
  }
  return left;
}

Result<std::vector<Rebuild>> plan(const Context& context, const StoredVersion& left) {
  const Topology& topology = context.topology;
  const redundancy::RecoveryPlan plan =
      redundancy::plan_recovery(*left.manifest, left.nodes, {}, topology.node_of_rank);
  std::vector<Rebuild> rebuilds;
  for (std::uint32_t rank = 0; rank < plan.sources.size(); ++rank) {
    const redundancy::Source& source = plan.sources[rank];
    switch (source.kind) {
      case redundancy::SourceKind::own_node:
        break;
      case redundancy::SourceKind::peer_node:
        rebuilds.push_back(plan_copy(topology, left, rank, source.node));
        break;
      case redundancy::SourceKind::rebuild:
        rebuilds.push_back(plan_rebuild(topology, left, rank));
        break;
      default:
        return fail(
            Code::corrupt,
            fmt::format("the image of rank {} is lost, and too little is left of its group", rank));
    }
  }
  return rebuilds;
}

// Writes what comes to the slot. A failure is kept for later, because the others go on sending.
TakeBytes write_to(IncomingSink& sink, Status& result) {
  return [&](std::uint64_t, ByteView bytes) {
    if (!result) return;
    std::memcpy(sink.room(bytes.size()).data(), bytes.data(), bytes.size());
    result = sink.advance(bytes.size());
  };
}

}  // namespace

Status fetch_lost_images(const Context& context, Catalogue& catalogue, Work& work) {
  const StoredVersion left = what_is_left(context, work);
  DIAPAUSE_TRY_ASSIGN(const std::vector<Rebuild> rebuilds, plan(context, left));
  std::vector<Incoming> incoming;
  std::vector<std::uint64_t> sizes;
  for (const Rebuild& rebuild : rebuilds) {
    if (!context.topology.acts_for(rebuild.target)) continue;
    sizes.push_back(work.manifest.ranks[rebuild.target].image.file_bytes);
    incoming.push_back({rebuild.target, sizes.back(), {}});
  }
  DIAPAUSE_TRY_ASSIGN(std::vector<store::Slot> slots,
                      catalogue.acquire(context, work.node_tier, sizes));
  for (std::size_t i = 0; i < slots.size(); ++i) incoming[i].slot = std::move(slots[i]);
  auto sinks = make_sinks(incoming);
  DIAPAUSE_TRY(agree(context, sinks ? Status() : fail(sinks.error())));
  FileCache files(context, left);
  Status mine;
  std::size_t next = 0;
  for (const Rebuild& rebuild : rebuilds) {
    const ImageRange whole{0, work.manifest.ranks[rebuild.target].image.file_bytes};
    if (!context.topology.acts_for(rebuild.target)) {
      DIAPAUSE_TRY(execute_rebuild(context, rebuild, files, whole, {}));
      continue;
    }
    IncomingSink& sink = (*sinks)[next];
    Status written;
    DIAPAUSE_TRY(execute_rebuild(context, rebuild, files, whole, write_to(sink, written)));
    if (written) written = sink.finish();
    if (written) written = keep_incoming(context, catalogue, work, std::move(incoming[next]));
    if (mine && !written) mine = std::move(written);
    ++next;
  }
  return agree(context, mine);
}

}  // namespace diapause::engine
