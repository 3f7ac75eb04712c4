// `diapause show`: shows one version in detail.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "cli/collection.hpp"
#include "cli/energy_amounts.hpp"
#include "cli/inspection.hpp"
#include "cli/json_report.hpp"
#include "cli/text.hpp"
#include "cli/verbs.hpp"
#include "cli/version_energy.hpp"
#include "codec/block.hpp"

namespace diapause::cli {
namespace {

// Returns the version of that number; of several, the newest.
Result<const CollectedVersion*> choose(const Job& job, const std::optional<std::uint64_t>& number) {
  const CollectedVersion* without_manifest = nullptr;
  for (const CollectedVersion& version : job.versions) {
    if (number && version.id.number != *number) continue;
    if (version.manifest != nullptr) return &version;
    if (without_manifest == nullptr) without_manifest = &version;
  }
  if (without_manifest == nullptr) {
    return fail(Code::not_found, number
                                     ? fmt::format("there is no version {} of {}", *number, job.key)
                                     : fmt::format("there is no version of {}", job.key));
  }
  return fail(
      Code::not_found,
      fmt::format("version {} of {} is {}: nothing says what belongs to it; see diapause list",
                  without_manifest->id.number, job.key, state_of(*without_manifest)));
}

void print_head(const Job& job, const CollectedVersion& version,
                const std::optional<VersionEnergy>& energy) {
  const format::Manifest& manifest = *version.manifest;
  fmt::print("job          {}\n", job.key);
  fmt::print("version      {} (incarnation {}, commit {})\n", version.id.number,
             version.id.incarnation, version.id.commit.hex());
  fmt::print("time         {}\n", time_text(manifest.created_unix_ns));
  fmt::print("levels       {}\n", levels_text(manifest));
  fmt::print("data         {} in {} rank{}\n", bytes_text(data_bytes(manifest)),
             manifest.ranks.size(), manifest.ranks.size() == 1 ? "" : "s");
  const StoredBytes stored = stored_bytes(version);
  fmt::print("stored here  {}: {}\n", bytes_text(stored.all), printable(places_text(version)));
  fmt::print("of that      images {}, partner copies {}, parity {}\n", bytes_text(stored.images),
             bytes_text(stored.copies), bytes_text(stored.parity));
  if (const std::string text = compression_text(manifest); !text.empty())
    fmt::print("compressed   {}\n", text);
  if (energy) {
    fmt::print("energy       {} in {:.3f} s of its checkpoint, {}\n",
               joules_text(energy->amount.joules), energy->amount.seconds, energy->kind);
    if (energy->amount.joules.doubted > 0)
      fmt::print("             off by at most: {}\n", parts_text(energy->amount.joules));
  }
  if (manifest.lossy_restarts > 0) {
    fmt::print(
        "lineage      {} lossy restart{} before it: values may be further off than any bound "
        "says\n",
        manifest.lossy_restarts, manifest.lossy_restarts == 1 ? "" : "s");
  }
  fmt::print("state        {}\n", state_of(version));
  for (const std::string& problem : version.problems())
    fmt::print("problem      {}\n", printable(problem));
}

// Ranks of one node that do not differ in anything that is shown.
struct AlikeRanks {
  std::vector<std::uint32_t> ranks, partners;
};

// Prints one line for ranks that do not differ.
void print_ranks(const VersionDetails& details) {
  const format::Manifest& manifest = *details.version->manifest;
  std::vector<std::vector<std::string>> order;
  std::map<std::vector<std::string>, AlikeRanks> alike;
  std::string problems;
  for (std::uint32_t rank = 0; rank < manifest.ranks.size(); ++rank) {
    const format::RankRecord& record = manifest.ranks[rank];
    const RankDetails& found = details.ranks[rank];
    const bool has_partner = record.partner != format::kNoRank;
    const std::vector<std::string> cells = {
        printable(manifest.node_names[record.node]),
        has_partner ? printable(manifest.node_names[manifest.ranks[record.partner].node]) : "",
        bytes_text(record.protected_bytes), bytes_text(record.image.file_bytes),
        printable(fmt::format("{}", fmt::join(found.found_in, ", ")))};
    AlikeRanks& same = alike[cells];
    if (same.ranks.empty()) order.push_back(cells);
    same.ranks.push_back(rank);
    if (has_partner) same.partners.push_back(record.partner);
    if (!found.regions) problems += fmt::format("rank {}: {}\n", rank, printable(found.problem));
  }
  Table table({{"RANKS"},
               {"NODE"},
               {"PARTNERS"},
               {"DATA", Align::right},
               {"FILE", Align::right},
               {"FOUND IN"}});
  for (const std::vector<std::string>& cells : order) {
    AlikeRanks& same = alike[cells];
    std::sort(same.partners.begin(), same.partners.end());
    const std::string partners =
        same.partners.empty() ? "-"
                              : fmt::format("{} on {}", numbers_text(same.partners), cells[1]);
    table.add({numbers_text(same.ranks), cells[0], partners, cells[2], cells[3], cells[4]});
  }
  fmt::print("\n{}{}{}", table.text(),
             manifest.ranks.size() > order.size() ? "data and file are those of each rank\n" : "",
             problems);
}

void print_groups(const format::Manifest& manifest) {
  if (manifest.groups.empty()) return;
  Table table(
      {{"GROUP", Align::right}, {"MAY LOSE"}, {"CHUNK", Align::right}, {"MEMBERS: RANK ON NODE"}});
  for (std::size_t g = 0; g < manifest.groups.size(); ++g) {
    const format::Group& group = manifest.groups[g];
    std::vector<std::string> members;
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      const std::string rank =
          group.members[i] == format::kNoRank ? "none" : std::to_string(group.members[i]);
      members.push_back(fmt::format("{} on {}", rank, manifest.node_names[group.nodes[i]]));
    }
    table.add(
        {fmt::format("{}", g), fmt::format("{} of {} nodes", group.parity, group.nodes.size()),
         bytes_text(group.chunk_bytes), printable(fmt::format("{}", fmt::join(members, ", ")))});
  }
  fmt::print("\n{}", table.text());
}

// Prints one line for ranks that stored the same.
void print_regions(const VersionDetails& details) {
  using Key = std::tuple<std::string, format::ElementType, std::uint64_t, std::uint64_t>;
  std::vector<Key> order;
  std::map<Key, std::vector<std::uint32_t>> ranks_of;
  for (std::uint32_t rank = 0; rank < details.ranks.size(); ++rank) {
    if (!details.ranks[rank].regions) continue;
    for (const format::Region& region : *details.ranks[rank].regions) {
      const Key key{region.name, region.type, region.element_bytes, region.count};
      if (ranks_of[key].empty()) order.push_back(key);
      ranks_of[key].push_back(rank);
    }
  }
  Table table(
      {{"REGION"}, {"TYPE"}, {"COUNT", Align::right}, {"BYTES PER RANK", Align::right}, {"RANKS"}});
  for (const Key& key : order) {
    const auto& [name, type, element_bytes, count] = key;
    const std::string type_text = type == format::ElementType::bytes
                                      ? fmt::format("{} bytes", element_bytes)
                                      : std::string(format::element_type_name(type));
    table.add({printable(name), type_text, fmt::format("{}", count),
               bytes_text(element_bytes * count), numbers_text(ranks_of[key])});
  }
  if (!table.empty()) fmt::print("\n{}", table.text());
}

// The outcome of compression in the global tier, over all ranks whose images can be read.
struct Compressed {
  format::Compression asked;
  std::uint64_t bytes = 0, stored = 0, blocks = 0, lossy = 0, fallen_back = 0;
  double greatest_error = 0;
};

std::map<std::string, Compressed> compressed_regions(const VersionDetails& details) {
  std::map<std::string, Compressed> sums;
  for (const RankDetails& rank : details.ranks) {
    for (const format::Region& region : rank.compressed) {
      if (region.is_raw()) continue;
      Compressed& sum = sums[region.name];
      sum.asked = region.compression;
      sum.bytes += region.raw_bytes();
      sum.stored += region.stored_bytes;
      sum.blocks += region.block_count();
      sum.lossy += region.encoded.lossy;
      sum.fallen_back += region.encoded.fallen_back;
      sum.greatest_error = std::max(sum.greatest_error, region.encoded.greatest_error);
    }
  }
  return sums;
}

void print_compressed(const VersionDetails& details) {
  Table table({{"COMPRESSED"},
               {"CODEC"},
               {"RATIO", Align::right},
               {"BLOCKS", Align::right},
               {"LOSSY", Align::right},
               {"KEPT EXACT", Align::right},
               {"BOUND", Align::right},
               {"GREATEST ERROR", Align::right}});
  for (const auto& [name, sum] : compressed_regions(details)) {
    table.add(
        {printable(name), codec::codec_name(static_cast<codec::CodecId>(sum.asked.codec)),
         fmt::format("{:.2f}", static_cast<double>(sum.bytes) / static_cast<double>(sum.stored)),
         fmt::format("{}", sum.blocks), fmt::format("{}", sum.lossy),
         fmt::format("{}", sum.fallen_back),
         sum.asked.bound == 0 ? "exact" : fmt::format("{:g}", sum.asked.bound),
         sum.greatest_error == 0 ? "exact" : fmt::format("{:.3g}", sum.greatest_error)});
  }
  if (!table.empty()) fmt::print("\n{}", table.text());
}

}  // namespace

int show(const ShowArguments& arguments) {
  const auto collection = collect(arguments.places);
  if (!collection) return complain(collection.error());
  const auto found = find_job(*collection, arguments.job);
  if (!found) return complain(found.error());
  const Job& job = **found;
  const auto version = choose(job, arguments.version);
  if (!version) return complain(version.error());
  const VersionDetails details = read_details(**version);
  const auto energy = energy_of_version(job.key, (*version)->id.number, arguments.places);
  if (arguments.json) {
    fmt::print("{}\n", show_json(job, details, energy));
    return kDone;
  }
  print_head(job, **version, energy);
  print_ranks(details);
  print_groups(*(*version)->manifest);
  print_regions(details);
  print_compressed(details);
  return kDone;
}

}  // namespace diapause::cli
