#include "engine/encoding/encoding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "capture/stream_writer.hpp"
#include "format/checksum.hpp"
#include "sys/process.hpp"

namespace diapause::engine {
namespace {

codec::BlockPlan plan_of(const format::Region& region) { return {region, format::kBlockBytes}; }

}  // namespace

// Gives the bytes of a raw region. Every block is compared with its checksum before any byte of it
// is returned.
class Encoding::CheckedRegion {
 public:
  CheckedRegion(ByteSource& image, const format::Region& region) : image_(image), region_(region) {}

  std::uint64_t size() const { return region_.stored_bytes; }

  // Returns bytes of the region. Offsets must be in ascending order.
  Result<ByteView> view(std::uint64_t offset, MutableBytes scratch) {
    for (; checked_ * format::kBlockBytes < offset + scratch.size(); ++checked_)
      DIAPAUSE_TRY(check(checked_));
    return image_.view(region_.offset + offset, scratch);
  }

 private:
  Status check(std::uint64_t block) {
    const std::uint64_t offset = block * format::kBlockBytes;
    scratch_.resize(std::min<std::uint64_t>(format::kBlockBytes, region_.stored_bytes - offset));
    DIAPAUSE_TRY_ASSIGN(const ByteView view, image_.view(region_.offset + offset, scratch_));
    if (format::checksum64(view) == region_.block_checksums[block]) return {};
    return fail(
        Code::corrupt,
        fmt::format("block {} of region '{}' is damaged in the image that was to be compressed",
                    block, region_.name));
  }

  ByteSource& image_;
  const format::Region& region_;
  std::uint64_t checked_ = 0;  // number of blocks
  ByteVector scratch_;
};

// Writes an image from front to back, and completes its index meanwhile.
class Encoding::ImageWriter {
 public:
  static Result<ImageWriter> create(const ImageDescription& raw, const capture::FileRange& to,
                                    sys::RateLimiter& limiter) {
    DIAPAUSE_TRY_ASSIGN(capture::StreamWriter stream,
                        capture::StreamWriter::create(to.file, to.begin + format::kHeaderBytes));
    return ImageWriter(raw, to, limiter, std::move(stream));
  }

  Status begin_region(format::Region region) {
    region.offset = round_up(end_, format::alignment_of(region, is_packed_));
    region.stored_bytes = 0;
    region.block_checksums.clear();
    end_ = region.offset;
    index_.regions.push_back(std::move(region));
    return stream_.pad_to(to_.begin + end_);
  }

  Status add_block(ByteView block) {
    DIAPAUSE_TRY(limiter_->pass(block.size()));
    DIAPAUSE_TRY(stream_.append(block));
    current().block_checksums.push_back(format::checksum64(block));
    current().stored_bytes += block.size();
    end_ += block.size();
    return {};
  }

  format::Region& current() { return index_.regions.back(); }

  Result<format::ImageRecord> finish() {
    const ByteVector index_bytes = format::encode_index(index_);
    header_.format_version = format::format_version_of(index_);
    header_.index_offset = round_up(end_, kPageBytes);
    header_.index_bytes = index_bytes.size();
    header_.index_digest = format::digest128(index_bytes);
    header_.file_bytes = header_.index_offset + index_bytes.size();
    DIAPAUSE_TRY(stream_.pad_to(to_.begin + header_.index_offset));
    DIAPAUSE_TRY(stream_.append(index_bytes));
    DIAPAUSE_TRY(stream_.finish());
    DIAPAUSE_TRY_ASSIGN(const sys::AlignedBuffer page,
                        sys::AlignedBuffer::allocate(format::kHeaderBytes));
    const ByteVector header = format::encode_header(header_);
    std::memcpy(page.bytes().data(), header.data(), header.size());
    DIAPAUSE_TRY(to_.file.write_all(page.bytes(), to_.begin));
    return format::ImageRecord{header_.file_bytes, header_.index_digest};
  }

 private:
  ImageWriter(const ImageDescription& raw, const capture::FileRange& to, sys::RateLimiter& limiter,
              capture::StreamWriter stream)
      : header_(raw.header),
        is_packed_(format::is_packed(raw.index)),
        to_(to),
        limiter_(&limiter),
        stream_(std::move(stream)) {}

