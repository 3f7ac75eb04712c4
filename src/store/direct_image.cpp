#include "store/direct_image.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "format/checksum.hpp"
#include "sys/kernel.hpp"
#include "sys/shares.hpp"

namespace diapause::store {
namespace {

constexpr std::uint64_t kPieceBytes = 2 * kMiB;
constexpr std::size_t kDepth = 8;  // reads in flight, of each thread

struct Block {
  std::size_t region;
  std::uint64_t number;
  std::uint64_t offset;  // place in the image
  std::uint64_t length;
};

// Blocks that lie close together and are read at once.
struct Piece {
  std::uint64_t offset;        // in the image, at the start of a page
  std::uint64_t length;        // whole pages
  std::byte* place = nullptr;  // where it is read to; null: a buffer of the reader
  std::vector<Block> blocks;
};

// Returns where the block is read to without a copy, or null if the disk cannot write there: only
// whole pages can be read, and only to the start of a page.
std::byte* place_of(const Block& block, std::byte* region) {
  if (region == nullptr || block.offset % kPageBytes != 0 || block.length % kPageBytes != 0)
    return nullptr;
  std::byte* const place = region + block.number * format::kBlockBytes;
  return reinterpret_cast<std::uintptr_t>(place) % kPageBytes == 0 ? place : nullptr;
}

// Returns whether the block, which is read to `place`, can be read together with the piece before.
bool continues(const Piece& piece, const Block& block, const std::byte* place) {
  if (piece.place == nullptr || place == nullptr) return piece.place == place;
  return piece.blocks.back().region == block.region;
}

// The pieces that hold the blocks of the wanted regions. Region r is read to targets[r], where that
// is given and not null.
std::vector<Piece> cut(const format::ImageIndex& index, const std::vector<bool>& is_wanted,
                       std::span<std::byte* const> targets) {
  std::vector<Piece> pieces;
  for (std::size_t r = 0; r < index.regions.size(); ++r) {
    const format::Region& region = index.regions[r];
    if (!is_wanted[r]) continue;
    for (std::uint64_t number = 0; number < region.block_count(); ++number) {
      const std::uint64_t within = number * format::kBlockBytes;
      const std::uint64_t length =
          std::min<std::uint64_t>(format::kBlockBytes, region.stored_bytes - within);
      const Block block{r, number, region.offset + within, length};
      std::byte* const place = place_of(block, targets.empty() ? nullptr : targets[r]);
      // The page after a block's end belongs to the image, because at least the index lies behind
      // it.
      const std::uint64_t end = round_up(block.offset + length, kPageBytes);
      if (pieces.empty() || end - pieces.back().offset > kPieceBytes ||
          !continues(pieces.back(), block, place)) {
        pieces.push_back({block.offset / kPageBytes * kPageBytes, 0, place, {}});
      }
      pieces.back().length = end - pieces.back().offset;
      pieces.back().blocks.push_back(block);
    }
  }
  return pieces;
}

// Reads pieces in their order, several ahead. One thread uses it.
class PieceReader {
 public:
  PieceReader(const sys::File& file, std::uint64_t begin, const std::string& name)
      : file_(file), begin_(begin), name_(name) {}
  PieceReader(const PieceReader&) = delete;
  PieceReader& operator=(const PieceReader&) = delete;
  ~PieceReader() { drain(); }

  // Calls `take(piece, bytes)` for each of them.
  template <class Take>
  Status visit(std::span<const Piece> pieces, const Take& take) {
    queue_ = file_.kernel().read_queue(kDepth);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      while (submitted_ < pieces.size() && submitted_ - finished_ < kDepth)
        DIAPAUSE_TRY(submit(pieces[submitted_]));
      DIAPAUSE_TRY_ASSIGN(const ByteView bytes, finish(pieces[i]));
      DIAPAUSE_TRY(take(pieces[i], bytes));
    }
    return {};
  }

 private:
  // Returns the memory that the piece is read to. A buffer is that of its turn, and is made when it
  // is first needed.
  Result<MutableBytes> memory_of(const Piece& piece, std::size_t turn) {
    if (piece.place != nullptr) return MutableBytes(piece.place, piece.length);
    return buffer_of(piece, turn);
  }
  Result<MutableBytes> buffer_of(const Piece& piece, std::size_t turn) {
    sys::AlignedBuffer& buffer = buffers_[turn % kDepth];
    if (buffer.bytes().empty()) {
      DIAPAUSE_TRY_ASSIGN(buffer, sys::AlignedBuffer::allocate(kPieceBytes));
    }
    return buffer.bytes().first(piece.length);
  }

