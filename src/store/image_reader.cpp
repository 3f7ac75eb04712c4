#include "store/image_reader.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "format/checksum.hpp"
#include "format/copy.hpp"
#include "store/names.hpp"
#include "sys/shares.hpp"

namespace diapause::store {
namespace {

constexpr std::size_t kLeastShare = 8;  // blocks, for which a thread is worth its start
// Blocks that are read together: a call for each would take longer than its bytes.
constexpr std::uint64_t kSmallBlockBytes = 32768;
constexpr std::uint64_t kTogetherBytes = 262144;
// Shorter reads gain nothing from buffers and a queue of their own.
constexpr std::uint64_t kLeastPastCacheBytes = 4 * kMiB;
// Shorter regions are read by a call each before their file is mapped.
constexpr std::uint64_t kLeastMappedBytes = kMiB;

class FileBytes : public ByteSource {
 public:
  FileBytes(sys::File file, std::uint64_t begin, std::uint64_t size)
      : file_(std::move(file)), begin_(begin), size_(size) {}
  std::uint64_t size() const override { return size_; }
  Result<ByteView> view(std::uint64_t offset, MutableBytes scratch) override {
    const std::uint64_t inside =
        offset < size_ ? std::min<std::uint64_t>(scratch.size(), size_ - offset) : 0;
    if (inside > 0) DIAPAUSE_TRY(file_.read_exact(scratch.first(inside), begin_ + offset));
    std::ranges::fill(scratch.subspan(inside), std::byte{0});
    return ByteView(scratch);
  }

