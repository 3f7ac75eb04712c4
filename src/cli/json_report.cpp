#include "cli/json_report.hpp"

#include <nlohmann/json.hpp>

#include "cli/energy_report.hpp"
#include "codec/block.hpp"
#include "store/names.hpp"

namespace diapause::cli {
namespace {

using json = nlohmann::ordered_json;

// Returns the text of a document. Names may hold any bytes; what is not UTF-8 is replaced.
std::string dump(const json& document) {
  return document.dump(2, ' ', false, json::error_handler_t::replace);
}

json levels_of(const format::Manifest& manifest) {
  json levels = json::array();
  for (int level = 1; level <= 4; ++level) {
    if (manifest.has_level(level)) levels.push_back(level);
  }
  return levels;
}

json identity_of(const CollectedVersion& version) {
  json one = {{"version", version.id.number},
              {"incarnation", version.id.incarnation},
              {"commit", version.id.commit.hex()},
              {"state", state_of(version)}};
  if (version.manifest == nullptr) return one;
  one["levels"] = levels_of(*version.manifest);
  one["created_unix_ns"] = version.manifest->created_unix_ns;
  one["ranks"] = version.manifest->ranks.size();
  one["data_bytes"] = data_bytes(*version.manifest);
  // The error of values in the global tier.
  one["greatest_error"] = version.manifest->greatest_error();
  one["lossy_restarts"] = version.manifest->lossy_restarts;
  return one;
}

void put_stored(json& one, const StoredBytes& stored) {
  one["stored_bytes"] = stored.all;
  one["image_bytes"] = stored.images;
  one["copy_bytes"] = stored.copies;
  one["parity_bytes"] = stored.parity;
}

json parts_of(const CollectedVersion& version) {
  json parts = json::array();
  for (const Part& part : version.parts) {
    json one = {{"tier", store::tier_name(part.place->kind)}};
    if (!part.place->node.empty()) one["node"] = part.place->node;
    one["path"] = part.place->directory.path() + "/" + store::version_directory(version.id);
    one["published"] = part.found->manifest.has_value();
    one["images"] = part.found->images;
    one["parities"] = json::array();
    for (const auto& [group, member] : part.found->parities) {
      one["parities"].push_back({{"group", group}, {"member", member}});
    }
    put_stored(one, stored_bytes(version, part));
    parts.push_back(std::move(one));
  }
  return parts;
}

json region_of(const format::Region& region) {
  json one = {{"name", region.name},
              {"type", format::element_type_name(region.type)},
              {"element_bytes", region.element_bytes},
              {"count", region.count},
              {"bytes", region.raw_bytes()}};
  for (const format::BlockDim& dim : region.place) {
    one["place"].push_back(
        {{"shape", dim.shape}, {"global_shape", dim.global_shape}, {"start", dim.start}});
  }
  return one;
}

json compressed_region(const format::Region& region) {
  return {{"name", region.name},
          {"codec", codec::codec_name(static_cast<codec::CodecId>(region.compression.codec))},
          {"bound", region.compression.bound},
          {"bytes", region.raw_bytes()},
          {"stored_bytes", region.stored_bytes},
          {"blocks", region.block_count()},
          {"lossy_blocks", region.encoded.lossy},
          {"kept_exact", region.encoded.fallen_back},
          {"greatest_error", region.encoded.greatest_error}};
}

json rank_of(const format::RankRecord& record, const RankDetails& details,
             const format::Manifest& manifest) {
  json one = {{"node", manifest.node_names[record.node]},
              {"partner", record.partner == format::kNoRank ? json(nullptr) : json(record.partner)},
              {"data_bytes", record.protected_bytes},
              {"file_bytes", record.image.file_bytes},
              {"found_in", details.found_in}};
  if (record.is_encoded()) {
    one["global_file_bytes"] = record.encoded.file_bytes;
    one["greatest_error"] = record.greatest_error;
  }
  if (!details.regions) {
    one["problem"] = details.problem;
    return one;
  }
  for (const format::Region& region : details.compressed) {
    if (!region.is_raw()) one["compressed"].push_back(compressed_region(region));
  }
  one["regions"] = json::array();
  for (const format::Region& region : *details.regions) one["regions"].push_back(region_of(region));
  return one;
}

json groups_of(const format::Manifest& manifest) {
  json groups = json::array();
  for (const format::Group& group : manifest.groups) {
    json members = json::array();
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      members.push_back(
          {{"rank", group.members[i] == format::kNoRank ? json(nullptr) : json(group.members[i])},
           {"node", manifest.node_names[group.nodes[i]]}});
    }
    groups.push_back({{"parity", group.parity},
                      {"chunk_bytes", group.chunk_bytes},
                      {"members", std::move(members)}});
  }
  return groups;
}

json names_of(const std::vector<std::string>& nodes, const std::vector<std::uint32_t>& numbers) {
  json names = json::array();
  for (const std::uint32_t number : numbers) names.push_back(nodes[number]);
  return names;
}

json assessment_of(const VersionInspection& inspection) {
  const redundancy::Assessment& found = inspection.assessment;
  json sources = json::array();
  for (const redundancy::Source& source : found.sources) {
    sources.push_back(redundancy::source_kind_name(source.kind));
  }
  json pairs = nullptr;  // the pairs were not tried, and a missing number is not zero
  if (found.pairs_tried) {
    json examples = json::array();
    for (const redundancy::Loss& loss : found.fatal_pair_examples)
      examples.push_back(names_of(inspection.nodes, loss));
    pairs = {
        {"tried", found.pairs}, {"fatal", found.fatal_pairs}, {"examples", std::move(examples)}};
  }
  return {{"now", found.restorable},
          {"missing_ranks", found.missing},
          {"sources", std::move(sources)},
          {"fatal_single_nodes", names_of(inspection.nodes, found.fatal_nodes)},
          {"fatal_node_pairs", std::move(pairs)},
          {"without_any_node", found.survives_all_nodes}};
}

json inspection_of(const VersionInspection& inspection) {
  json one = identity_of(*inspection.version);
  one["changed_while_read"] = inspection.vanished;
  one["files_read"] = inspection.files;
  one["bytes_read"] = inspection.bytes;
  one["damages"] = json::array();
  for (const store::DamagedFile& damage : inspection.damages) {
    one["damages"].push_back({{"path", damage.path}, {"what", damage.what}});
  }
  one["nodes"] = inspection.nodes;
  one["nodes_unreached"] = inspection.nodes_unreached;
  one["restorable"] = assessment_of(inspection);
  return one;
}

}  // namespace

