// Puts back what a version lacks, under its own number and commit: images, copies and parities that
// a node has lost. Files that exist are only read. A restored file is kept only if it equals the
// lost one to the last byte, and a node says that it has its files when all of them are there. So a
// process that is killed on the way leaves a version that lacks less.
#include <algorithm>
#include <set>
#include <utility>

#include "engine/job/gather.hpp"
#include "engine/node/levels/group_exchange.hpp"
#include "engine/node/levels/lost_images.hpp"
#include "engine/node/levels/parity.hpp"
#include "engine/node/levels/partner.hpp"
#include "engine/node/node_engine.hpp"
#include "engine/node/publish.hpp"
#include "redundancy/places.hpp"
#include "store/names.hpp"
#include "sys/process.hpp"

namespace diapause::engine {
namespace {

// An image that lies in its version already.
class KeptImage : public ByteSource {
 public:
  explicit KeptImage(store::ImageReader reader) : reader_(std::move(reader)) {}
  std::uint64_t size() const override { return reader_.header().file_bytes; }
  Result<ByteView> view(std::uint64_t offset, MutableBytes scratch) override {
    return reader_.bytes().view(offset, scratch);
  }

 private:
  store::ImageReader reader_;
};

// Returns what this node's tier has of the version.
Result<redundancy::Holdings> holdings_of(const store::Tier& tier,
                                         const format::VersionId& version) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<store::FoundVersion> all, tier.scan());
  const auto found = std::ranges::find(all, version, &store::FoundVersion::id);
  if (found == all.end()) return redundancy::Holdings{};
  return redundancy::Holdings{found->images, found->parities};
}

// Returns the files that the node of this process lacks, of those for which this process acts.
Result<std::vector<MissingFile>> find_own_missing(const Context& context, const Work& work) {
  DIAPAUSE_TRY_ASSIGN(const store::Tier* const tier, context.tiers.get(work.node_tier));
  DIAPAUSE_TRY_ASSIGN(const redundancy::Holdings there, holdings_of(*tier, work.manifest.version));
  const Topology& topology = context.topology;
  const auto places =
      redundancy::places(work.manifest, topology.node_of_rank, topology.node_names.size());
  std::vector<MissingFile> missing;
  for (const std::uint32_t rank : places[topology.node].images) {
    const bool is_resident = topology.node_of_rank[rank] == topology.node;
    if (!topology.acts_for(is_resident ? rank : work.manifest.ranks[rank].partner)) continue;
    if (!there.images.contains(rank)) missing.push_back({topology.node, 0, rank, 0});
  }
  for (const auto& [group, member] : places[topology.node].parities) {
    const std::uint32_t host = host_of(topology, work.manifest.groups[group], member);
    if (topology.acts_for(host) && !there.parities.contains({group, member}))
      missing.push_back({topology.node, 1, group, member});
  }
  return missing;
}

// Returns all files of the version that nodes lack. Collective.
Result<std::vector<MissingFile>> find_missing(const Context& context, const Work& work) {
  const auto own = find_own_missing(context, work);
  const Status found = own ? Status() : fail(own.error());
  const std::vector<MissingFile> none;
  DIAPAUSE_TRY_ASSIGN(
      const Gathered<MissingFile> all,
      gather_values<MissingFile>(context, found, own ? *own : none, "a list of missing files"));
  std::vector<MissingFile> missing;
  for (const std::vector<MissingFile>& of_process : all)
    missing.insert(missing.end(), of_process.begin(), of_process.end());
  return missing;
}

}  // namespace

const NodeEngine::Step NodeEngine::kPuttingBack[] = {
    {"keep", 1, false, &NodeEngine::put_back_images},
    {"partner", 2, true, &NodeEngine::put_back_copies},
    {"parity", 3, true, &NodeEngine::put_back_parities},
    {"publish", 1, true, &NodeEngine::publish_again},
};

// Afterwards all images are there and open: the next steps read them.
Status NodeEngine::put_back_images(Work& work, const Captures&) {
  const format::VersionId& version = work.manifest.version;
  auto tier = context_.tiers.get(work.node_tier);
  DIAPAUSE_TRY(agree(context_, tier ? (*tier)->make_version(version) : fail(tier.error())));
  DIAPAUSE_TRY_ASSIGN(work.missing, find_missing(context_, work));
  DIAPAUSE_TRY(fetch_lost_images(context_, catalogue_, work));
  const auto open_all = [&]() -> Status {
    for (const std::uint32_t rank : context_.topology.acted_for) {
      DIAPAUSE_TRY_ASSIGN(store::ImageReader reader,
                          (*tier)->open_image(version, store::image_name(rank),
                                              store::expected_image(work.manifest, rank)));
      const format::RankRecord& record = work.manifest.ranks[rank];
      work.images.push_back({{rank, record.protected_bytes, record.image},
                             {},
                             std::make_unique<KeptImage>(std::move(reader))});
    }
    return {};
  };
  DIAPAUSE_TRY(agree(context_, open_all()));
  work.is_kept = true;
  return {};
}

// What a rank's own node lacked has been put back before.
Status NodeEngine::put_back_copies(Work& work, const Captures&) {
  std::set<std::uint32_t> missing;
  for (const MissingFile& file : work.missing) {
    const bool is_own = file.node == context_.topology.node_of_rank[file.index];
    if (file.is_parity == 0 && !is_own) missing.insert(file.index);
  }
  return copy_images(context_, catalogue_, work, missing);
}

Status NodeEngine::put_back_parities(Work& work, const Captures&) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> missing;
  for (const MissingFile& file : work.missing) {
    if (file.is_parity != 0) missing.insert({file.index, file.member});
  }
  return complete_parity(context_, catalogue_, work, missing);
}

Status NodeEngine::publish_again(Work& work, const Captures&) {
  return publish_on_nodes(context_, catalogue_, work, work.level);
}

Outcome NodeEngine::complete(Captures captures, const Reached& reached) {
  mark();
  governor_.begin_checkpoint();
  Work work;
  const auto manifest = catalogue_.manifest_of(*captures.completes);
  if (!manifest)
    return {{}, fail(Code::not_found, "the version that lacks files is not there any more")};
  work.manifest = *manifest;
  work.level = captures.decision.level;
  work.node_tier = captures.node_tier;
  // The manifest names the nodes of today.
  const format::Manifest today = make_manifest(context_, work.manifest.version, 0);
  work.manifest.node_names = today.node_names;
  for (std::size_t rank = 0; rank < today.ranks.size(); ++rank) {
    work.manifest.ranks[rank].node = today.ranks[rank].node;
  }
  Status result;
  for (const Step& step : kPuttingBack) {
    if (step.level != 1 && step.level != work.level) continue;
    result = go_on();
    if (result) result = run_step(step, work, captures);
    if (!result) break;
  }
  if (result) {
    reached(work.manifest.levels);
  } else {
    suspect_[static_cast<std::size_t>(work.node_tier)] = true;
    is_cut_off_ = is_cut_off_ || result.error().code == Code::comm;
  }
  record(work, captures, result);
  end_period_behind();
  if (!result) work.manifest.levels = 0;
  return {std::move(work.manifest), std::move(result)};
}

}  // namespace diapause::engine
