// Makes an image out of regions, in mapped memory or in a file.
#pragma once

#include <memory>

#include "base/byte_source.hpp"
#include "capture/block_source.hpp"
#include "format/image.hpp"
#include "sys/file.hpp"
#include "sys/private_memory.hpp"

namespace diapause::capture {

// The parts of an image that are not data of regions.
struct Captured {
  format::ImageHeader header;
  format::ImageIndex index;  // it has the checksums
  ByteVector header_page;
  ByteVector index_bytes;
};

// Writes an image to `to`, which is page-aligned and has at least image_bytes(index, index_offset)
// bytes. `identity` gives kind, version, owner, part and rank count; `index` gives the regions,
// laid out by format::lay_out(), which returned `index_offset`. Bytes between regions become zeros.
Result<Captured> capture_to_mapping(BlockSource& source, format::ImageIndex index,
                                    std::uint64_t index_offset, const format::ImageHeader& identity,
                                    MutableBytes to);

// Performs only the last step of capture_to_mapping(), for region data that lie in `to` and have
// their checksums in `index`. The header is written last.
Captured complete_mapping(format::ImageIndex index, std::uint64_t index_offset,
                          const format::ImageHeader& identity, MutableBytes to);

// A part of a file, from a byte offset that is a multiple of a page to the end.
struct FileRange {
  FileRange(const sys::File& all)
      : file(all) {}  // NOLINT(google-explicit-constructor): a file is a range of itself
  FileRange(const sys::File& in, std::uint64_t from) : file(in), begin(from) {}
  const sys::File& file;
  std::uint64_t begin = 0;
};

// Writes an image like capture_to_mapping(), into a range of a file that is at least that long,
// rounded up to a page. The file may be opened with O_DIRECT. Several writes are in flight while
// the next bytes are copied. Does not sync.
Result<Captured> capture_to_file(BlockSource& source, format::ImageIndex index,
                                 std::uint64_t index_offset, const format::ImageHeader& identity,
                                 const FileRange& to);

// Computes the same without writing: the parts that captured_bytes() needs to produce the image
// from the place where the data are.
Result<Captured> capture_in_place(BlockSource& source, format::ImageIndex index,
                                  std::uint64_t index_offset, const format::ImageHeader& identity);

// Returns the size of the whole image file.
std::uint64_t image_bytes(const format::ImageIndex& index, std::uint64_t index_offset);

// Returns the bytes of the image that `captured` describes and whose data `source` still has.
// `source` must outlive the result.
std::unique_ptr<ByteSource> captured_bytes(Captured captured, BlockSource& source);

// Return the first `size` bytes of `memory`.
std::unique_ptr<ByteSource> memory_bytes(ByteView memory, std::uint64_t size);
std::unique_ptr<ByteSource> memory_bytes(sys::PrivateMemory memory, std::uint64_t size);

// Writes all of `bytes` to `to`, like capture_to_file(). Data that are already in memory are not
// copied. Does not sync.
Status write_bytes(ByteSource& bytes, const FileRange& to);

}  // namespace diapause::capture
