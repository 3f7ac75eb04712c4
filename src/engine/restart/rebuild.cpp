#include "engine/restart/rebuild.hpp"

#include <algorithm>
#include <cstring>

#include "redundancy/layout.hpp"
#include "redundancy/reed_solomon.hpp"
#include "store/names.hpp"

namespace diapause::engine {

Result<store::ImageReader*> FileCache::open(const FileRef& file) {
  if (const auto found = readers_.find(file); found != readers_.end()) return &found->second;
  const format::Manifest& manifest = *version_->manifest;
  const std::string name =
      file.is_parity ? store::parity_name(file.group, file.index) : store::image_name(file.index);
  const auto tier_of = version_->tier_of.find({file.node, name});
  const config::TierKind kind = file.is_global || tier_of == version_->tier_of.end()
                                    ? config::TierKind::global
                                    : tier_of->second;
  DIAPAUSE_TRY_ASSIGN(store::Tier* const tier, context_->tiers.get_to_read(kind));
  const store::LocatedImage located =
      file.is_parity
          ? store::LocatedImage{name, store::expected_parity(manifest, file.group, file.index)}
          : store::locate_image(kind, manifest, file.index);
  DIAPAUSE_TRY_ASSIGN(store::ImageReader reader,
                      tier->open_image(manifest.version, located.file, located.expected));
  return &readers_.emplace(file, std::move(reader)).first->second;
}

Result<store::ImageReader> FileCache::take(const FileRef& file) {
  DIAPAUSE_TRY(open(file));
  const auto found = readers_.find(file);
  store::ImageReader reader = std::move(found->second);
  readers_.erase(found);
  return reader;
}

std::vector<ServedFile> Rebuild::files() const {
  std::set<ServedFile> all;
  for (const Row& row : rows) {
    for (const Chunk& chunk : row.chunks) {
      if (chunk.served) all.insert(*chunk.served);
    }
  }
  return {all.begin(), all.end()};
}

namespace {

// Returns which rank can read this image, preferably on the node that the image belongs to; none if
// no rank can.
std::optional<ServedFile> find_image(const Topology& topology, const StoredVersion& version,
                                     std::uint32_t rank) {
  const std::uint32_t home = topology.node_of_rank[rank];
  if (version.nodes[home].images.contains(rank))
    return ServedFile{FileRef::image(rank, home), rank};
  for (std::uint32_t node = 0; node < version.nodes.size(); ++node) {
    if (version.nodes[node].images.contains(rank)) {
      return ServedFile{FileRef::image(rank, node), topology.leaders[node]};
    }
  }
  const bool is_as_on_node =
      version.global.images.contains(rank) && !version.manifest->ranks[rank].is_encoded();
  if (is_as_on_node) return ServedFile{FileRef::global_image(rank), rank};
  return std::nullopt;
}

std::optional<ServedFile> find_parity(const Topology& topology, const StoredVersion& version,
                                      std::uint32_t group, std::uint32_t member) {
  for (std::uint32_t node = 0; node < version.nodes.size(); ++node) {
    if (version.nodes[node].parities.contains({group, member})) {
      return ServedFile{FileRef::parity(group, member, node), topology.leaders[node]};
    }
  }
  return std::nullopt;
}

// The chunk at `position` of a row, if it can be had.
std::optional<Rebuild::Chunk> find_chunk(const Topology& topology, const StoredVersion& version,
                                         std::uint32_t group, const redundancy::GroupLayout& layout,
                                         std::uint32_t row, std::uint32_t position) {
  const format::Group& g = version.manifest->groups[group];
  const std::uint32_t member = layout.member_at(position, row);
  const std::uint64_t offset = layout.chunk_index(member, row) * g.chunk_bytes;
  if (position >= layout.k()) {
    auto served = find_parity(topology, version, group, member);
    if (!served) return std::nullopt;
    return Rebuild::Chunk{position, served, offset};
  }
  if (g.members[member] == format::kNoRank) return Rebuild::Chunk{position, std::nullopt, offset};
  auto served = find_image(topology, version, g.members[member]);
  if (!served) return std::nullopt;
  return Rebuild::Chunk{position, served, offset};
}

std::pair<std::uint32_t, std::uint32_t> group_and_member(const format::Manifest& manifest,
                                                         std::uint32_t rank) {
  for (std::uint32_t g = 0; g < manifest.groups.size(); ++g) {
    const auto& members = manifest.groups[g].members;
    const auto found = std::find(members.begin(), members.end(), rank);
    if (found != members.end()) return {g, static_cast<std::uint32_t>(found - members.begin())};
  }
  return {0, 0};
}

}  // namespace

Rebuild plan_rebuild(const Topology& topology, const StoredVersion& version, std::uint32_t rank) {
  const auto [group, member] = group_and_member(*version.manifest, rank);
  const format::Group& g = version.manifest->groups[group];
  Rebuild rebuild{rank, group, {}};
  const auto layout =
      redundancy::GroupLayout::create(static_cast<std::uint32_t>(g.members.size()), g.parity);
  if (!layout) return rebuild;
  for (std::uint32_t row = 0; row < layout->n(); ++row) {
    if (layout->holds_parity(member, row)) continue;
    Rebuild::Row planned{
        layout->position(member, row), layout->chunk_index(member, row) * g.chunk_bytes, {}};
    for (std::uint32_t position = 0; position < layout->n() && planned.chunks.size() < layout->k();
         ++position) {
      if (position == planned.target_position) continue;
      if (auto chunk = find_chunk(topology, version, group, *layout, row, position))
        planned.chunks.push_back(*chunk);
    }
    rebuild.rows.push_back(std::move(planned));
  }
  return rebuild;
}

namespace {

// Bytes of a chunk, as the file's reader gives them; zeros if it cannot.
void read_chunk(FileCache& files, const Rebuild::Chunk& chunk, std::uint64_t offset,
                MutableBytes to) {
  std::memset(to.data(), 0, to.size());
  if (!chunk.served) return;
  auto reader = files.open(chunk.served->file);
  if (!reader) return;
  const bool parity = chunk.served->file.is_parity;
  if (parity && (*reader)->index().regions.empty()) return;
  const std::uint64_t base = parity ? (*reader)->index().regions[0].offset : 0;
  const auto view = (*reader)->bytes().view(base + chunk.offset + offset, to);
  if (view && view->data() != to.data()) std::memcpy(to.data(), view->data(), to.size());
}

// One piece of one row: servers send, the target receives or reads what it serves itself.
Status gather_piece(const Context& context, const Rebuild& rebuild, const Rebuild::Row& row,
                    std::uint64_t offset, std::uint64_t length, FileCache& files,
                    std::vector<ByteVector>& pieces) {
  std::vector<comm::Send> sends;
  std::vector<comm::Receive> receives;
  const std::uint32_t me = context.rank();
  for (std::size_t i = 0; i < row.chunks.size(); ++i) {
    const Rebuild::Chunk& chunk = row.chunks[i];
    const MutableBytes piece = MutableBytes(pieces[i]).first(length);
    const bool mine = chunk.served ? chunk.served->server == me : rebuild.target == me;
    if (mine) read_chunk(files, chunk, offset, piece);
    if (mine && rebuild.target != me) sends.push_back({rebuild.target, piece});
    if (!mine && rebuild.target == me) receives.push_back({chunk.served->server, piece});
  }
  return context.comm->exchange(sends, receives);
}

Result<redundancy::ReedSolomon::Decoder> row_decoder(const redundancy::ReedSolomon& code,
                                                     const Rebuild::Row& row) {
  std::vector<std::uint32_t> available;
  for (const Rebuild::Chunk& chunk : row.chunks) available.push_back(chunk.position);
  const std::uint32_t wanted[] = {row.target_position};
  return code.decoder(available, wanted);
}

}  // namespace

std::uint64_t room_for(const format::Manifest& manifest, const Rebuild& rebuild) {
  return rebuild.rows.size() * manifest.groups[rebuild.group].chunk_bytes;
}

Status execute_rebuild(const Context& context, const format::Manifest& manifest,
                       const Rebuild& rebuild, FileCache& files, MutableBytes room) {
  const bool is_target = rebuild.target == context.rank();
  const std::vector<ServedFile> served = rebuild.files();
  const bool serves = std::any_of(served.begin(), served.end(), [&](const ServedFile& file) {
    return file.server == context.rank();
  });
  if (!is_target && !serves) return {};

  const format::Group& group = manifest.groups[rebuild.group];
  const auto n = static_cast<std::uint32_t>(group.members.size());
  DIAPAUSE_TRY_ASSIGN(const redundancy::ReedSolomon code,
                      redundancy::ReedSolomon::create(n - group.parity, group.parity));
  std::vector<ByteVector> pieces(code.k(), ByteVector(kRebuildPieceBytes));
  for (const Rebuild::Row& row : rebuild.rows) {
    DIAPAUSE_TRY_ASSIGN(const redundancy::ReedSolomon::Decoder decoder, row_decoder(code, row));
    for (std::uint64_t offset = 0; offset < group.chunk_bytes; offset += kRebuildPieceBytes) {
      const std::uint64_t length = std::min(kRebuildPieceBytes, group.chunk_bytes - offset);
      DIAPAUSE_TRY(gather_piece(context, rebuild, row, offset, length, files, pieces));
      if (room.empty()) continue;
      std::vector<const std::byte*> available;
      for (const ByteVector& piece : pieces) available.push_back(piece.data());
      std::byte* const wanted[] = {room.data() + row.target_offset + offset};
      decoder.decode(available, wanted, length);
    }
  }
  return {};
}

}  // namespace diapause::engine
