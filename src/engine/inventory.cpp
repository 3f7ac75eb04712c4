#include "engine/inventory.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "store/names.hpp"

namespace diapause::engine {
namespace {

using nlohmann::json;

json describe(const store::FoundVersion& found, config::TierKind kind, std::uint32_t node) {
  json entry = {{"directory", store::version_directory(found.id)},
                {"tier", static_cast<int>(kind)},
                {"node", node},
                {"images", found.images},
                {"parities", found.parities},
                {"problem", found.problem}};
  if (found.manifest) {
    const ByteVector bytes = format::encode_manifest(*found.manifest);
    const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
    entry["manifest"] = json::binary({begin, begin + bytes.size()});
  }
  return entry;
}

// What this rank has to tell: its node's tiers if it is the leader, the global tier if it is rank 0.
json look(Context& context) {
  json found = json::array();
  for (const config::TierKind kind : kAllTiers) {
    store::Tier* tier = context.tiers.find(kind);
    if (tier == nullptr || !context.acts_for(kind)) continue;
    const auto versions = tier->scan();
    if (!versions) {
      context.log(Severity::warning, versions.error().message);
      continue;
    }
    for (const store::FoundVersion& version : *versions) {
      found.push_back(describe(version, kind, context.topology.node));
    }
  }
  return found;
}

void merge_manifest(StoredVersion& version, const json& entry, config::TierKind kind, std::uint32_t node) {
  if (!entry.contains("manifest")) return;
  const auto& binary = entry["manifest"].get_binary();
  auto manifest = format::decode_manifest(std::as_bytes(std::span(binary)));
  if (!manifest) return;
  version.published_on[static_cast<std::size_t>(kind)].insert(node);
  const bool deeper = !version.manifest || manifest->deepest_level() > version.manifest->deepest_level();
  if (deeper) version.manifest = std::move(*manifest);
}

void merge(std::map<format::VersionId, StoredVersion>& versions, const json& entry, std::size_t node_count) {
  const auto id = store::parse_version_directory(entry["directory"].get<std::string>());
  if (!id) return;
  StoredVersion& version = versions[*id];
  version.id = *id;
  version.nodes.resize(node_count);
  const auto kind = static_cast<config::TierKind>(entry["tier"].get<int>());
  const auto node = entry["node"].get<std::uint32_t>();
  if (const auto problem = entry["problem"].get<std::string>(); !problem.empty()) version.problems.push_back(problem);
  merge_manifest(version, entry, kind, node);

  const bool global = kind == config::TierKind::global;
  redundancy::Holdings& holdings = global ? version.global : version.nodes[node];
  for (const auto rank : entry["images"].get<std::vector<std::uint32_t>>()) {
    holdings.images.insert(rank);
    if (!global) version.tier_of[{node, store::image_name(rank)}] = kind;
  }
  for (const auto& parity : entry["parities"].get<std::vector<std::pair<std::uint32_t, std::uint32_t>>>()) {
    holdings.parities.insert(parity);
    if (!global) version.tier_of[{node, store::parity_name(parity.first, parity.second)}] = kind;
  }
}

}  // namespace

Result<std::vector<StoredVersion>> take_inventory(Context& context) {
  const std::vector<std::uint8_t> mine = json::to_cbor(look(context));
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all, agree_and_gather(context, {}, std::as_bytes(std::span(mine))));
  std::map<format::VersionId, StoredVersion> versions;
  for (const ByteVector& part : all) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(part.data());
    const json entries = json::from_cbor(begin, begin + part.size(), true, false);
    if (!entries.is_array()) return fail(Code::comm, "a rank's inventory did not arrive whole");
    for (const json& entry : entries) merge(versions, entry, context.topology.node_names.size());
  }
  std::vector<StoredVersion> newest_first;
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) newest_first.push_back(std::move(it->second));
  return newest_first;
}

}  // namespace diapause::engine
