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
  std::uint64_t offset;  // in the image, at the start of a page
  std::uint64_t length;  // whole pages
  std::vector<Block> blocks;
};

// The pieces that hold the blocks of the wanted regions.
std::vector<Piece> cut(const format::ImageIndex& index, const std::vector<bool>& is_wanted) {
  std::vector<Piece> pieces;
  for (std::size_t r = 0; r < index.regions.size(); ++r) {
    const format::Region& region = index.regions[r];
    if (!is_wanted[r]) continue;
    for (std::uint64_t number = 0; number < region.block_count(); ++number) {
      const std::uint64_t within = number * format::kBlockBytes;
      const std::uint64_t length =
          std::min<std::uint64_t>(format::kBlockBytes, region.stored_bytes - within);
      const Block block{r, number, region.offset + within, length};
      // The page after a block's end belongs to the image, because at least the index lies behind
      // it.
      const std::uint64_t end = round_up(block.offset + length, kPageBytes);
      if (pieces.empty() || end - pieces.back().offset > kPieceBytes) {
        pieces.push_back({block.offset / kPageBytes * kPageBytes, 0, {}});
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
    DIAPAUSE_TRY(prepare());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      while (submitted_ < pieces.size() && submitted_ - finished_ < kDepth)
        DIAPAUSE_TRY(submit(pieces[submitted_]));
      DIAPAUSE_TRY_ASSIGN(const ByteView bytes, finish(pieces[i]));
      DIAPAUSE_TRY(take(pieces[i], bytes));
    }
    return {};
  }

 private:
  Status prepare() {
    for (sys::AlignedBuffer& buffer : buffers_) {
      DIAPAUSE_TRY_ASSIGN(buffer, sys::AlignedBuffer::allocate(kPieceBytes));
    }
    queue_ = file_.kernel().read_queue(kDepth);
    return {};
  }

  Status submit(const Piece& piece) {
    const MutableBytes to = buffers_[submitted_ % kDepth].bytes().first(piece.length);
    const std::int64_t ticket = queue_->submit(file_.fd(), to, begin_ + piece.offset);
    if (ticket < 0) return fail(os_error("reading " + file_.path(), static_cast<int>(-ticket)));
    tickets_[submitted_++ % kDepth] = ticket;
    return {};
  }

  Result<ByteView> finish(const Piece& piece) {
    const std::size_t place = finished_++ % kDepth;
    const MutableBytes to = buffers_[place].bytes().first(piece.length);
    const int error = queue_->wait(tickets_[place]);
    if (error == 0) return ByteView(to);
    // A file system may grant O_DIRECT at open and refuse it here. The file then reads through the
    // page cache.
    if (error == -EINVAL) {
      DIAPAUSE_TRY(file_.read_exact(to, begin_ + piece.offset));
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
    std::memcpy(targets[region] + offset, bytes.data(), bytes.size());
    return {};
  };
  return visit(index, is_wanted, threads, copy);
}

Status DirectImage::visit(const format::ImageIndex& index, const std::vector<bool>& is_wanted,
                          unsigned threads, const TakeBlock& take) const {
  const auto take_piece = [&](const Piece& piece, ByteView bytes) -> Status {
    for (const Block& block : piece.blocks) {
      const format::Region& region = index.regions[block.region];
      const ByteView data = bytes.subspan(block.offset - piece.offset, block.length);
      if (format::checksum64(data) != region.block_checksums[block.number]) {
        return fail(Code::corrupt, fmt::format("{}: block {} of region '{}' is damaged", name_,
                                               block.number, region.name));
      }
      DIAPAUSE_TRY(take(block.region, block.number * format::kBlockBytes, data));
    }
    return {};
  };
  const std::vector<Piece> pieces = cut(index, is_wanted);
  return sys::in_shares(pieces.size(), threads, kDepth, [&](std::size_t begin, std::size_t end) {
    return PieceReader(file_, begin_, name_)
        .visit(std::span(pieces).subspan(begin, end - begin), take_piece);
  });
}

}  // namespace diapause::store
