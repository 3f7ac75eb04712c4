#include "engine/job/inventory.hpp"

#include <algorithm>

#include "engine/job/inventory_reports.hpp"
#include "format/wire.hpp"

namespace diapause::engine {
namespace {

using format::Reader;
using format::Writer;

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
  // The deepest that this process has of each version; of several, the first.
  std::map<format::VersionId, format::Manifest> manifests;
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
    for (const store::FoundVersion& version : *versions) {
      describe(look.writer, version, kind, context.topology.node);
      if (!version.manifest) continue;
      const auto [known, is_new] = look.manifests.try_emplace(version.id, *version.manifest);
      const bool is_deeper = version.manifest->deepest_level() > known->second.deepest_level();
      if (!is_new && is_deeper) known->second = *version.manifest;
    }
  }
  return look;
}

// Gives every version its manifest. Each manifest is sent once, by one process, however many nodes
// have it. It names all ranks, so sending the copies of all nodes would take bytes in proportion to
// nodes times ranks. Collective.
Status exchange_manifests(const Context& context, Merged& merged, const Look& mine) {
  Writer own(256);
  for (const auto& [id, sender] : merged.senders) {
    if (sender.depth == 0 || sender.process != context.comm->rank()) continue;
    const ByteVector manifest = format::encode_manifest(mine.manifests.at(id));
    own.u64(manifest.size());
    own.append(manifest);
  }
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all, agree_and_gather(context, {}, own.take()));
  std::vector<Reader> readers(all.begin(), all.end());
  for (auto& [id, version] : merged.versions) {
    const Sender& sender = merged.senders.at(id);
    if (sender.depth == 0) continue;
    Reader& reader = readers[sender.process];
    const std::uint64_t length = reader.u64();
    auto manifest = format::decode_manifest(reader.take(length));
    if (!reader.ok() || !manifest) return fail(Code::comm, "a manifest did not arrive whole");
    version.manifest = std::move(*manifest);
  }
  return {};
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
  write_mark(own, mine.mark);
  own.append(mine.writer.take());
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all, agree_and_gather(context, {}, own.take()));
  DIAPAUSE_TRY_ASSIGN(Merged merged, merge_reports(all, context.topology.node_names.size()));
  inventory.mark = merged.mark;
  std::map<format::VersionId, StoredVersion>& versions = merged.versions;
  DIAPAUSE_TRY(exchange_manifests(context, merged, mine));
  for (auto& [id, version] : versions) find_shared_images(version);
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
    auto& list = inventory.mark.covers(it->first) ? inventory.finished : inventory.versions;
    list.push_back(std::move(it->second));
  }
  return inventory;
}

}  // namespace diapause::engine
