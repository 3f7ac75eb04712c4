// Puts back what a version lacks, under its own number and commit: an image that was fetched from
// elsewhere, and the copies and parities that a node has lost. Files that exist are only read. A
// restored file is kept only if it equals the lost one to the last byte, and a node says that it
// has its files when all of them are there. So a process that is killed on the way leaves a version
// that lacks less.
#include <algorithm>
#include <set>
#include <utility>

#include "engine/job/gather.hpp"
#include "engine/node/levels/group_exchange.hpp"
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

// Names the files that the node of this process lacks, of those for which this process acts.
struct Lack {
  std::set<std::uint32_t> images;  // the images of its own ranks
  std::set<std::uint32_t> copies;  // copies of the images of other ranks
  std::set<std::pair<std::uint32_t, std::uint32_t>> parities;
};

Result<Lack> find_lack(const Context& context, const Work& work) {
  DIAPAUSE_TRY_ASSIGN(const store::Tier* const tier, context.tiers.get(work.node_tier));
  DIAPAUSE_TRY_ASSIGN(const redundancy::Holdings there, holdings_of(*tier, work.manifest.version));
  const Topology& topology = context.topology;
  const auto places =
      redundancy::places(work.manifest, topology.node_of_rank, topology.node_names.size());
  Lack lack;
  for (const std::uint32_t rank : places[topology.node].images) {
    if (there.images.contains(rank)) continue;
    const bool is_resident = topology.node_of_rank[rank] == topology.node;
    if (!topology.acts_for(is_resident ? rank : work.manifest.ranks[rank].partner)) continue;
    (is_resident ? lack.images : lack.copies).insert(rank);
  }
  for (const auto& [group, member] : places[topology.node].parities) {
    const std::uint32_t host = host_of(topology, work.manifest.groups[group], member);
    if (topology.acts_for(host) && !there.parities.contains({group, member}))
      lack.parities.insert({group, member});
  }
  return lack;
}

}  // namespace

const NodeEngine::Step NodeEngine::kPuttingBack[] = {
    {"keep", 1, false, &NodeEngine::put_back_images},
    {"partner", 2, true, &NodeEngine::put_back_copies},
    {"parity", 3, true, &NodeEngine::put_back_parities},
    {"publish", 1, true, &NodeEngine::publish_again},
};

// The images that were fetched are checked where they lie now, and all others are opened: the next
// steps read them.
Status NodeEngine::put_back_images(Work& work, const Captures& captures) {
  const auto put_back = [&]() -> Status {
    DIAPAUSE_TRY(captures.result);
    DIAPAUSE_TRY_ASSIGN(store::Tier* const tier, context_.tiers.get(work.node_tier));
    DIAPAUSE_TRY(tier->make_version(work.manifest.version));
    for (Image& image : work.images) {
      const std::string name = store::image_name(image.facts.rank);
      const store::ExpectedImage expected = store::expected_image(work.manifest, image.facts.rank);
      DIAPAUSE_TRY(keep(context_, catalogue_, work, std::move(image.slot), name));
      DIAPAUSE_TRY_ASSIGN(store::ImageReader reader,
                          tier->open_image(work.manifest.version, name, expected));
      DIAPAUSE_TRY(reader.verify());
    }
    for (const std::uint32_t rank : context_.topology.acted_for) {
      const auto is_it = [rank](const Image& image) { return image.facts.rank == rank; };
      if (std::ranges::any_of(work.images, is_it)) continue;
      const store::ExpectedImage expected = store::expected_image(work.manifest, rank);
      const std::string name = store::image_name(rank);
      DIAPAUSE_TRY_ASSIGN(store::ImageReader reader,
                          tier->open_image(work.manifest.version, name, expected));
      const format::RankRecord& record = work.manifest.ranks[rank];
      work.images.push_back({{rank, record.protected_bytes, record.image},
                             {},
                             std::make_unique<KeptImage>(std::move(reader))});
    }
    std::ranges::sort(work.images, {}, [](const Image& image) { return image.facts.rank; });
    return {};
  };
  DIAPAUSE_TRY(agree(context_, put_back()));
  work.is_kept = true;
  return {};
}

Status NodeEngine::put_back_copies(Work& work, const Captures&) {
  auto lack = find_lack(context_, work);
  std::vector<std::uint32_t> mine;
  if (lack) mine.assign(lack->copies.begin(), lack->copies.end());
  const Status found = lack ? Status() : fail(lack.error());
  DIAPAUSE_TRY_ASSIGN(const Gathered<std::uint32_t> all,
                      gather_values<std::uint32_t>(context_, found, mine, "a list of copies"));
  std::set<std::uint32_t> missing;
  for (const std::vector<std::uint32_t>& of_process : all)
    missing.insert(of_process.begin(), of_process.end());
  return copy_images(context_, catalogue_, work, missing);
}

Status NodeEngine::put_back_parities(Work& work, const Captures&) {
  struct Parity {
    std::uint32_t group, member;
  };
  auto lack = find_lack(context_, work);
  std::vector<Parity> mine;
  if (lack) {
    for (const auto& [group, member] : lack->parities) mine.push_back({group, member});
  }
  const Status found = lack ? Status() : fail(lack.error());
  DIAPAUSE_TRY_ASSIGN(const Gathered<Parity> all,
                      gather_values<Parity>(context_, found, mine, "a list of parities"));
  std::set<std::pair<std::uint32_t, std::uint32_t>> missing;
  for (const std::vector<Parity>& of_process : all) {
    for (const Parity& one : of_process) missing.insert({one.group, one.member});
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
  work.images = std::move(captures.images);
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
  give_back_slots(work, captures);
  record(work, captures, result);
  end_period_behind();
  if (!result) work.manifest.levels = 0;
  return {std::move(work.manifest), std::move(result)};
}

}  // namespace diapause::engine
