#include "engine/recovery/rebuild.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "redundancy/layout.hpp"
#include "redundancy/reed_solomon.hpp"
#include "store/names.hpp"
#include "sys/file.hpp"
#include "sys/thread.hpp"

namespace diapause::engine {

Result<FileCache::Located> FileCache::locate(const FileRef& file) const {
  const format::Manifest& manifest = *version_->manifest;
  const std::string name =
      file.is_parity ? store::parity_name(file.group, file.index) : store::image_name(file.index);
  const auto tier_of = version_->tier_of.find({file.node, name});
  const config::TierKind kind = file.is_global || tier_of == version_->tier_of.end()
                                    ? config::TierKind::global
                                    : tier_of->second;
  DIAPAUSE_TRY_ASSIGN(store::Tier* const tier, context_->tiers.get_to_read(kind));
  const store::LocatedImage image =
      file.is_parity
          ? store::LocatedImage{name, store::expected_parity(manifest, file.group, file.index)}
          : store::locate_image(kind, manifest, file.index);
  return Located{tier, image};
}

Result<store::ImageReader*> FileCache::open(const FileRef& file) {
  if (const auto found = readers_.find(file); found != readers_.end()) return &found->second;
  DIAPAUSE_TRY_ASSIGN(const Located located, locate(file));
  DIAPAUSE_TRY_ASSIGN(store::ImageReader reader,
                      located.tier->open_image(version_->manifest->version, located.image.file,
                                               located.image.expected));
  return &readers_.emplace(file, std::move(reader)).first->second;
}

// The file was opened before, and its header and index are sound.
Result<sys::PrivateMemory> FileCache::map_from_memory(const FileRef& file) const {
  DIAPAUSE_TRY_ASSIGN(const Located located, locate(file));
  const auto& [name, expected] = located.image;
  if (!located.tier->is_in_memory()) return fail(Code::not_found, name + " is not in memory");
  DIAPAUSE_TRY_ASSIGN(
      const sys::Directory place,
      located.tier->directory().open_child(store::version_directory(version_->manifest->version)));
  DIAPAUSE_TRY_ASSIGN(const sys::File opened, place.open_file(name, sys::Access::read));
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, opened.size());
  if (size < expected.offset + expected.record.file_bytes)
    return fail(Code::corrupt, opened.path() + " was cut short");
  return sys::PrivateMemory::of_file(opened, expected.offset, expected.record.file_bytes);
}

const Result<sys::PrivateMemory>& FileCache::in_place(const FileRef& file) {
  const auto found = in_place_.find(file);
  return found != in_place_.end() ? found->second
                                  : in_place_.emplace(file, map_from_memory(file)).first->second;
}

bool FileCache::is_in_place(const FileRef& file) {
  return open(file).has_value() && in_place(file).has_value();
}

Result<store::ImageReader> FileCache::take(const FileRef& file) {
  DIAPAUSE_TRY(open(file));
  const auto found = readers_.find(file);
  store::ImageReader reader = std::move(found->second);
  readers_.erase(found);
  return reader;
}

