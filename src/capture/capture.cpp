#include "capture/capture.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "capture/stream_writer.hpp"
#include "format/checksum.hpp"
#include "sys/shares.hpp"

namespace diapause::capture {
namespace {

// Calls `piece(region, offset in the region, length, block)` for every block, in file order.
template <class Piece>
Status for_each_block(const format::ImageIndex& index, Piece piece) {
  for (std::size_t r = 0; r < index.regions.size(); ++r) {
    const format::Region& region = index.regions[r];
    for (std::uint64_t block = 0; block < region.block_count(); ++block) {
      const std::uint64_t offset = block * format::kBlockBytes;
      const std::uint64_t length =
          std::min<std::uint64_t>(format::kBlockBytes, region.stored_bytes - offset);
      DIAPAUSE_TRY(piece(r, offset, length, block));
    }
  }
  return {};
}

Captured finish(format::ImageIndex index, std::uint64_t index_offset,
                const format::ImageHeader& identity) {
  Captured captured;
  captured.index_bytes = format::encode_index(index);
  captured.header = identity;
  captured.header.format_version = format::format_version_of(index);
  captured.header.index_offset = index_offset;
  captured.header.index_bytes = captured.index_bytes.size();
  captured.header.file_bytes = index_offset + captured.index_bytes.size();
  captured.header.index_digest = format::digest128(captured.index_bytes);
  captured.header_page = format::encode_header(captured.header);
  captured.index = std::move(index);
  return captured;
}

std::uint64_t region_end(const format::Region& region) {
  return region.offset + region.stored_bytes;
}

}  // namespace

std::uint64_t image_bytes(const format::ImageIndex& index, std::uint64_t index_offset) {
  return index_offset + format::encoded_index_bytes(index);
}

Result<Captured> capture_to_mapping(BlockSource& source, format::ImageIndex index,
                                    std::uint64_t index_offset, const format::ImageHeader& identity,
                                    MutableBytes to) {
  constexpr std::size_t kLeastShare = 8;  // blocks, for which a thread is worth its start
  struct Block {
    std::size_t region;
    std::uint64_t offset, length, number;
  };
  std::vector<Block> blocks;
  DIAPAUSE_TRY(for_each_block(index,
                              [&](std::size_t r, std::uint64_t offset, std::uint64_t length,
                                  std::uint64_t number) -> Status {
                                blocks.push_back({r, offset, length, number});
                                return {};
                              }));
  const auto copy_share = [&](std::size_t begin, std::size_t end) -> Status {
    for (const Block& one : std::span(blocks).subspan(begin, end - begin)) {
      format::Region& region = index.regions[one.region];
      DIAPAUSE_TRY_ASSIGN(
          region.block_checksums[one.number],
          source.copy(one.region, one.offset, to.subspan(region.offset + one.offset, one.length)));
    }
    return {};
  };
  DIAPAUSE_TRY(sys::in_shares(blocks.size(), source.threads(), kLeastShare, copy_share));
  return complete_mapping(std::move(index), index_offset, identity, to);
}

Captured complete_mapping(format::ImageIndex index, std::uint64_t index_offset,
                          const format::ImageHeader& identity, MutableBytes to) {
  // A reused slot holds an older image; its bytes between the regions must be cleared.
  std::uint64_t end = format::kHeaderBytes;
  for (const format::Region& region : index.regions) {
    std::memset(to.data() + end, 0, region.offset - end);
    end = region_end(region);
  }
  std::memset(to.data() + end, 0, index_offset - end);
  Captured captured = finish(std::move(index), index_offset, identity);
  std::memcpy(to.data() + index_offset, captured.index_bytes.data(), captured.index_bytes.size());
  std::memcpy(to.data(), captured.header_page.data(), captured.header_page.size());
  return captured;
}

Result<Captured> capture_to_file(BlockSource& source, format::ImageIndex index,
                                 std::uint64_t index_offset, const format::ImageHeader& identity,
                                 const FileRange& to) {
  DIAPAUSE_TRY_ASSIGN(StreamWriter writer,
                      StreamWriter::create(to.file, to.begin + format::kHeaderBytes));
  DIAPAUSE_TRY(for_each_block(
      index,
      [&](std::size_t r, std::uint64_t offset, std::uint64_t length,
          std::uint64_t block) -> Status {
        DIAPAUSE_TRY(writer.pad_to(to.begin + index.regions[r].offset + offset));
        const MutableBytes room = writer.room(length);
        DIAPAUSE_TRY_ASSIGN(index.regions[r].block_checksums[block], source.copy(r, offset, room));
        return writer.advance(length);
      }));
  DIAPAUSE_TRY(writer.pad_to(to.begin + index_offset));
  Captured captured = finish(std::move(index), index_offset, identity);
  DIAPAUSE_TRY(writer.append(captured.index_bytes));
  DIAPAUSE_TRY(writer.finish());
  DIAPAUSE_TRY_ASSIGN(const sys::AlignedBuffer page,
                      sys::AlignedBuffer::allocate(format::kHeaderBytes));
  std::memcpy(page.bytes().data(), captured.header_page.data(), captured.header_page.size());
  DIAPAUSE_TRY(to.file.write_all(page.bytes(), to.begin));
  return captured;
}

Result<Captured> capture_in_place(BlockSource& source, format::ImageIndex index,
                                  std::uint64_t index_offset, const format::ImageHeader& identity) {
  ByteVector scratch(format::kBlockBytes);
  DIAPAUSE_TRY(for_each_block(index,
                              [&](std::size_t r, std::uint64_t offset, std::uint64_t length,
                                  std::uint64_t block) -> Status {
                                DIAPAUSE_TRY_ASSIGN(
                                    index.regions[r].block_checksums[block],
                                    source.copy(r, offset, MutableBytes(scratch).first(length)));
                                return {};
                              }));
  return finish(std::move(index), index_offset, identity);
}

namespace {

class CapturedBytes : public ByteSource {
 public:
  CapturedBytes(Captured captured, BlockSource& source)
      : captured_(std::move(captured)), source_(source) {}

