#include "redundancy/survival.hpp"

#include <algorithm>
#include <numeric>

namespace diapause::redundancy {
namespace {

bool contains(const Loss& lost, std::uint32_t node) {
  return std::binary_search(lost.begin(), lost.end(), node);
}

}  // namespace

Remains::Remains(std::vector<Evidence> evidence) : evidence_(std::move(evidence)) {
  if (const format::Manifest* manifest = deepest_manifest({})) nodes_ = manifest->node_names;
  for (const Evidence& one : evidence_) {
    if (one.node.empty()) continue;
    if (std::find(nodes_.begin(), nodes_.end(), one.node) == nodes_.end())
      nodes_.push_back(one.node);
  }
}

std::set<std::uint32_t> Remains::reached() const {
  std::set<std::uint32_t> found;
  for (const Evidence& one : evidence_) {
    if (one.node.empty()) continue;
    found.insert(static_cast<std::uint32_t>(std::find(nodes_.begin(), nodes_.end(), one.node) -
                                            nodes_.begin()));
  }
  return found;
}

const format::Manifest* Remains::deepest_manifest(const Loss& lost) const {
  const format::Manifest* best = nullptr;
  for (const Evidence& one : evidence_) {
    if (one.manifest == nullptr) continue;
    const auto node = std::find(nodes_.begin(), nodes_.end(), one.node) - nodes_.begin();
    if (!one.node.empty() && contains(lost, static_cast<std::uint32_t>(node))) continue;
    if (best == nullptr || one.manifest->deepest_level() > best->deepest_level())
      best = one.manifest;
  }
  return best;
}

std::optional<RecoveryPlan> Remains::plan_after(const Loss& lost) const {
  const format::Manifest* manifest = deepest_manifest(lost);
  if (manifest == nullptr) return std::nullopt;
  std::vector<Holdings> nodes(nodes_.size());
  Holdings global;
  for (const Evidence& one : evidence_) {
    const auto node = static_cast<std::size_t>(std::find(nodes_.begin(), nodes_.end(), one.node) -
                                               nodes_.begin());
    if (!one.node.empty() && contains(lost, static_cast<std::uint32_t>(node))) continue;
    Holdings& to = one.node.empty() ? global : nodes[node];
    to.images.insert(one.holdings.images.begin(), one.holdings.images.end());
    to.parities.insert(one.holdings.parities.begin(), one.holdings.parities.end());
  }
  std::vector<std::uint32_t> node_of_rank;
  for (const format::RankRecord& rank : manifest->ranks) node_of_rank.push_back(rank.node);
  return plan_recovery(*manifest, nodes, global, node_of_rank);
}

bool Remains::survives(const Loss& lost) const {
  const auto plan = plan_after(lost);
  return plan && plan->missing().empty();
}

Assessment assess(const Remains& remains) {
  Assessment result;
  if (const auto plan = remains.plan_after({})) {
    result.sources = plan->sources;
    result.missing = plan->missing();
    result.restorable = result.missing.empty();
  }
  const auto count = static_cast<std::uint32_t>(remains.nodes().size());
  for (std::uint32_t node = 0; node < count; ++node) {
    if (!remains.survives({node})) result.fatal_nodes.push_back(node);
  }
  result.pairs = std::uint64_t{count} * (count - (count > 0 ? 1 : 0)) / 2;
  result.pairs_tried = count >= 2 && count <= kMostNodesForPairs;
  for (std::uint32_t first = 0; result.pairs_tried && first < count; ++first) {
    for (std::uint32_t second = first + 1; second < count; ++second) {
      if (remains.survives({first, second})) continue;
      ++result.fatal_pairs;
      if (result.fatal_pair_examples.size() < kMostExamples)
        result.fatal_pair_examples.push_back({first, second});
    }
  }
  Loss all(count);
  std::iota(all.begin(), all.end(), 0u);
  result.survives_all_nodes = remains.survives(all);
  return result;
}

}  // namespace diapause::redundancy