Result<ByteView> FileCache::view(const FileRef& file, std::uint64_t offset, MutableBytes scratch) {
  DIAPAUSE_TRY_ASSIGN(store::ImageReader* const reader, open(file));
  if (file.is_parity) {
    if (reader->index().regions.empty())
      return fail(Code::corrupt, reader->name() + " holds no parity");
    offset += reader->index().regions[0].offset;
  }
  if (const Result<sys::PrivateMemory>& mapped = in_place(file)) {
    const ByteView all = mapped->bytes();
    if (offset <= all.size() && scratch.size() <= all.size() - offset)
      return all.subspan(offset, scratch.size());
  }
  return reader->bytes().view(offset, scratch);
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

// Each exchange makes the ranks wait for each other, so they are few. What a process holds at a
// time takes this much memory, within limits.
constexpr std::uint64_t kMemoryBytes = 16 * kMiB;
constexpr std::uint64_t kLeastPieceBytes = 256 * 1024;
constexpr std::uint64_t kMostPieceBytes = kMiB;
// A server sends so much at a time of files that lie in memory, for which it needs no other memory.
constexpr std::uint64_t kServedInPlaceBytes = 32 * kMiB;
// What is computed and used at once stays in the cache.
constexpr std::uint64_t kStepBytes = 256 * 1024;

// Returns bytes of a chunk, which may lie in `room`; zeros if the file cannot be read.
ByteView look_at(FileCache& files, const Rebuild::Chunk& chunk, std::uint64_t offset,
                 MutableBytes room) {
  if (chunk.served) {
    const auto seen = files.view(chunk.served->file, chunk.offset + offset, room);
    if (seen) return *seen;
  }
  std::ranges::fill(room, std::byte{0});
  return room;
}

// What one process does for one rebuild: it reads chunks, gets those of others, or both. Beside
// each exchange a thread works: with the target it uses what came before, with a server it reads
// what comes next.
class Rebuilder {
 public:
  Rebuilder(const Context& context, const Rebuild& rebuild, FileCache& files)
      : context_(context),
        rebuild_(rebuild),
        files_(files),
        is_target_(context.topology.acts_for(rebuild.target)),
        decoded_(rebuild.is_copy() ? 0 : kStepBytes) {}

  Status run(const ImageRange& range, const TakeBytes& take) {
    pieces_ = cut(range);
    DIAPAUSE_TRY(make_room());
    std::optional<redundancy::ReedSolomon> code;
    if (!rebuild_.is_copy()) {
      DIAPAUSE_TRY_ASSIGN(code, redundancy::ReedSolomon::create(rebuild_.k, rebuild_.m));
    }
    for (std::size_t i = 0; i < pieces_.size(); i += together_) {
      const std::size_t turn = i / together_;
      const Pieces pieces = some(i);
      Room& room = rooms_[turn % 2];
      if (is_target_ || i == 0) read(pieces, room);
      if (!is_target_) read_ahead(some(i + together_), rooms_[(turn + 1) % 2]);
      DIAPAUSE_TRY(exchange(pieces, room));
      beside_.reset();
      if (!is_target_) continue;
      const Piece& piece = pieces.front();
      if (code && (i == 0 || pieces_[i - 1].row != piece.row)) {
        DIAPAUSE_TRY_ASSIGN(decoder_, row_decoder(*code, *piece.row));
      }
      use_behind(piece, room, take);
    }
    beside_.reset();
    return {};
  }

 private:
  // Some bytes of a row, which are those of the image from `at` on.
  struct Piece {
    const Rebuild::Row* row = nullptr;
    std::uint64_t at = 0;
    std::uint64_t length = 0;
  };
  using Pieces = std::span<const Piece>;
  // A chunk of a piece that this process reads or gets.
  struct Place {
    MutableBytes room;
    ByteView bytes;  // in the room, or where they lie already
  };
  using Room = std::vector<Place>;  // the chunks of `together_` pieces

  // Those that go together, from the i-th on.
  Pieces some(std::size_t i) const {
    const Pieces left = Pieces(pieces_).subspan(std::min(i, pieces_.size()));
    return left.first(std::min(left.size(), together_));
  }

  std::vector<Piece> cut(const ImageRange& range) const {
    const std::uint64_t most =
        std::clamp(kMemoryBytes / 2 / rebuild_.k, kLeastPieceBytes, kMostPieceBytes);
    std::vector<Piece> pieces;
    for (const Rebuild::Row& row : rebuild_.rows) {
      const std::uint64_t end = std::min(range.end, row.target_offset + rebuild_.row_bytes);
      for (std::uint64_t at = std::max(range.begin, row.target_offset); at < end; at += most)
        pieces.push_back({&row, at, std::min(most, end - at)});
    }
    return pieces;
  }

  bool is_mine(const Rebuild::Chunk& chunk) const {
    return chunk.served ? context_.topology.acts_for(chunk.served->server) : is_target_;
  }

  // Servers send many pieces at a time, so that the next ones are on their way when the target
  // asks. One buffer has all of them, because memory in large pieces is given in large pages.
  Status make_room() {
    std::uint64_t each = 1;
    std::size_t most_chunks = 1;
    for (const Piece& piece : pieces_) {
      const auto own = std::ranges::count_if(
          piece.row->chunks, [this](const Rebuild::Chunk& chunk) { return is_mine(chunk); });
      most_chunks = std::max(most_chunks,
                             is_target_ ? piece.row->chunks.size() : static_cast<std::size_t>(own));
      each = std::max(each, piece.length);
    }
    if (!is_target_) {
      const std::uint64_t at_a_time = sends_in_place() ? kServedInPlaceBytes : kMemoryBytes / 2;
      together_ = std::clamp<std::size_t>(at_a_time / (most_chunks * each), 1,
                                          std::max<std::size_t>(pieces_.size(), 1));
    }
    const std::size_t chunks = together_ * most_chunks;
    DIAPAUSE_TRY_ASSIGN(memory_, sys::AlignedBuffer::allocate(rooms_.size() * chunks * each));
    MutableBytes left = memory_.bytes();
    for (Room& room : rooms_) {
      for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        room.push_back({left.first(each), {}});
        left = left.subspan(each);
      }
    }
    return {};
  }

  bool sends_in_place() const {
    return std::ranges::all_of(rebuild_.files(), [this](const ServedFile& served) {
      return !context_.topology.acts_for(served.server) || files_.is_in_place(served.file);
    });
  }

  static Result<redundancy::ReedSolomon::Decoder> row_decoder(const redundancy::ReedSolomon& code,
                                                              const Rebuild::Row& row) {
    std::vector<std::uint32_t> available;
    for (const Rebuild::Chunk& chunk : row.chunks) available.push_back(chunk.position);
    const std::uint32_t wanted[] = {row.target_position};
    return code.decoder(available, wanted);
  }

  // Calls `use` for each chunk of the pieces that this process has to do with, with its place.
  template <class Use>
  void for_each_chunk(Pieces pieces, Room& room, Use use) const {
    std::size_t next = 0;
    for (const Piece& piece : pieces) {
      for (const Rebuild::Chunk& chunk : piece.row->chunks) {
        if (is_target_ || is_mine(chunk)) use(piece, chunk, room[next++]);
      }
    }
  }

  void read(Pieces pieces, Room& room) {
    for_each_chunk(pieces, room, [&](const Piece& piece, const Rebuild::Chunk& chunk, Place& to) {
      const std::uint64_t offset = piece.at - piece.row->target_offset;
      const MutableBytes bytes = to.room.first(piece.length);
      to.bytes = is_mine(chunk) ? look_at(files_, chunk, offset, bytes) : bytes;
    });
  }

  // Nothing else uses the files meanwhile.
  void read_ahead(Pieces pieces, Room& room) {
    if (!pieces.empty()) work_beside([this, pieces, &room] { read(pieces, room); });
  }

  // Servers send the pieces, and the target receives what it has not read itself.
  Status exchange(Pieces pieces, Room& room) {
    std::vector<comm::Send> sends;
    std::vector<comm::Receive> receives;
    for_each_chunk(pieces, room, [&](const Piece& piece, const Rebuild::Chunk& chunk, Place& at) {
      if (is_mine(chunk) && !is_target_)
        sends.push_back({context_.actor(rebuild_.target), at.bytes});
      if (!is_mine(chunk)) {
        receives.push_back({context_.actor(chunk.served->server), at.room.first(piece.length)});
      }
    });
    return context_.comm->exchange(sends, receives);
  }

  // Gives away what the piece has, while the next one comes.
  void use_behind(const Piece& piece, const Room& room, const TakeBytes& take) {
    const auto use = [this, &piece, &room, &take] {
      for (std::uint64_t done = 0; done < piece.length; done += kStepBytes) {
        const std::uint64_t length = std::min(kStepBytes, piece.length - done);
        take(piece.at + done, decode(room, done, length));
      }
    };
    if (piece.length <= kStepBytes) return use();
    work_beside(use);
  }

  void work_beside(const std::function<void()>& work) {
    auto started = sys::Thread::start(work);
    if (started) beside_.emplace(std::move(*started));
    if (!started) work();
  }

  // Returns bytes of the image, from those of the chunks from `offset` on.
  ByteView decode(const Room& room, std::uint64_t offset, std::uint64_t length) {
    if (!decoder_) return room[0].bytes.subspan(offset, length);
    std::vector<const std::byte*> available;
    for (const Place& chunk : room) available.push_back(chunk.bytes.data() + offset);
    std::byte* const wanted[] = {decoded_.data()};
    decoder_->decode(available, wanted, length);
    return ByteView(decoded_).first(length);
  }

  const Context& context_;
  const Rebuild& rebuild_;
  FileCache& files_;
  const bool is_target_;
  std::size_t together_ = 1;  // the pieces of one exchange
  std::vector<Piece> pieces_;
  sys::AlignedBuffer memory_;
  std::array<Room, 2> rooms_;  // used in turn; places in memory_
  ByteVector decoded_;
  std::optional<redundancy::ReedSolomon::Decoder> decoder_;  // of the present row
  std::optional<sys::Thread> beside_;  // it uses a piece and a room, and ends before they do
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
