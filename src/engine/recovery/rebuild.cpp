#include "engine/recovery/rebuild.hpp"

#include <algorithm>
#include <cstring>

#include "redundancy/layout.hpp"
#include "redundancy/reed_solomon.hpp"
#include "store/names.hpp"
#include "sys/thread.hpp"

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

// The chunk of a row, if it can be had.
std::optional<Rebuild::Chunk> find_chunk(const Topology& topology, const StoredVersion& version,
                                         std::uint32_t group, const redundancy::Chunk& chunk) {
  const format::Group& g = version.manifest->groups[group];
  const std::uint64_t offset = chunk.index * g.chunk_bytes;
  if (!chunk.is_parity && g.members[chunk.member] == format::kNoRank)
    return Rebuild::Chunk{chunk.position, std::nullopt, offset};
  auto served = chunk.is_parity ? find_parity(topology, version, group, chunk.member)
                                : find_image(topology, version, g.members[chunk.member]);
  if (!served) return std::nullopt;
  return Rebuild::Chunk{chunk.position, served, offset};
}

}  // namespace

Rebuild plan_rebuild(const Topology& topology, const StoredVersion& version, std::uint32_t rank) {
  const auto [group, member] =
      redundancy::membership_of(*version.manifest, rank).value_or(redundancy::Membership{});
  const format::Group& g = version.manifest->groups[group];
  Rebuild rebuild{rank, 0, g.parity, g.chunk_bytes, {}};
  const auto layout =
      redundancy::GroupLayout::create(static_cast<std::uint32_t>(g.members.size()), g.parity);
  if (!layout) return rebuild;
  rebuild.k = layout->k();
  for (std::uint32_t row = 0; row < layout->n(); ++row) {
    if (layout->holds_parity(member, row)) continue;
    const auto find = [&, group = group](const redundancy::Chunk& chunk) {
      return find_chunk(topology, version, group, chunk);
    };
    rebuild.rows.push_back({layout->position(member, row),
                            layout->chunk_index(member, row) * g.chunk_bytes,
                            layout->find_chunks(member, row, find)});
  }
  return rebuild;
}

Rebuild plan_copy(const Topology& topology, const StoredVersion& version, std::uint32_t rank,
                  std::uint32_t node) {
  const ServedFile copy{FileRef::image(rank, node), topology.leaders[node]};
  return {rank, 1, 0, version.manifest->ranks[rank].image.file_bytes, {{0, 0, {{0, copy, 0}}}}};
}

namespace {

// Each exchange makes the ranks wait for each other, so they are few. All chunks of two exchanges
// together take this much memory, within limits.
constexpr std::uint64_t kMemoryBytes = 16 * kMiB;
constexpr std::uint64_t kLeastPieceBytes = 256 * 1024;
constexpr std::uint64_t kMostPieceBytes = 4 * kMiB;
// What is computed and used at once stays in the cache.
constexpr std::uint64_t kStepBytes = 256 * 1024;

// Reads bytes of a chunk to `to`, or zeros if the file cannot be read.
void read_chunk(FileCache& files, const Rebuild::Chunk& chunk, std::uint64_t offset,
                MutableBytes to) {
  const auto read = [&] {
    if (!chunk.served) return false;
    auto reader = files.open(chunk.served->file);
    if (!reader) return false;
    const bool is_parity = chunk.served->file.is_parity;
    if (is_parity && (*reader)->index().regions.empty()) return false;
    const std::uint64_t base = is_parity ? (*reader)->index().regions[0].offset : 0;
    const auto view = (*reader)->bytes().view(base + chunk.offset + offset, to);
    if (view && view->data() != to.data()) std::memcpy(to.data(), view->data(), to.size());
    return view.has_value();
  };
  if (!read()) std::ranges::fill(to, std::byte{0});
}

// What one process does for one rebuild: it reads chunks, gets those of others, or both.
class Rebuilder {
 public:
  Rebuilder(const Context& context, const Rebuild& rebuild, FileCache& files)
      : context_(context),
        rebuild_(rebuild),
        files_(files),
        is_target_(context.topology.acts_for(rebuild.target)),
        piece_bytes_(std::clamp(kMemoryBytes / 2 / rebuild.k, kLeastPieceBytes, kMostPieceBytes)),
        pieces_(rebuild.k),
        pieces_in_use_(rebuild.k),
        decoded_(rebuild.is_copy() ? 0 : kStepBytes) {}

