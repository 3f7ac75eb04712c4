#include "engine/job/inventory_reports.hpp"

#include <utility>

#include "store/names.hpp"

namespace diapause::engine {
namespace {

using format::Reader;
using format::Writer;

// Merges the mark that rank 0 reports for all. Each process's report begins with such a text.
void merge_mark(store::FinishedMark& mark, Reader& reader) {
  const auto read = store::decode_finished(reader.sized_text());
  if (read && read->incarnation > mark.incarnation) mark = *read;
}

// Merges one version's description, of the report of `process`. Returns false if it is cut short.
bool merge(Merged& merged, Reader& reader, std::size_t process, std::size_t node_count) {
  const auto id = store::parse_version_directory(reader.sized_text());
  const std::uint32_t tier = reader.u32();
  const std::uint32_t node = reader.u32();
  if (!id || tier > static_cast<std::uint32_t>(config::TierKind::global) || node >= node_count)
    return false;
  const auto kind = static_cast<config::TierKind>(tier);
  StoredVersion& version = merged.versions[*id];
  version.id = *id;
  version.nodes.resize(node_count);
  const std::string problem = reader.sized_text();
  if (!problem.empty()) version.problems.push_back(problem);
  if (reader.u32() != 0) version.is_unreadable = true;
  if (reader.u32() != 0) version.is_of_the_moment = true;
  const std::uint32_t depth = reader.u32();
  if (problem.empty() && depth == 0) version.is_without_manifest_in[tier] = true;
  if (depth > 0) version.published_on[tier].insert(node);
  if (Sender& sender = merged.senders[*id]; depth > sender.depth) sender = {depth, process};

  const bool global = kind == config::TierKind::global;
  redundancy::Holdings& holdings = global ? version.global : version.nodes[node];
  const std::uint64_t images = reader.u64();
  for (std::uint64_t i = 0; i < images && reader.ok(); ++i) {
    const std::uint32_t rank = reader.u32();
    holdings.images.insert(rank);
    if (!global) version.tier_of[{node, store::image_name(rank)}] = kind;
  }
  const std::uint64_t shared_files = reader.u64();
  for (std::uint64_t i = 0; i < shared_files && reader.ok(); ++i)
    version.global_shared_files.insert(reader.u32());
  const std::uint64_t parities = reader.u64();
  for (std::uint64_t i = 0; i < parities && reader.ok(); ++i) {
    const std::uint32_t group = reader.u32();
    const std::uint32_t member = reader.u32();
    holdings.parities.insert({group, member});
    if (!global) version.tier_of[{node, store::parity_name(group, member)}] = kind;
  }
  return reader.ok();
}

}  // namespace

void write_mark(Writer& report, const store::FinishedMark& mark) {
  report.sized_text(store::encode_finished(mark));
}

void describe(Writer& writer, const store::FoundVersion& found, config::TierKind kind,
              std::uint32_t node) {
  writer.sized_text(store::version_directory(found.id));
  writer.u32(static_cast<std::uint32_t>(kind));
  writer.u32(node);
  writer.sized_text(found.problem);
  writer.u32(found.is_unreadable ? 1 : 0);
  writer.u32(found.is_of_the_moment ? 1 : 0);
  // One of those who have a manifest sends it later.
  writer.u32(found.manifest ? 1 + static_cast<std::uint32_t>(found.manifest->deepest_level()) : 0);
  writer.u64(found.images.size());
  for (const std::uint32_t rank : found.images) writer.u32(rank);
  writer.u64(found.shared_files.size());
  for (const std::uint32_t number : found.shared_files) writer.u32(number);
  writer.u64(found.parities.size());
  for (const auto& [group, member] : found.parities) {
    writer.u32(group);
    writer.u32(member);
  }
}

Result<Merged> merge_reports(std::span<const ByteVector> reports, std::size_t node_count) {
  Merged merged;
  for (std::size_t process = 0; process < reports.size(); ++process) {
    Reader reader(reports[process]);
    merge_mark(merged.mark, reader);
    while (reader.remaining() > 0) {
      const bool whole = merge(merged, reader, process, node_count);
      if (!whole) return fail(Code::comm, "a rank's inventory did not arrive whole");
    }
  }
  return merged;
}

}  // namespace diapause::engine
