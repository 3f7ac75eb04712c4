// An image on its way from a disk into the program's memory. Every byte is checked before the first one is handed over,
// so there are two passes. The first reads and checks everything, and keeps what it can at no cost: fresh memory may be
// slower than a disk. With a core to spare, a thread touches it ahead of the reads into it; without, it is touched for
// as long as that takes no more time than is else spent waiting for the disk. The rest comes through a few buffers, and
// the second pass reads it again. That one checks everything again, wherever it comes from.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "format/image.hpp"
#include "sys/file.hpp"
#include "sys/private_memory.hpp"
#include "sys/process.hpp"
#include "sys/thread.hpp"

namespace diapause::store {

// What a restart may use while the program waits for it.
struct Spare {
  std::uint64_t memory_bytes = 0;  // to keep what was checked
  unsigned threads = 1;            // that do it, the caller's among them
};

class StagedImage {
 public:
  // `file` holds the image from byte `begin` (of a page) on, opened for direct access where that is possible; `name` is
  // for messages; `clock` gives seconds. All calls must give the index of that image.
  StagedImage(sys::File file, std::uint64_t begin, std::string name, std::function<double()> clock = sys::monotonic_s)
      : file_(std::move(file)), begin_(begin), name_(std::move(name)), clock_(std::move(clock)) {}

  // Reads and checks every block, and keeps some.
  Status verify(const format::ImageIndex& index, Spare spare);

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
    bool kept = false;  // its place is in memory_: it is there, or on its way
  };
  struct Read {
    Piece* piece;
    std::int64_t ticket;
  };

  Status prepare(const format::ImageIndex& index);
  void cut(const format::ImageIndex& index);
  Status check(const format::ImageIndex& index, const Block& block, ByteView data) const;
  // A thread that touches the places of pieces before they are read; until `ends`.
  Result<sys::Thread> warm_up(std::atomic<bool>& ends);
  bool may_keep(std::size_t piece) const;
  Result<Read> begin_read(std::size_t piece);
  Status read_ahead(std::size_t next, std::span<const std::size_t> wanted);
  MutableBytes place_to_keep(const Piece& piece) const { return memory_.bytes().subspan(piece.kept_at, piece.length); }
  MutableBytes place(const Piece& piece, std::size_t read) const;
  void forget(Piece& piece);
  Status finish_read(const Read& read, MutableBytes to);
  void drain();
  // Calls `take(piece, bytes)` for the pieces named, in that order.
  template <class Take>
  Status visit(std::span<const std::size_t> wanted, Take take);
  ByteView block_in(const Piece& piece, ByteView bytes, const Block& block) const {
    return bytes.subspan(block.offset - piece.offset, block.length);
  }
  sys::File file_;
  std::uint64_t begin_;
  std::string name_;
  std::function<double()> clock_;
  std::vector<Block> blocks_;
  std::vector<Piece> pieces_;
  sys::AlignedBuffer memory_;  // of what is kept; its pages come into being when they are written
  std::uint64_t kept_bytes_ = 0;
  Spare spare_;
  bool keeps_ = false;                      // in the present pass
  std::vector<std::atomic<bool>> is_warm_;  // the place of each piece; empty: nobody touches them first
  double touching_s_ = 0;                   // spent on beginning reads into fresh memory
  double waiting_s_ = 0;                    // spent on waiting for the disk
  std::array<sys::AlignedBuffer, kDepth> buffers_;
  std::array<Read, kDepth> reads_{};
  std::size_t submitted_ = 0;  // reads begun and ended; the buffer of the i-th is i % kDepth
  std::size_t finished_ = 0;
  std::atomic<std::size_t> looked_at_ = 0;  // how many of the wanted pieces read_ahead() is through with
  std::unique_ptr<sys::ReadQueue> queue_;   // destroyed first: its reads use the buffers
};

}  // namespace diapause::store
