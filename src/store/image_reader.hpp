// Reads an image and believes nothing: header, index and every block are checked before they are
// handed on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/byte_source.hpp"
#include "config/settings.hpp"
#include "format/image.hpp"
#include "format/manifest.hpp"
#include "store/direct_image.hpp"
#include "store/encoded_regions.hpp"
#include "sys/file.hpp"

namespace diapause::store {

// Says what an image must be according to the manifest.
struct ExpectedImage {
  format::ImageKind kind = format::ImageKind::data;
  format::VersionId version;
  std::uint32_t owner = 0;
  std::uint32_t part = 0;
  std::uint32_t rank_count = 0;
  format::ImageRecord record;
  std::uint64_t offset = 0;  // place in its file
};

// A rank's image in a file of its own.
ExpectedImage expected_image(const format::Manifest& manifest, std::uint32_t rank);
ExpectedImage expected_parity(const format::Manifest& manifest, std::uint32_t group,
                              std::uint32_t member);

// One block of an image.
struct BlockName {
  std::size_t region = 0;
  std::uint64_t number = 0;
};

class ImageReader {
 public:
  // `name` is for messages. Code::corrupt if the bytes are not that image: damaged, cut short,
  // another rank's, or of another checkpoint. Code::mismatch or Code::config for what this build
  // cannot decode.
  static Result<ImageReader> open(std::unique_ptr<ByteSource> bytes, std::string name,
                                  const ExpectedImage& expected);

  const format::ImageHeader& header() const { return header_; }
  const format::ImageIndex& index() const { return index_; }
  const std::string& name() const { return name_; }
  ByteSource& bytes() { return *bytes_; }

  // Reads one block of a region into `scratch` (of the block's length) and checks it. Compressed
  // ones are decoded: what they give, their length and where it begins in the region are of the
  // program's bytes. At most format::kBlockBytes.
  Result<ByteView> read_block(std::size_t region, std::uint64_t block, MutableBytes scratch);
  std::uint64_t block_length(std::size_t region, std::uint64_t block) const;
  std::uint64_t block_offset(std::size_t region, std::uint64_t block) const;

  // Reads and checks every block, in up to `threads` threads.
  Status verify(unsigned threads = 1);

  // Does the same by ordinary reads, after which the pages of a mapping are at hand. `go_on` is
  // asked between blocks; if it returns false, the call ends with success.
  Status verify_through_cache(const std::function<bool()>& go_on);

  // A region as memory of the caller's own. Where its file can be mapped, nothing is read and so
  // nothing is checked; else, and if it is compressed, it is read, with all checks, into anonymous
  // memory.
  Result<sys::PrivateMemory> own_memory(std::size_t region);

  // Reads every region r with targets[r] not null straight to that place, and checks every block,
  // in up to `threads` threads. After a failure the targets hold no data that can be used: damaged
  // blocks may have been written to them.
  Status deliver(std::span<std::byte* const> targets, unsigned threads = 1);

  // Reads every region r with is_wanted[r], checks every block, and gives it to `take`, in up to
  // `threads` threads.
  Status visit(const std::vector<bool>& is_wanted, unsigned threads, const TakeBlock& take);

  // Where the file of `bytes` lies, which is what decides how it is read fastest.
  enum class Storage { disk, memory };
  // The file of `bytes`, opened for direct access, and where the image begins in it. own_memory()
  // then maps it, and from a disk verify() and deliver() read past the page cache and far ahead.
  void read_from(sys::File file, std::uint64_t offset, Storage storage) {
    if (!encoded_.is_empty())
      return;  // where storage is so slow that compression pays, decoding is not the limit
    direct_ = std::make_unique<DirectImage>(std::move(file), offset, name_);
    storage_ = storage;
  }

 private:
  ImageReader(std::unique_ptr<ByteSource> bytes, std::string name)
      : bytes_(std::move(bytes)), name_(std::move(name)) {}

  bool reads_past_cache() const { return direct_ != nullptr && storage_ == Storage::disk; }

  // read_block() for several threads, each of which has a workspace.
  Result<ByteView> read_block_with(EncodedRegions::Workspace& workspace, BlockName block,
                                   MutableBytes scratch) const;
  // Says what is done with the blocks: they are read to their targets, given to `take`, or only
  // checked.
  struct Purpose {
    std::span<std::byte* const> targets = {};
    const TakeBlock* take = nullptr;
    // Of each region that lies in memory and can be copied from there, that memory; or empty.
    std::span<const std::optional<sys::PrivateMemory>> sources = {};

    std::byte* target_of(std::size_t region) const {
      return targets.empty() ? nullptr : targets[region];
    }
  };
  // Checks the blocks of the wanted regions.
  Status visit_blocks(const std::vector<bool>& is_wanted, const Purpose& purpose,
                      unsigned threads) const;
  Status visit_block(BlockName block, const Purpose& purpose, EncodedRegions::Workspace& workspace,
                     ByteVector& scratch) const;
  std::size_t count_neighbours(std::span<const BlockName> blocks) const;
  Result<bool> copy_from_memory(BlockName block, const Purpose& purpose) const;
  Status visit_neighbours(std::span<const BlockName> blocks, const Purpose& purpose,
                          ByteVector& scratch) const;
  std::uint64_t offset_in_image(BlockName block) const;
  Status check(BlockName block, ByteView data) const;
  Status compare(BlockName block, std::uint64_t checksum) const;

  std::unique_ptr<ByteSource> bytes_;
  std::string name_;
  format::ImageHeader header_;
  format::ImageIndex index_;
  EncodedRegions encoded_;
  EncodedRegions::Workspace workspace_;  // memory for read_block()
  std::unique_ptr<DirectImage> direct_;
  Storage storage_ = Storage::memory;
};

// Says where the images of a kind of tier lie.
struct LocatedImage {
  std::string file;
  ExpectedImage expected;
};
LocatedImage locate_image(config::TierKind kind, const format::Manifest& manifest,
                          std::uint32_t rank);

// Gives `size` bytes of a file from `offset` on.
std::unique_ptr<ByteSource> file_bytes(sys::File file, std::uint64_t offset, std::uint64_t size);

}  // namespace diapause::store
