// Reads an image and believes nothing: header, index and every block are checked before they are handed on.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/byte_source.hpp"
#include "config/settings.hpp"
#include "format/image.hpp"
#include "format/manifest.hpp"
#include "store/encoded_regions.hpp"
#include "store/staged_image.hpp"
#include "sys/file.hpp"

namespace diapause::store {

// What the manifest says an image must be.
struct ExpectedImage {
  format::ImageKind kind = format::ImageKind::data;
  format::VersionId version;
  std::uint32_t owner = 0;
  std::uint32_t part = 0;
  std::uint32_t rank_count = 0;
  format::ImageRecord record;
  std::uint64_t offset = 0;  // in its file
};

// A rank's image in a file of its own.
ExpectedImage expected_image(const format::Manifest& manifest, std::uint32_t rank);
ExpectedImage expected_parity(const format::Manifest& manifest, std::uint32_t group, std::uint32_t member);

class ImageReader {
 public:
  // `name` is for messages. Code::corrupt if the bytes are not that image: damaged, cut short, another rank's, or of
  // another checkpoint. Code::mismatch or Code::config for what this build cannot decode.
  static Result<ImageReader> open(std::unique_ptr<ByteSource> bytes, std::string name, const ExpectedImage& expected);

  const format::ImageHeader& header() const { return header_; }
  const format::ImageIndex& index() const { return index_; }
  const std::string& name() const { return name_; }
  ByteSource& bytes() { return *bytes_; }

  // Reads one block of a region into `scratch` (of the block's length) and checks it. Compressed ones are decoded: what
  // they give, their length and where it begins in the region are of the program's bytes. At most format::kBlockBytes.
  Result<ByteView> read_block(std::size_t region, std::uint64_t block, MutableBytes scratch);
  std::uint64_t block_length(std::size_t region, std::uint64_t block) const;
  std::uint64_t block_offset(std::size_t region, std::uint64_t block) const;

  // Reads and checks every block. With a file to read ahead in, as much as `spare` allows is kept for deliver().
  Status verify(Spare spare = {});

  // The same by ordinary reads, after which the pages of a mapping are at hand. `go_on` is asked between blocks; a
  // false ends it with success.
  Status verify_through_cache(const std::function<bool()>& go_on);

  // A region as memory of the caller's own. Where its file can be mapped, nothing is read and so nothing is checked;
  // else, and if it is compressed, it is read, with all checks, into anonymous memory.
  Result<sys::PrivateMemory> own_memory(std::size_t region);

  // Copies every region r with targets[r] not null there, and checks what it reads. After a successful verify():
  // without, what comes before a damaged block is copied.
  Status deliver(std::span<std::byte* const> targets);

  // The file of `bytes`, opened for direct access, and where the image begins in it: verify() and deliver() then read
  // far ahead.
  void read_ahead_in(sys::File file, std::uint64_t offset) {
    if (!encoded_.is_empty()) return;  // where storage is so slow that it pays, memory to decode into is not the limit
    staged_ = std::make_unique<StagedImage>(std::move(file), offset, name_);
  }

 private:
  ImageReader(std::unique_ptr<ByteSource> bytes, std::string name) : bytes_(std::move(bytes)), name_(std::move(name)) {}

  std::unique_ptr<ByteSource> bytes_;
  std::string name_;
  format::ImageHeader header_;
  format::ImageIndex index_;
  EncodedRegions encoded_;
  std::unique_ptr<StagedImage> staged_;
};

// Where the images of a kind of tier lie.
struct LocatedImage {
  std::string file;
  ExpectedImage expected;
};
LocatedImage locate_image(config::TierKind kind, const format::Manifest& manifest, std::uint32_t rank);

// `size` bytes of a file from `offset` on.
std::unique_ptr<ByteSource> file_bytes(sys::File file, std::uint64_t offset, std::uint64_t size);

}  // namespace diapause::store