 private:
  sys::File file_;
  std::uint64_t begin_;
  std::uint64_t size_;
};

Status check_identity(const format::ImageHeader& header, const ExpectedImage& expected,
                      const std::string& name) {
  if (header.version != expected.version) {
    return fail(Code::corrupt,
                fmt::format("{} is of another checkpoint (version {}, commit {})", name,
                            header.version.number, header.version.commit.hex()));
  }
  if (header.kind != expected.kind || header.owner != expected.owner ||
      header.part != expected.part) {
    return fail(Code::corrupt,
                fmt::format("{} holds the image of {} {}, not of {}", name,
                            header.kind == format::ImageKind::data ? "rank" : "parity member",
                            header.owner, expected.owner));
  }
  if (header.rank_count != expected.rank_count || header.file_bytes != expected.record.file_bytes ||
      header.index_digest != expected.record.index_digest) {
    return fail(Code::corrupt, fmt::format("{} is not the file that the manifest names", name));
  }
  return {};
}

}  // namespace

std::unique_ptr<ByteSource> file_bytes(sys::File file, std::uint64_t offset, std::uint64_t size) {
  return std::make_unique<FileBytes>(std::move(file), offset, size);
}

LocatedImage locate_image(config::TierKind kind, const format::Manifest& manifest,
                          std::uint32_t rank) {
  LocatedImage located{image_name(rank), expected_image(manifest, rank)};
  if (kind != config::TierKind::global) return located;
  const format::RankRecord& record = manifest.ranks[rank];
  located.expected.record = record.in_global();
  if (record.shared_file != format::kOwnFile) {
    located.file = shared_name(record.shared_file);
    located.expected.offset = record.shared_offset;
  }
  return located;
}

ExpectedImage expected_image(const format::Manifest& manifest, std::uint32_t rank) {
  return {format::ImageKind::data,
          manifest.version,
          rank,
          0,
          static_cast<std::uint32_t>(manifest.ranks.size()),
          manifest.ranks[rank].image};
}

ExpectedImage expected_parity(const format::Manifest& manifest, std::uint32_t group,
                              std::uint32_t member) {
  return {format::ImageKind::parity,
          manifest.version,
          member,
          group,
          static_cast<std::uint32_t>(manifest.ranks.size()),
          manifest.groups[group].parities[member]};
}

Result<ImageReader> ImageReader::open(std::unique_ptr<ByteSource> bytes, std::string name,
                                      const ExpectedImage& expected) {
  ImageReader reader(std::move(bytes), std::move(name));
  if (reader.bytes_->size() < expected.record.file_bytes) {
    return fail(Code::corrupt, fmt::format("{} ends after {} of {} bytes", reader.name_,
                                           reader.bytes_->size(), expected.record.file_bytes));
  }
  ByteVector page(format::kHeaderBytes);
  DIAPAUSE_TRY_ASSIGN(const ByteView header_view, reader.bytes_->view(0, page));
  auto header = format::decode_header(header_view);
  if (!header) return fail(header.error().code, reader.name_ + ": " + header.error().message);
  reader.header_ = *header;
  DIAPAUSE_TRY(check_identity(reader.header_, expected, reader.name_));

  ByteVector index_room(reader.header_.index_bytes);
  DIAPAUSE_TRY_ASSIGN(const ByteView index_view,
                      reader.bytes_->view(reader.header_.index_offset, index_room));
  if (format::digest128(index_view) != reader.header_.index_digest) {
    return fail(Code::corrupt, reader.name_ + ": its index is damaged");
  }
  auto index = format::decode_index(index_view, reader.header_);
  if (!index) return fail(index.error().code, reader.name_ + ": " + index.error().message);
  reader.index_ = std::move(*index);
  auto encoded = EncodedRegions::of(reader.index_);
  if (!encoded) return fail(encoded.error().code, reader.name_ + ": " + encoded.error().message);
  reader.encoded_ = std::move(*encoded);
  return reader;
}

std::uint64_t ImageReader::block_length(std::size_t region, std::uint64_t block) const {
  if (encoded_.holds(region)) return encoded_.length(region, block);
  const std::uint64_t offset = block * format::kBlockBytes;
  return std::min<std::uint64_t>(format::kBlockBytes, index_.regions[region].stored_bytes - offset);
}

std::uint64_t ImageReader::block_offset(std::size_t region, std::uint64_t block) const {
  return encoded_.holds(region) ? encoded_.offset(region, block) : block * format::kBlockBytes;
}

Result<ByteView> ImageReader::read_block(std::size_t region, std::uint64_t block,
                                         MutableBytes scratch) {
  return read_block_with(workspace_, {region, block}, scratch);
}

Result<ByteView> ImageReader::read_block_with(EncodedRegions::Workspace& workspace, BlockName block,
                                              MutableBytes scratch) const {
  const format::Region& r = index_.regions[block.region];
  if (encoded_.holds(block.region)) {
    Status decoded = encoded_.decode(workspace, r, block.region, block.number, *bytes_, scratch);
    if (!decoded) return fail(decoded.error().code, name_ + ": " + decoded.error().message);
    return ByteView(scratch);
  }
  DIAPAUSE_TRY_ASSIGN(const ByteView view, bytes_->view(offset_in_image(block), scratch));
  DIAPAUSE_TRY(check(block, view));
  return view;
}

// The block must be stored as it was in memory.
std::uint64_t ImageReader::offset_in_image(BlockName block) const {
  return index_.regions[block.region].offset + block.number * format::kBlockBytes;
}

Status ImageReader::check(BlockName block, ByteView data) const {
  return compare(block, format::checksum64(data));
}

Status ImageReader::compare(BlockName block, std::uint64_t checksum) const {
  const format::Region& region = index_.regions[block.region];
  if (checksum == region.block_checksums[block.number]) return {};
  return fail(Code::corrupt, fmt::format("{}: block {} of region '{}' is damaged", name_,
                                         block.number, region.name));
}

Status ImageReader::verify(unsigned threads) {
  if (reads_past_cache()) return direct_->verify(index_, threads);
  return visit_blocks(std::vector<bool>(index_.regions.size(), true), {}, threads);
}

Status ImageReader::verify_through_cache(const std::function<bool()>& go_on) {
  ByteVector scratch(format::kBlockBytes);
  for (std::size_t region = 0; region < index_.regions.size(); ++region) {
    for (std::uint64_t block = 0; block < index_.regions[region].block_count() && go_on();
         ++block) {
      DIAPAUSE_TRY(
          read_block(region, block, MutableBytes(scratch).first(block_length(region, block))));
    }
  }
  return {};
}

Result<sys::PrivateMemory> ImageReader::own_memory(std::size_t region) {
  const std::uint64_t bytes = index_.regions[region].raw_bytes();
  if (direct_ != nullptr && bytes > 0) {
    auto mapped = direct_->map(index_.regions[region]);
    if (mapped) return mapped;
  }
  DIAPAUSE_TRY_ASSIGN(sys::PrivateMemory memory, sys::PrivateMemory::anonymous(bytes));
  std::vector<std::byte*> targets(index_.regions.size());
  if (bytes > 0) targets[region] = memory.bytes().data();
  DIAPAUSE_TRY(deliver(targets));
  return memory;
}

Status ImageReader::deliver(std::span<std::byte* const> targets, unsigned threads) {
  if (reads_past_cache()) return direct_->deliver(index_, targets, threads);
  std::vector<bool> is_wanted;
  for (const std::byte* target : targets) is_wanted.push_back(target != nullptr);
  std::vector<std::optional<sys::PrivateMemory>> sources(targets.size());
  for (std::size_t region = 0; region < targets.size() && direct_ != nullptr; ++region) {
    if (targets[region] == nullptr || index_.regions[region].stored_bytes < kLeastMappedBytes)
      continue;
    auto mapped = direct_->map(index_.regions[region]);
    if (mapped) sources[region].emplace(std::move(*mapped));
  }
  return visit_blocks(is_wanted, {targets, nullptr, sources}, threads);
}

Status ImageReader::visit(const std::vector<bool>& is_wanted, unsigned threads,
                          const TakeBlock& take) {
  std::uint64_t bytes = 0;
  for (std::size_t region = 0; region < index_.regions.size(); ++region)
    bytes += is_wanted[region] ? index_.regions[region].stored_bytes : 0;
  if (reads_past_cache() && bytes >= kLeastPastCacheBytes)
    return direct_->visit(index_, is_wanted, threads, take);
  return visit_blocks(is_wanted, {{}, &take}, threads);
}

Status ImageReader::visit_blocks(const std::vector<bool>& is_wanted, const Purpose& purpose,
                                 unsigned threads) const {
  std::vector<BlockName> blocks;
  for (std::size_t region = 0; region < index_.regions.size(); ++region) {
    const std::uint64_t count = is_wanted[region] ? index_.regions[region].block_count() : 0;
    for (std::uint64_t number = 0; number < count; ++number) blocks.push_back({region, number});
  }
  return sys::in_shares(
      blocks.size(), threads, kLeastShare, [&](std::size_t begin, std::size_t end) -> Status {
        EncodedRegions::Workspace workspace;
        ByteVector scratch;
        for (auto left = std::span<const BlockName>(blocks).subspan(begin, end - begin);
             !left.empty();) {
          const std::size_t together = count_neighbours(left);
          DIAPAUSE_TRY(together > 1 ? visit_neighbours(left.first(together), purpose, scratch)
                                    : visit_block(left[0], purpose, workspace, scratch));
          left = left.subspan(together);
        }
        return {};
      });
}

// Returns the number of blocks at the beginning that are best read together.
std::size_t ImageReader::count_neighbours(std::span<const BlockName> blocks) const {
  const std::uint64_t begin = offset_in_image(blocks[0]);
  std::size_t count = 0;
  for (const BlockName& block : blocks) {
    const std::uint64_t length = block_length(block.region, block.number);
    const bool is_small = !encoded_.holds(block.region) && length <= kSmallBlockBytes;
    if (!is_small || offset_in_image(block) + length - begin > kTogetherBytes) break;
    ++count;
  }
  return std::max<std::size_t>(count, 1);
}

Status ImageReader::visit_neighbours(std::span<const BlockName> blocks, const Purpose& purpose,
                                     ByteVector& scratch) const {
  const std::uint64_t begin = offset_in_image(blocks.front());
  scratch.resize(std::max<std::size_t>(scratch.size(), kTogetherBytes));
  const std::uint64_t end =
      offset_in_image(blocks.back()) + block_length(blocks.back().region, blocks.back().number);
  DIAPAUSE_TRY_ASSIGN(const ByteView all,
                      bytes_->view(begin, MutableBytes(scratch).first(end - begin)));
  for (const BlockName& block : blocks) {
    const std::uint64_t length = block_length(block.region, block.number);
    const ByteView data = all.subspan(offset_in_image(block) - begin, length);
    DIAPAUSE_TRY(check(block, data));
    const std::uint64_t offset = block_offset(block.region, block.number);
    std::byte* const target = purpose.target_of(block.region);
    if (target != nullptr) std::memcpy(target + offset, data.data(), length);
    if (purpose.take != nullptr) DIAPAUSE_TRY((*purpose.take)(block.region, offset, data));
  }
  return {};
}

// Reading a file in memory by a call and then the copy for its checksum takes half as long again.
Result<bool> ImageReader::copy_from_memory(BlockName block, const Purpose& purpose) const {
  if (purpose.sources.empty() || !purpose.sources[block.region]) return false;
  const sys::PrivateMemory& source = *purpose.sources[block.region];
  const std::uint64_t offset = block_offset(block.region, block.number);
  const std::uint64_t length = block_length(block.region, block.number);
  // What is amiss with the file is told by a call that reads it.
  if (!source.populate(offset, length)) return false;
  const std::uint64_t checksum =
      format::copy_with_checksum(MutableBytes(purpose.targets[block.region] + offset, length),
                                 ByteView(source.bytes()).subspan(offset, length));
  DIAPAUSE_TRY(compare(block, checksum));
  return true;
}

Status ImageReader::visit_block(BlockName block, const Purpose& purpose,
                                EncodedRegions::Workspace& workspace, ByteVector& scratch) const {
  DIAPAUSE_TRY_ASSIGN(const bool is_copied, copy_from_memory(block, purpose));
  if (is_copied) return {};
  std::byte* const target = purpose.target_of(block.region);
  const std::uint64_t offset = block_offset(block.region, block.number);
  const std::uint64_t length = block_length(block.region, block.number);
  if (target == nullptr) scratch.resize(std::max<std::size_t>(scratch.size(), length));
  const MutableBytes to = target == nullptr ? MutableBytes(scratch).first(length)
                                            : MutableBytes(target + offset, length);
  DIAPAUSE_TRY_ASSIGN(const ByteView view, read_block_with(workspace, block, to));
  // Memory that holds the image already is seen where it is, and not copied by the read.
  if (target != nullptr && view.data() != to.data())
    std::memcpy(to.data(), view.data(), view.size());
  return purpose.take == nullptr ? Status{} : (*purpose.take)(block.region, offset, view);
}

}  // namespace diapause::store