  std::uint64_t size() const override { return captured_.header.file_bytes; }

  Result<ByteView> view(std::uint64_t offset, MutableBytes scratch) override {
    std::ranges::fill(scratch, std::byte{0});
    place(captured_.header_page, 0, offset, scratch);
    place(captured_.index_bytes, captured_.header.index_offset, offset, scratch);
    const auto& regions = captured_.index.regions;
    // Regions lie in file order, so this finds the first one that ends behind `offset`.
    auto region =
        std::partition_point(regions.begin(), regions.end(),
                             [&](const format::Region& r) { return region_end(r) <= offset; });
    for (; region != regions.end() && region->offset < offset + scratch.size(); ++region) {
      const std::uint64_t begin = std::max(offset, region->offset);
      const std::uint64_t end = std::min(offset + scratch.size(), region_end(*region));
      if (begin >= end) continue;  // the region is empty
      const auto r = static_cast<std::size_t>(region - regions.begin());
      DIAPAUSE_TRY(
          source_.copy(r, begin - region->offset, scratch.subspan(begin - offset, end - begin)));
    }
    return ByteView(scratch);
  }

 private:
  // Copies into the window `scratch` at file offset `offset` the part of `bytes`, which lie at file
  // offset `at`, that falls into the window.
  static void place(const ByteVector& bytes, std::uint64_t at, std::uint64_t offset,
                    MutableBytes scratch) {
    const std::uint64_t begin = std::max(offset, at);
    const std::uint64_t end = std::min<std::uint64_t>(offset + scratch.size(), at + bytes.size());
    if (begin < end)
      std::memcpy(scratch.data() + (begin - offset), bytes.data() + (begin - at), end - begin);
  }

  const Captured captured_;
  BlockSource& source_;
};

class MemoryBytes : public ByteSource {
 public:
  MemoryBytes(ByteView memory, std::uint64_t size) : memory_(memory), size_(size) {}
  std::uint64_t size() const override { return size_; }
  Result<ByteView> view(std::uint64_t offset, MutableBytes scratch) override {
    if (offset + scratch.size() <= size_) return memory_.subspan(offset, scratch.size());
    std::ranges::fill(scratch, std::byte{0});
    if (offset < size_) std::memcpy(scratch.data(), memory_.data() + offset, size_ - offset);
    return ByteView(scratch);
  }

 private:
  ByteView memory_;
  std::uint64_t size_;
};

class OwnMemoryBytes : public MemoryBytes {
 public:
  OwnMemoryBytes(sys::PrivateMemory memory, std::uint64_t size)
      : MemoryBytes(memory.bytes(), size), own_(std::move(memory)) {}

 private:
  sys::PrivateMemory own_;
};

}  // namespace

std::unique_ptr<ByteSource> captured_bytes(Captured captured, BlockSource& source) {
  return std::make_unique<CapturedBytes>(std::move(captured), source);
}

std::unique_ptr<ByteSource> memory_bytes(ByteView memory, std::uint64_t size) {
  return std::make_unique<MemoryBytes>(memory, size);
}

std::unique_ptr<ByteSource> memory_bytes(sys::PrivateMemory memory, std::uint64_t size) {
  return std::make_unique<OwnMemoryBytes>(std::move(memory), size);
}

Status write_bytes(ByteSource& bytes, const FileRange& to) {
  DIAPAUSE_TRY_ASSIGN(StreamWriter writer, StreamWriter::create(to.file, to.begin));
  std::uint64_t offset = 0;
  while (offset < bytes.size()) {
    const std::uint64_t length =
        std::min<std::uint64_t>(StreamWriter::kBufferBytes, bytes.size() - offset);
    const MutableBytes room = writer.room(length);
    DIAPAUSE_TRY_ASSIGN(const ByteView view, bytes.view(offset, room));
    DIAPAUSE_TRY(view.data() == room.data() ? writer.advance(length) : writer.append_lasting(view));
    offset += length;
  }
  return writer.finish();
}

}  // namespace diapause::capture
