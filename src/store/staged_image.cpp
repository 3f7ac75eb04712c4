#include "store/staged_image.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "format/checksum.hpp"
#include "sys/crew.hpp"
#include "sys/memory.hpp"

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

// Where a piece is, or is to come.
MutableBytes StagedImage::place(const Piece& piece, std::size_t read) const {
  return piece.kept ? place_to_keep(piece) : buffers_[read % kDepth].bytes().first(piece.length);
}

Result<sys::Thread> StagedImage::warm_up(std::atomic<bool>& ends) {
  is_warm_ = std::vector<std::atomic<bool>>(pieces_.size());
  return sys::Thread::start([this, &ends] {
    constexpr std::size_t kLead = 3;
    std::uint64_t touched = 0;
    // Whoever is overtaken by the reads goes on before them.
    for (std::size_t i = 0; i < pieces_.size() && !ends; i = std::max(i + 1, looked_at_ + kLead)) {
      touched += pieces_[i].length;
      if (touched > spare_.memory_bytes) return;
      sys::bring_in(place_to_keep(pieces_[i]));
      is_warm_[i] = true;
    }
  });
}

bool StagedImage::may_keep(std::size_t piece) const {
  if (!keeps_ || kept_bytes_ + pieces_[piece].length > spare_.memory_bytes) return false;
  return is_warm_.empty() ? touching_s_ <= waiting_s_ : is_warm_[piece].load();
}

Result<StagedImage::Read> StagedImage::begin_read(std::size_t number) {
  Piece& piece = pieces_[number];
  const double start_s = clock_();
  if (may_keep(number)) {
    piece.kept = true;
    kept_bytes_ += piece.length;
  }
  const std::int64_t ticket = queue_->submit(file_.fd(), place(piece, submitted_), begin_ + piece.offset);
  if (piece.kept) touching_s_ += clock_() - start_s;
  if (ticket >= 0) return Read{&piece, ticket};
  forget(piece);
  return fail(os_error("reading " + file_.path(), static_cast<int>(-ticket)));
}

// Begins reads of the pieces from `next` on that are not in memory, as long as there are buffers for them.
Status StagedImage::read_ahead(std::size_t next, std::span<const std::size_t> wanted) {
  looked_at_ = std::max(looked_at_.load(), next);
  for (; looked_at_ < wanted.size() && submitted_ - finished_ < kDepth; ++looked_at_) {
    if (pieces_[wanted[looked_at_]].kept) continue;
    DIAPAUSE_TRY_ASSIGN(reads_[submitted_ % kDepth], begin_read(wanted[looked_at_]));
    ++submitted_;
  }
  return {};
}

Status StagedImage::finish_read(const Read& read, MutableBytes to) {
  const double start_s = clock_();
  const int error = queue_->wait(read.ticket);
  waiting_s_ += clock_() - start_s;
  if (error == 0) return {};
  // Where O_DIRECT was granted and is refused now, the file knows another way.
  if (error == -EINVAL) return file_.read_exact(to, begin_ + read.piece->offset);
  if (error == -ENODATA) return fail(Code::corrupt, name_ + " ends before its last block");
  return fail(os_error("reading " + file_.path(), -error));
}

void StagedImage::forget(Piece& piece) {
  if (std::exchange(piece.kept, false)) kept_bytes_ -= piece.length;
}

// Waits for what was begun and is not wanted any more.
void StagedImage::drain() {
  for (; finished_ < submitted_; ++finished_) {
    const Read& read = reads_[finished_ % kDepth];
    (void)queue_->wait(read.ticket);
    forget(*read.piece);
  }
}

template <class Take>
Status StagedImage::visit(std::span<const std::size_t> wanted, Take take) {
  const auto one = [&](std::size_t i) -> Status {
    DIAPAUSE_TRY(read_ahead(i, wanted));
    Piece& piece = pieces_[wanted[i]];
    const Read& read = reads_[finished_ % kDepth];
    if (finished_ == submitted_ || read.piece != &piece) return take(piece, ByteView(place(piece, 0)));  // kept before
    const MutableBytes to = place(piece, finished_);
    DIAPAUSE_TRY(finish_read(read, to));
    Status taken = take(piece, ByteView(to));
    ++finished_;  // its buffer is free again
    if (!taken) forget(piece);
    return taken;
  };
  Status result;
  for (std::size_t i = 0; i < wanted.size() && result; ++i) result = one(i);
  drain();
  return result;
}

Status StagedImage::verify(const format::ImageIndex& index, Spare spare) {
  DIAPAUSE_TRY(prepare(index));
  spare_ = spare;
  if (spare.memory_bytes > 0 && !pieces_.empty() && memory_.bytes().empty()) {
    const Piece& last = pieces_.back();
    auto memory = sys::AlignedBuffer::allocate(last.kept_at + last.length);
    if (memory) memory_ = std::move(*memory);
  }
  keeps_ = !memory_.bytes().empty();  // without memory everything is read twice
  looked_at_ = 0;
  std::atomic<bool> ends = false;
  std::optional<sys::Thread> helper;
  if (keeps_ && spare.threads > 1 && pieces_.size() > kDepth) {
    if (auto started = warm_up(ends)) helper.emplace(std::move(*started));
  }
  if (!helper) is_warm_.clear();
  std::vector<std::size_t> all(pieces_.size());
  std::iota(all.begin(), all.end(), 0);
  Status sound = visit(all, [&](const Piece& piece, ByteView bytes) -> Status {
    for (std::size_t b = piece.first_block; b < piece.end_block; ++b) {
      DIAPAUSE_TRY(check(index, blocks_[b], block_in(piece, bytes, blocks_[b])));
    }
    return {};
  });
  ends = true;
  keeps_ = false;
  return sound;
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
  const auto hand_over = [&](const Piece& piece, ByteView bytes) -> Status {
    for (std::size_t b = piece.first_block; b < piece.end_block; ++b) {
      const Block& block = blocks_[b];
      if (targets[block.region] == nullptr) continue;
      const ByteView data = block_in(piece, bytes, block);
      DIAPAUSE_TRY(check(index, block, data));
      std::memcpy(targets[block.region] + block.number * format::kBlockBytes, data.data(), data.size());
    }
    return {};
  };
  const auto kept =
      std::stable_partition(wanted.begin(), wanted.end(), [&](std::size_t p) { return !pieces_[p].kept; });
  const std::span<const std::size_t> to_read(wanted.begin(), kept);
  looked_at_ = 0;
  DIAPAUSE_TRY(read_ahead(0, to_read));  // the disk works meanwhile
  std::vector<Status> results(static_cast<std::size_t>(wanted.end() - kept));
  sys::Crew(spare_.threads).run(results.size(), [&](std::uint64_t i) {
    const Piece& piece = pieces_[kept[static_cast<std::ptrdiff_t>(i)]];
    results[i] = hand_over(piece, ByteView(place_to_keep(piece)));
  });
  Status result;
  for (Status& one : results) {
    if (result) result = std::move(one);
  }
  if (!result) drain();
  return result ? visit(to_read, hand_over) : result;
}

}  // namespace diapause::store