  Status run(const ImageRange& range, const TakeBytes& take) {
    std::optional<redundancy::ReedSolomon> code;
    if (!rebuild_.is_copy()) {
      DIAPAUSE_TRY_ASSIGN(code, redundancy::ReedSolomon::create(rebuild_.k, rebuild_.m));
    }
    for (const Rebuild::Row& row : rebuild_.rows) {
      user_.reset();
      if (code) {
        DIAPAUSE_TRY_ASSIGN(decoder_, row_decoder(*code, row));
      }
      const std::uint64_t row_end = row.target_offset + rebuild_.row_bytes;
      const std::uint64_t end = std::min(range.end, row_end);
      for (std::uint64_t at = std::max(range.begin, row.target_offset); at < end;
           at += piece_bytes_) {
        const std::uint64_t length = std::min(piece_bytes_, end - at);
        DIAPAUSE_TRY(gather(row, at - row.target_offset, length));
        if (is_target_) use_behind(at, length, take);
      }
    }
    user_.reset();
    return {};
  }

 private:
  static Result<redundancy::ReedSolomon::Decoder> row_decoder(const redundancy::ReedSolomon& code,
                                                              const Rebuild::Row& row) {
    std::vector<std::uint32_t> available;
    for (const Rebuild::Chunk& chunk : row.chunks) available.push_back(chunk.position);
    const std::uint32_t wanted[] = {row.target_position};
    return code.decoder(available, wanted);
  }

  // One piece of one row: servers send, and the target receives, or reads what it serves itself.
  Status gather(const Rebuild::Row& row, std::uint64_t offset, std::uint64_t length) {
    std::vector<comm::Send> sends;
    std::vector<comm::Receive> receives;
    for (std::size_t i = 0; i < row.chunks.size(); ++i) {
      const Rebuild::Chunk& chunk = row.chunks[i];
      const bool is_mine =
          chunk.served ? context_.topology.acts_for(chunk.served->server) : is_target_;
      if (!is_mine && !is_target_) continue;
      pieces_[i].resize(std::max<std::size_t>(pieces_[i].size(), length));
      const MutableBytes piece = MutableBytes(pieces_[i]).first(length);
      if (is_mine) read_chunk(files_, chunk, offset, piece);
      if (is_mine && !is_target_) sends.push_back({context_.actor(rebuild_.target), piece});
      if (!is_mine && is_target_) receives.push_back({context_.actor(chunk.served->server), piece});
    }
    return context_.comm->exchange(sends, receives);
  }

  // Gives away what the pieces hold, which is byte `at` of the image and those after it. That is
  // done while the next pieces come.
  void use_behind(std::uint64_t at, std::uint64_t length, const TakeBytes& take) {
    user_.reset();
    pieces_in_use_.swap(pieces_);
    const auto use = [this, at, length, &take] {
      for (std::uint64_t done = 0; done < length; done += kStepBytes)
        take(at + done, decode(done, std::min(kStepBytes, length - done)));
    };
    if (length <= kStepBytes) return use();
    auto started = sys::Thread::start(use);
    if (started) user_.emplace(std::move(*started));
    if (!started) use();
  }

  // Returns bytes of the image, from those of the pieces from `offset` on.
  ByteView decode(std::uint64_t offset, std::uint64_t length) {
    if (!decoder_) return ByteView(pieces_in_use_[0]).subspan(offset, length);
    std::vector<const std::byte*> available;
    for (const ByteVector& piece : pieces_in_use_) available.push_back(piece.data() + offset);
    std::byte* const wanted[] = {decoded_.data()};
    decoder_->decode(available, wanted, length);
    return ByteView(decoded_).first(length);
  }

  const Context& context_;
  const Rebuild& rebuild_;
  FileCache& files_;
  const bool is_target_;
  const std::uint64_t piece_bytes_;
  std::vector<ByteVector> pieces_;  // of the chunks that this process reads or gets
  std::vector<ByteVector> pieces_in_use_;
  ByteVector decoded_;
  std::optional<redundancy::ReedSolomon::Decoder> decoder_;  // of the present row
  std::optional<sys::Thread> user_;  // of pieces_in_use_; it ends before they do
};

}  // namespace

Status execute_rebuild(const Context& context, const Rebuild& rebuild, FileCache& files,
                       const ImageRange& range, const TakeBytes& take) {
  const std::vector<ServedFile> served = rebuild.files();
  const bool serves = std::ranges::any_of(
      served, [&](const ServedFile& file) { return context.topology.acts_for(file.server); });
  if (!serves && !context.topology.acts_for(rebuild.target)) return {};
  return Rebuilder(context, rebuild, files).run(range, take);
}

}  // namespace diapause::engine