  format::ImageHeader header_;
  bool is_packed_;
  format::ImageIndex index_;
  capture::FileRange to_;
  sys::RateLimiter* limiter_;
  capture::StreamWriter stream_;
  std::uint64_t end_ = format::kHeaderBytes;  // end of what was written, in the image
};

Result<ImageDescription> describe(ByteSource& image) {
  ByteVector page(format::kHeaderBytes);
  DIAPAUSE_TRY_ASSIGN(const ByteView header_view, image.view(0, page));
  ImageDescription description;
  DIAPAUSE_TRY_ASSIGN(description.header, format::decode_header(header_view));
  ByteVector room(description.header.index_bytes);
  DIAPAUSE_TRY_ASSIGN(const ByteView index_view, image.view(description.header.index_offset, room));
  DIAPAUSE_TRY_ASSIGN(description.index, format::decode_index(index_view, description.header));
  return description;
}

std::uint64_t most_encoded_bytes(const format::ImageIndex& index) {
  format::ImageIndex largest = index;
  const bool packs = format::is_packed(index);
  std::uint64_t end = format::kHeaderBytes;
  for (format::Region& region : largest.regions) {
    const std::uint64_t blocks = plan_of(region).block_count();
    end = round_up(end, format::alignment_of(region, packs)) + region.raw_bytes() +
          blocks * codec::kBlockHeaderBytes;
    region.encoding = format::Encoding::blocks;
    region.encoded.sizes.resize(blocks);
  }
  return round_up(end, kPageBytes) + format::encoded_index_bytes(largest);
}

Result<EncodedImage> Encoding::write(ByteSource& raw, const EncodingPlan& plan,
                                     const capture::FileRange& to, sys::RateLimiter& limiter) {
  DIAPAUSE_TRY_ASSIGN(const ImageDescription description, describe(raw));
  if (description.index.regions.size() != plan.choices.size()) {
    return fail(Code::internal, "a plan to compress is not of this image");
  }
  DIAPAUSE_TRY_ASSIGN(ImageWriter writer, ImageWriter::create(description, to, limiter));
  EncodedImage image;
  for (std::size_t r = 0; r < plan.choices.size(); ++r) {
    const format::Region& region = description.index.regions[r];
    CheckedRegion bytes(raw, region);
    DIAPAUSE_TRY(writer.begin_region(region));
    if (plan.choices[r].method.codec == codec::CodecId::raw) {
      DIAPAUSE_TRY(copy(bytes, writer));
      continue;
    }
    auto encoded = compress(bytes, plan.choices[r], writer);
    if (!encoded) {
      return fail(encoded.error().code,
                  fmt::format("region '{}': {}", region.name, encoded.error().message));
    }
    image.greatest_error = std::max(image.greatest_error, encoded->report.greatest_error);
    image.encode_s += encoded->encode_s;
    image.regions.push_back(std::move(*encoded));
  }
  DIAPAUSE_TRY_ASSIGN(image.record, writer.finish());
  return image;
}

Status Encoding::copy(CheckedRegion& bytes, ImageWriter& writer) {
  ByteVector scratch(format::kBlockBytes);
  for (std::uint64_t offset = 0; offset < bytes.size(); offset += scratch.size()) {
    const std::uint64_t length = std::min<std::uint64_t>(scratch.size(), bytes.size() - offset);
    DIAPAUSE_TRY_ASSIGN(const ByteView view,
                        bytes.view(offset, MutableBytes(scratch).first(length)));
    DIAPAUSE_TRY(writer.add_block(view));
  }
  return {};
}

Result<EncodedRegion> Encoding::compress(CheckedRegion& bytes, const EncodingPlan::Choice& choice,
                                         ImageWriter& writer) {
  const codec::Method& method = choice.method;
  format::Region& region = writer.current();
  region.encoding = format::Encoding::blocks;
  region.compression = {static_cast<std::uint32_t>(method.codec), method.bound};
  const codec::Workforce workforce{
      [this](std::uint64_t pieces, const auto& piece) { pool_.run(pieces, piece); }, pool_.size()};
  DIAPAUSE_TRY_ASSIGN(codec::RegionEncoder encoder,
                      codec::RegionEncoder::create(method, workforce));
  const double start_s = sys::monotonic_s();
  double writing_s = 0;
  const auto view = [&](std::uint64_t offset, MutableBytes scratch) {
    return bytes.view(offset, scratch);
  };
  const auto add = [&](ByteView block) -> Status {
    const double from_s = sys::monotonic_s();
    region.encoded.sizes.push_back(block.size());
    Status added = writer.add_block(block);
    writing_s += sys::monotonic_s() - from_s;
    return added;
  };
  EncodedRegion encoded{region.name, choice, {}, 0};
  DIAPAUSE_TRY_ASSIGN(encoded.report, encoder.encode(view, plan_of(region), add));
  encoded.encode_s = sys::monotonic_s() - start_s - writing_s;
  region.encoded.lossy = encoded.report.lossy_blocks;
  region.encoded.fallen_back = encoded.report.fallen_back();
  region.encoded.greatest_error = encoded.report.greatest_error;
  return encoded;
}

}  // namespace diapause::engine