std::string list_json(const Collection& collection, const std::vector<const Job*>& jobs) {
  json document = {{"schema", 1}, {"jobs", json::array()}, {"problems", collection.problems}};
  for (const Job* job : jobs) {
    json versions = json::array();
    for (const CollectedVersion& version : job->versions) {
      json one = identity_of(version);
      put_stored(one, stored_bytes(version));
      one["parts"] = parts_of(version);
      one["problems"] = version.problems();
      versions.push_back(std::move(one));
    }
    document["jobs"].push_back({{"job", job->key}, {"versions", std::move(versions)}});
  }
  return dump(document);
}

std::string show_json(const Job& job, const VersionDetails& details,
                      const std::optional<VersionEnergy>& energy) {
  const format::Manifest& manifest = *details.version->manifest;
  json document = {{"schema", 1}, {"job", job.key}};
  document.update(identity_of(*details.version));
  if (energy) {
    document["energy"] = {{"seconds", energy->amount.seconds},
                          {"domain", energy->domain},
                          {"kind", energy->kind},
                          {"source", energy->source}};
    put_joules(document["energy"], energy->amount.joules);
  }
  document["nodes"] = manifest.node_names;
  document["ranks"] = json::array();
  for (std::size_t rank = 0; rank < manifest.ranks.size(); ++rank) {
    document["ranks"].push_back(rank_of(manifest.ranks[rank], details.ranks[rank], manifest));
  }
  document["groups"] = groups_of(manifest);
  put_stored(document, stored_bytes(*details.version));
  document["parts"] = parts_of(*details.version);
  document["problems"] = details.version->problems();
  return dump(document);
}

std::string verify_json(const Collection& collection, const std::vector<JobInspection>& jobs,
                        int exit_status) {
  json document = {{"schema", 1},
                   {"exit_status", exit_status},
                   {"jobs", json::array()},
                   {"problems", collection.problems}};
  for (const JobInspection& job : jobs) {
    json versions = json::array();
    for (const VersionInspection& inspection : job.versions)
      versions.push_back(inspection_of(inspection));
    document["jobs"].push_back({{"job", job.job->key}, {"versions", std::move(versions)}});
  }
  return dump(document);
}

}  // namespace diapause::cli
