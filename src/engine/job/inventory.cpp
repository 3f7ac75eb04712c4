#include "engine/job/inventory.hpp"

#include <algorithm>

#include "format/wire.hpp"
#include "store/names.hpp"

namespace diapause::engine {
namespace {

using format::Reader;
using format::Writer;

void write_text(Writer& writer, const std::string& text) {
  writer.u64(text.size());
  writer.text(text);
}

std::string read_text(Reader& reader) {
  const std::uint64_t length = reader.u64();
  return reader.text(length);
}

void describe(Writer& writer, const store::FoundVersion& found, config::TierKind kind, std::uint32_t node) {
  write_text(writer, store::version_directory(found.id));
  writer.u32(static_cast<std::uint32_t>(kind));
  writer.u32(node);
  write_text(writer, found.problem);
  writer.u32(found.is_unreadable ? 1 : 0);
  writer.u32(found.is_of_the_moment ? 1 : 0);
  const ByteVector manifest = found.manifest ? format::encode_manifest(*found.manifest) : ByteVector{};
  writer.u64(manifest.size());
  writer.append(manifest);
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

void add(std::optional<Error>& errors, const Error& more) {
  if (!errors) {
    errors = more;
  } else {
    errors->message += "\n" + more.message;
    if (is_of_the_moment(more.code)) errors->code = more.code;
  }
}

// Returns the mark of a finished job. A mark that cannot be read counts as none: the versions that
// it covers were removed when it was written.
store::FinishedMark mark_in(const Context& context, const store::Tier& global) {
  auto mark = store::read_finished(global.directory());
  if (mark) return *mark;
  context.log(Severity::warning, mark.error().message);
  return {};
}

// The report of this process: its node's tiers if it acts for the node, and the global tier if it
// acts for the job.
struct Look {
  store::FinishedMark mark;
  Writer writer{256};
  std::optional<Error> unread;
};
Look look(const Context& context) {
  Look look;
  for (const config::TierKind kind : kAllTiers) {
    store::Tier* tier = context.tiers.find_to_read(kind);
    if (tier == nullptr || !context.acts_for(kind)) continue;
    if (kind == config::TierKind::global) look.mark = mark_in(context, *tier);
    const auto versions = tier->scan();
    if (!versions) {
      context.log(Severity::warning, versions.error().message);
      if (versions.error().code != Code::not_found) add(look.unread, versions.error());
      continue;
    }
    for (const store::FoundVersion& version : *versions) describe(look.writer, version, kind, context.topology.node);
  }
  return look;
}

// Merges the mark that rank 0 reports for all. Each process's report begins with such a text.
void merge_mark(store::FinishedMark& mark, Reader& reader) {
  const auto read = store::decode_finished(read_text(reader));
  if (read && read->incarnation > mark.incarnation) mark = *read;
}

void merge_manifest(StoredVersion& version, ByteView bytes, config::TierKind kind, std::uint32_t node) {
  if (bytes.empty()) return;
  auto manifest = format::decode_manifest(bytes);
  if (!manifest) return;
  version.published_on[static_cast<std::size_t>(kind)].insert(node);
  const bool deeper = !version.manifest || manifest->deepest_level() > version.manifest->deepest_level();
  if (deeper) version.manifest = std::move(*manifest);
}

// Merges one version's description. Returns false if it is cut short.
bool merge(std::map<format::VersionId, StoredVersion>& versions, Reader& reader, std::size_t node_count) {
  const auto id = store::parse_version_directory(read_text(reader));
  const std::uint32_t tier = reader.u32();
  const std::uint32_t node = reader.u32();
  if (!id || tier > static_cast<std::uint32_t>(config::TierKind::global) || node >= node_count) return false;
  const auto kind = static_cast<config::TierKind>(tier);
  StoredVersion& version = versions[*id];
  version.id = *id;
  version.nodes.resize(node_count);
  const std::string problem = read_text(reader);
  if (!problem.empty()) version.problems.push_back(problem);
  if (reader.u32() != 0) version.is_unreadable = true;
  if (reader.u32() != 0) version.is_of_the_moment = true;
  const std::uint64_t manifest_bytes = reader.u64();
  if (problem.empty() && manifest_bytes == 0) version.is_without_manifest_in[tier] = true;
  merge_manifest(version, reader.take(manifest_bytes), kind, node);

  const bool global = kind == config::TierKind::global;
  redundancy::Holdings& holdings = global ? version.global : version.nodes[node];
  const std::uint64_t images = reader.u64();
  for (std::uint64_t i = 0; i < images && reader.ok(); ++i) {
    const std::uint32_t rank = reader.u32();
    holdings.images.insert(rank);
    if (!global) version.tier_of[{node, store::image_name(rank)}] = kind;
  }
  const std::uint64_t shared_files = reader.u64();
  for (std::uint64_t i = 0; i < shared_files && reader.ok(); ++i) version.global_shared_files.insert(reader.u32());
  const std::uint64_t parities = reader.u64();
  for (std::uint64_t i = 0; i < parities && reader.ok(); ++i) {
    const std::uint32_t group = reader.u32();
    const std::uint32_t member = reader.u32();
    holdings.parities.insert({group, member});
    if (!global) version.tier_of[{node, store::parity_name(group, member)}] = kind;
  }
  return reader.ok();
}

// Finds out which images a shared file holds, which any node's manifest says.
void find_shared_images(StoredVersion& version) {
  for (std::uint32_t rank = 0; version.manifest && rank < version.manifest->ranks.size(); ++rank) {
    const std::uint32_t file = version.manifest->ranks[rank].shared_file;
    if (version.global_shared_files.contains(file)) version.global.images.insert(rank);
  }
}

}  // namespace

Result<Inventory> take_inventory(const Context& context) {
  Look mine = look(context);
  Inventory inventory;
  for (const config::TierKind kind : kAllTiers) {
    if (context.tiers.find(kind) == nullptr && context.tiers.may_hold(kind)) {
      add(inventory.unread, context.tiers.why_not(kind));
    }
  }
  const Status read = agree(context, mine.unread ? Status(fail(*mine.unread)) : Status());
  if (!read && read.error().code == Code::comm) return fail(read.error());
  if (!read) add(inventory.unread, read.error());
  Writer own(256);
  write_text(own, store::encode_finished(mine.mark));
  own.append(mine.writer.take());
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all, agree_and_gather(context, {}, own.take()));
  std::map<format::VersionId, StoredVersion> versions;
  for (const ByteVector& part : all) {
    Reader reader(part);
    merge_mark(inventory.mark, reader);
    while (reader.remaining() > 0) {
      const bool whole = merge(versions, reader, context.topology.node_names.size());
      if (!whole) return fail(Code::comm, "a rank's inventory did not arrive whole");
    }
  }
  for (auto& [id, version] : versions) find_shared_images(version);
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
    auto& list = inventory.mark.covers(it->first) ? inventory.finished : inventory.versions;
    list.push_back(std::move(it->second));
  }
  return inventory;
}

}  // namespace diapause::engine
