#include "store/staged_image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "format/checksum.hpp"

namespace diapause::store {

void StagedImage::cut(const format::ImageIndex& index) {
  std::uint64_t kept_at = 0;
  for (std::size_t r = 0; r < index.regions.size(); ++r) {
    const format::Region& region = index.regions[r];
    for (std::uint64_t number = 0; number < region.block_count(); ++number) {
      const std::uint64_t within = number * format::kBlockBytes;
      const std::uint64_t length = std::min<std::uint64_t>(format::kBlockBytes, region.stored_bytes - within);
      blocks_.push_back({r, number, region.offset + within, length});
      // The page after the last block's end belongs to the image: at least its index lies behind.
      const std::uint64_t end = round_up(blocks_.back().offset + length, kPageBytes);
      if (pieces_.empty() || end - pieces_.back().offset > kPieceBytes) {
        kept_at += pieces_.empty() ? 0 : pieces_.back().length;
        pieces_.push_back({blocks_.back().offset, 0, blocks_.size() - 1, 0, kept_at, false});
      }
      pieces_.back().length = end - pieces_.back().offset;
      pieces_.back().end_block = blocks_.size();
    }
  }
}

Status StagedImage::prepare(const format::ImageIndex& index) {
  if (queue_ != nullptr) return {};
  if (blocks_.empty()) cut(index);
  for (sys::AlignedBuffer& buffer : buffers_) {
    DIAPAUSE_TRY_ASSIGN(buffer, sys::AlignedBuffer::allocate(kPieceBytes));
  }
  queue_ = file_.kernel().read_queue(kDepth);
  return {};
}

Status StagedImage::check(const format::ImageIndex& index, const Block& block, ByteView data) const {
  const format::Region& region = index.regions[block.region];
  if (format::checksum64(data) == region.block_checksums[block.number]) return {};
  return fail(Code::corrupt, fmt::format("{}: block {} of region '{}' is damaged", name_, block.number, region.name));
}

// Begins reads of the pieces from `next` on that are not in memory, as long as there are buffers for them.
Status StagedImage::read_ahead(std::size_t next, std::span<const std::size_t> wanted) {
  looked_at_ = std::max(looked_at_, next);
  for (; looked_at_ < wanted.size() && submitted_ - finished_ < kDepth; ++looked_at_) {
    const Piece& piece = pieces_[wanted[looked_at_]];
    if (piece.kept) continue;
    const std::size_t slot = submitted_ % kDepth;
    tickets_[slot] = queue_->submit(file_.fd(), buffers_[slot].bytes().first(piece.length), begin_ + piece.offset);
    if (tickets_[slot] < 0) return fail(os_error("reading " + file_.path(), static_cast<int>(-tickets_[slot])));
    ++submitted_;
  }
  return {};
}

Status StagedImage::finish_read(std::int64_t ticket) {
  const int error = queue_->wait(ticket);
  if (error == 0) return {};
  if (error == -ENODATA) return fail(Code::corrupt, name_ + " ends before its last block");
  return fail(os_error("reading " + file_.path(), -error));
}

// Waits for what was begun and is not wanted any more.
void StagedImage::drain() {
  for (; finished_ < submitted_; ++finished_) (void)queue_->wait(tickets_[finished_ % kDepth]);
}

template <class Take>
Status StagedImage::visit(std::span<const std::size_t> wanted, Take take) {
  looked_at_ = 0;
  const auto one = [&](std::size_t i) -> Status {
    DIAPAUSE_TRY(read_ahead(i, wanted));
    Piece& piece = pieces_[wanted[i]];
    if (piece.kept) return take(piece, ByteView(memory_.bytes().subspan(piece.kept_at, piece.length)));
    const std::size_t slot = finished_ % kDepth;
    DIAPAUSE_TRY(finish_read(tickets_[slot]));
    Status taken = take(piece, ByteView(buffers_[slot].bytes().first(piece.length)));
    ++finished_;  // its buffer is free again
    return taken;
  };
  Status result;
  for (std::size_t i = 0; i < wanted.size() && result; ++i) result = one(i);
  drain();
  return result;
}

void StagedImage::keep(Piece& piece, ByteView bytes) {
  std::memcpy(memory_.bytes().data() + piece.kept_at, bytes.data(), bytes.size());
  piece.kept = true;
  kept_bytes_ += bytes.size();
}

Status StagedImage::verify(const format::ImageIndex& index, std::uint64_t keep_bytes) {
  DIAPAUSE_TRY(prepare(index));
  if (keep_bytes > 0 && !pieces_.empty() && memory_.bytes().empty()) {
    const Piece& last = pieces_.back();
    auto memory = sys::AlignedBuffer::allocate(last.kept_at + last.length);
    if (memory) memory_ = std::move(*memory);  // else everything is read twice
  }
  std::vector<std::size_t> all(pieces_.size());
  std::iota(all.begin(), all.end(), 0);
  return visit(all, [&](Piece& piece, ByteView bytes) -> Status {
    for (std::size_t b = piece.first_block; b < piece.end_block; ++b) {
      DIAPAUSE_TRY(check(index, blocks_[b], block_in(piece, bytes, blocks_[b])));
    }
    const bool room = !memory_.bytes().empty() && kept_bytes_ + bytes.size() <= keep_bytes;
    if (!piece.kept && room && waits_for_disk()) keep(piece, bytes);
    return {};
  });
}

Status StagedImage::deliver(const format::ImageIndex& index, std::span<std::byte* const> targets) {
  DIAPAUSE_TRY(prepare(index));
  std::vector<std::size_t> wanted;
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    const auto begin = blocks_.begin() + static_cast<std::ptrdiff_t>(pieces_[p].first_block);
    const auto end = blocks_.begin() + static_cast<std::ptrdiff_t>(pieces_[p].end_block);
    if (std::any_of(begin, end, [&](const Block& block) { return targets[block.region] != nullptr; })) {
      wanted.push_back(p);
    }
  }
  return visit(wanted, [&](const Piece& piece, ByteView bytes) -> Status {
    for (std::size_t b = piece.first_block; b < piece.end_block; ++b) {
      const Block& block = blocks_[b];
      if (targets[block.region] == nullptr) continue;
      const ByteView data = block_in(piece, bytes, block);
      DIAPAUSE_TRY(check(index, block, data));
      std::memcpy(targets[block.region] + block.number * format::kBlockBytes, data.data(), data.size());
    }
    return {};
  });
}

}  // namespace diapause::store
