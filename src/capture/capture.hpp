// Makes an image out of regions: into mapped memory, or into a file.
#pragma once

#include <memory>

#include "base/byte_source.hpp"
#include "capture/block_source.hpp"
#include "format/image.hpp"
#include "sys/file.hpp"
#include "sys/private_memory.hpp"

namespace diapause::capture {

// The parts of an image that are not region data.
struct Captured {
  format::ImageHeader header;
  format::ImageIndex index;  // with checksums
  ByteVector header_page;
  ByteVector index_bytes;
};

// `identity` gives kind, version, owner, part and rank count; `index` the regions, laid out by format::lay_out;
// `index_offset` what lay_out returned. Bytes between regions become zeros. `to` has at least image_bytes(index,
// index_offset) bytes, page-aligned.
Result<Captured> capture_to_mapping(BlockSource& source, format::ImageIndex index, std::uint64_t index_offset,
                                    const format::ImageHeader& identity, MutableBytes to);

// The last step alone, when the data of the regions lie in `to` and their checksums in `index`; the header comes last.
Captured complete_mapping(format::ImageIndex index, std::uint64_t index_offset, const format::ImageHeader& identity,
                          MutableBytes to);

// A part of a file, from a byte offset that is a multiple of a page to wherever it ends.
struct FileRange {
  FileRange(const sys::File& all) : file(all) {}  // NOLINT(google-explicit-constructor): a file is a range of itself
  FileRange(const sys::File& in, std::uint64_t from) : file(in), begin(from) {}
  const sys::File& file;
  std::uint64_t begin = 0;
};

// As capture_to_mapping, into a range at least that long, rounded up to a page; opened with O_DIRECT or without.
// Several writes are in flight while the next bytes are copied. Does not sync.
Result<Captured> capture_to_file(BlockSource& source, format::ImageIndex index, std::uint64_t index_offset,
                                 const format::ImageHeader& identity, const FileRange& to);

// The same without writing: what captured_bytes() needs to give the image from where its data are.
Result<Captured> capture_in_place(BlockSource& source, format::ImageIndex index, std::uint64_t index_offset,
                                  const format::ImageHeader& identity);

// Size of the whole image file.
std::uint64_t image_bytes(const format::ImageIndex& index, std::uint64_t index_offset);

// The bytes of the image that `captured` describes and `source` still has the data of; `source` must outlive the
// result.
std::unique_ptr<ByteSource> captured_bytes(Captured captured, BlockSource& source);

// Bytes of `memory` up to `size`.
std::unique_ptr<ByteSource> memory_bytes(ByteView memory, std::uint64_t size);
std::unique_ptr<ByteSource> memory_bytes(sys::PrivateMemory memory, std::uint64_t size);

// Writes all of `bytes` to `to`, as capture_to_file does; what lies in memory already is not copied. Does not sync.
Status write_bytes(ByteSource& bytes, const FileRange& to);

}  // namespace diapause::capture
