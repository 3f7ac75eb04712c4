// An image on its way from a disk into the program's memory. Every byte is checked before the first one is handed over,
// so there are two passes. The first reads and checks everything, and keeps what it can at no cost: while the disk is
// the slower one, pieces are copied into memory; where it is not (fresh memory may be slower than a disk), or where
// memory is short, the second pass reads them again. It checks everything again, wherever it comes from.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "format/image.hpp"
#include "sys/file.hpp"
#include "sys/private_memory.hpp"

namespace diapause::store {

class StagedImage {
 public:
  // `file` holds the image from byte `begin` (of a page) on, opened for direct access where that is possible; `name` is
  // for messages. All calls must give the index of that image.
  StagedImage(sys::File file, std::uint64_t begin, std::string name)
      : file_(std::move(file)), begin_(begin), name_(std::move(name)) {}

  // Reads and checks every block, and keeps up to `keep_bytes` of them.
  Status verify(const format::ImageIndex& index, std::uint64_t keep_bytes);

  // Copies every region r with targets[r] not null there. After a successful verify().
  Status deliver(const format::ImageIndex& index, std::span<std::byte* const> targets);

  // A region as memory that is backed by the file: nothing is read or checked.
  Result<sys::PrivateMemory> map(const format::Region& region) const {
    return sys::PrivateMemory::of_file(file_, begin_ + region.offset, region.stored_bytes);
  }

  std::uint64_t kept_bytes() const { return kept_bytes_; }

 private:
  static constexpr std::uint64_t kPieceBytes = 2 * kMiB;
  static constexpr std::size_t kDepth = 8;

  struct Block {
    std::size_t region;
    std::uint64_t number;
    std::uint64_t offset;  // in the image
    std::uint64_t length;
  };
  // Whole blocks that lie close together: one read.
  struct Piece {
    std::uint64_t offset;
    std::uint64_t length;  // of whole pages
    std::size_t first_block;
    std::size_t end_block;
    std::uint64_t kept_at;
    bool kept = false;
  };

  Status prepare(const format::ImageIndex& index);
  void cut(const format::ImageIndex& index);
  Status check(const format::ImageIndex& index, const Block& block, ByteView data) const;
  Status read_ahead(std::size_t next, std::span<const std::size_t> wanted);
  Status finish_read(std::int64_t ticket);
  void drain();
  // Calls `take(piece, bytes)` for the pieces named, in that order.
  template <class Take>
  Status visit(std::span<const std::size_t> wanted, Take take);
  ByteView block_in(const Piece& piece, ByteView bytes, const Block& block) const {
    return bytes.subspan(block.offset - piece.offset, block.length);
  }
  // Whether the piece behind the present one has still to come.
  bool waits_for_disk() {
    const std::size_t next = finished_ + 1;
    return next < submitted_ && !queue_->is_done(tickets_[next % kDepth]);
  }
  void keep(Piece& piece, ByteView bytes);

  sys::File file_;
  std::uint64_t begin_;
  std::string name_;
  std::vector<Block> blocks_;
  std::vector<Piece> pieces_;
  sys::AlignedBuffer memory_;  // of what is kept; its pages come into being when they are written
  std::uint64_t kept_bytes_ = 0;
  std::array<sys::AlignedBuffer, kDepth> buffers_;
  std::array<std::int64_t, kDepth> tickets_{};
  std::size_t submitted_ = 0;  // reads begun and ended; the buffer of the i-th is i % kDepth
  std::size_t finished_ = 0;
  std::size_t looked_at_ = 0;              // how many of the wanted pieces read_ahead() is through with
  std::unique_ptr<sys::ReadQueue> queue_;  // destroyed first: its reads use the buffers
};

}  // namespace diapause::store
