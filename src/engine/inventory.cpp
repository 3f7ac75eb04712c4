#include "engine/inventory.hpp"

#include <algorithm>

#include "format/wire.hpp"
#include "store/names.hpp"

namespace diapause::engine {
namespace {

using format::Reader;
using format::Writer;

void put_text(Writer& writer, const std::string& text) {
  writer.u64(text.size());
  writer.text(text);
}

std::string get_text(Reader& reader) {
  const std::uint64_t length = reader.u64();
  return reader.text(length);
}

void describe(Writer& writer, const store::FoundVersion& found, config::TierKind kind, std::uint32_t node) {
  put_text(writer, store::version_directory(found.id));
  writer.u32(static_cast<std::uint32_t>(kind));
  writer.u32(node);
  put_text(writer, found.problem);
  writer.u32(found.is_unreadable ? 1 : 0);
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
  }
}

// What this process has to tell: its node's tiers if it acts for the node, the global tier if for the job.
struct Look {
  Writer writer{256};
  std::optional<Error> unread;
};
Look look(Context& context) {
  Look look;
  for (const config::TierKind kind : kAllTiers) {
    store::Tier* tier = context.tiers.find(kind);
    if (tier == nullptr || !context.acts_for(kind)) continue;
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

void merge_manifest(StoredVersion& version, ByteView bytes, config::TierKind kind, std::uint32_t node) {
  if (bytes.empty()) return;
  auto manifest = format::decode_manifest(bytes);
  if (!manifest) return;
  version.published_on[static_cast<std::size_t>(kind)].insert(node);
  const bool deeper = !version.manifest || manifest->deepest_level() > version.manifest->deepest_level();
  if (deeper) version.manifest = std::move(*manifest);
}

// Takes one version's description; false if it is cut short.
bool merge(std::map<format::VersionId, StoredVersion>& versions, Reader& reader, std::size_t node_count) {
  const auto id = store::parse_version_directory(get_text(reader));
  const std::uint32_t tier = reader.u32();
  const std::uint32_t node = reader.u32();
  if (!id || tier > static_cast<std::uint32_t>(config::TierKind::global) || node >= node_count) return false;
  const auto kind = static_cast<config::TierKind>(tier);
  StoredVersion& version = versions[*id];
  version.id = *id;
  version.nodes.resize(node_count);
  if (const std::string problem = get_text(reader); !problem.empty()) version.problems.push_back(problem);
  if (reader.u32() != 0) version.is_unreadable = true;
  const std::uint64_t manifest_bytes = reader.u64();
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

// Which images a shared file holds, any node's manifest can say.
void find_shared_images(StoredVersion& version) {
  for (std::uint32_t rank = 0; version.manifest && rank < version.manifest->ranks.size(); ++rank) {
    const std::uint32_t file = version.manifest->ranks[rank].shared_file;
    if (version.global_shared_files.contains(file)) version.global.images.insert(rank);
  }
}

}  // namespace

Result<Inventory> take_inventory(Context& context) {
  Look mine = look(context);
  Inventory inventory;
  for (const config::TierKind kind : kAllTiers) {
    const auto k = static_cast<std::size_t>(kind);
    if (context.tiers.find(kind) == nullptr && context.tiers.may_hold[k]) {
      add(inventory.unread, context.tiers.why_not[k]);
    }
  }
  const Status read = agree(context, mine.unread ? Status(fail(*mine.unread)) : Status());
  if (!read && read.error().code == Code::comm) return fail(read.error());
  if (!read) add(inventory.unread, read.error());
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all, agree_and_gather(context, {}, mine.writer.take()));
  std::map<format::VersionId, StoredVersion> versions;
  for (const ByteVector& part : all) {
    Reader reader(part);
    while (reader.remaining() > 0) {
      const bool whole = merge(versions, reader, context.topology.node_names.size());
      if (!whole) return fail(Code::comm, "a rank's inventory did not arrive whole");
    }
  }
  for (auto& [id, version] : versions) find_shared_images(version);
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) inventory.versions.push_back(std::move(it->second));
  return inventory;
}

}  // namespace diapause::engine