  Status submit(const Piece& piece) {
    DIAPAUSE_TRY_ASSIGN(const MutableBytes to, memory_of(piece, submitted_));
    const std::int64_t ticket = queue_->submit(file_.fd(), to, begin_ + piece.offset);
    if (ticket < 0) return fail(os_error("reading " + file_.path(), static_cast<int>(-ticket)));
    tickets_[submitted_++ % kDepth] = ticket;
    return {};
  }

  Result<ByteView> finish(const Piece& piece) {
    const std::size_t turn = finished_++;
    DIAPAUSE_TRY_ASSIGN(const MutableBytes to, memory_of(piece, turn));
    const int error = queue_->wait(tickets_[turn % kDepth]);
    if (error == 0) return ByteView(to);
    // A file system may grant O_DIRECT at open and refuse it here. The file then reads through the
    // page cache.
    if (error == -EINVAL) {
      DIAPAUSE_TRY(file_.read_exact(to, begin_ + piece.offset));
      return ByteView(to);
    }
    // The kernel does not write to memory that only the program itself may touch first.
    if (error == -EFAULT && piece.place != nullptr) {
      DIAPAUSE_TRY_ASSIGN(const MutableBytes buffer, buffer_of(piece, turn));
      DIAPAUSE_TRY(file_.read_exact(buffer, begin_ + piece.offset));
      std::ranges::copy(buffer, to.begin());
      return ByteView(to);
    }
    if (error == -ENODATA) return fail(Code::corrupt, name_ + " ends before its last block");
    return fail(os_error("reading " + file_.path(), -error));
  }

  // Waits for reads that nobody wants any more: they write to the buffers.
  void drain() {
    while (finished_ < submitted_) (void)queue_->wait(tickets_[finished_++ % kDepth]);
  }

  const sys::File& file_;
  const std::uint64_t begin_;
  const std::string& name_;
  std::array<sys::AlignedBuffer, kDepth> buffers_;
  std::array<std::int64_t, kDepth> tickets_{};
  std::size_t submitted_ = 0;
  std::size_t finished_ = 0;
  std::unique_ptr<sys::ReadQueue> queue_;  // destroyed before the buffers that it reads into
};

// Reads and checks the blocks of an image.
class BlockVisitor {
 public:
  BlockVisitor(const sys::File& file, std::uint64_t begin, const std::string& name,
               const format::ImageIndex& index)
      : file_(file), begin_(begin), name_(name), index_(index) {}

  Status visit(const std::vector<Piece>& pieces, unsigned threads, const TakeBlock& take) const {
    const auto take_piece = [&](const Piece& piece, ByteView bytes) {
      return this->take_piece(piece, bytes, take);
    };
    return sys::in_shares(pieces.size(), threads, kDepth, [&](std::size_t begin, std::size_t end) {
      return PieceReader(file_, begin_, name_)
          .visit(std::span(pieces).subspan(begin, end - begin), take_piece);
    });
  }

 private:
  Status take_piece(const Piece& piece, ByteView bytes, const TakeBlock& take) const {
    for (const Block& block : piece.blocks) {
      const format::Region& region = index_.regions[block.region];
      const ByteView data = bytes.subspan(block.offset - piece.offset, block.length);
      if (format::checksum64(data) != region.block_checksums[block.number]) {
        return fail(Code::corrupt, fmt::format("{}: block {} of region '{}' is damaged", name_,
                                               block.number, region.name));
      }
      DIAPAUSE_TRY(take(block.region, block.number * format::kBlockBytes, data));
    }
    return {};
  }

  const sys::File& file_;
  const std::uint64_t begin_;
  const std::string& name_;
  const format::ImageIndex& index_;
};

}  // namespace

Status DirectImage::verify(const format::ImageIndex& index, unsigned threads) const {
  const auto nowhere = [](std::size_t, std::uint64_t, ByteView) -> Status { return {}; };
  return visit(index, std::vector<bool>(index.regions.size(), true), threads, nowhere);
}

Status DirectImage::deliver(const format::ImageIndex& index, std::span<std::byte* const> targets,
                            unsigned threads) const {
  std::vector<bool> is_wanted;
  for (const std::byte* target : targets) is_wanted.push_back(target != nullptr);
  const auto copy = [&](std::size_t region, std::uint64_t offset, ByteView bytes) -> Status {
    std::byte* const place = targets[region] + offset;
    if (place != bytes.data()) std::memcpy(place, bytes.data(), bytes.size());
    return {};
  };
  return BlockVisitor(file_, begin_, name_, index)
      .visit(cut(index, is_wanted, targets), threads, copy);
}

Status DirectImage::visit(const format::ImageIndex& index, const std::vector<bool>& is_wanted,
                          unsigned threads, const TakeBlock& take) const {
  return BlockVisitor(file_, begin_, name_, index).visit(cut(index, is_wanted, {}), threads, take);
}

}  // namespace diapause::store
