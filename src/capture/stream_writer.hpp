// Writes a file from front to back through a few large aligned buffers, so that copying and writing
// overlap.
#pragma once

#include <array>
#include <memory>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::capture {

class StreamWriter {
 public:
  static constexpr std::uint64_t kBufferBytes = 4 * kMiB;

  // Begins at `offset`, a multiple of a page. The file must outlive the writer.
  static Result<StreamWriter> create(const sys::File& file, std::uint64_t offset);

  // Returns a place for the next `length` (<= kBufferBytes) bytes, valid until advance(length).
  MutableBytes room(std::uint64_t length);
  Status advance(std::uint64_t length);
  Status append(ByteView data);
  // Appends data that stay unchanged until finish() has returned or this object is destroyed. They
  // are written without a copy if they are whole pages and nothing waits in the present buffer.
  Status append_lasting(ByteView data);
  // Appends zeros up to the file offset `offset`, which must not be before the present one.
  Status pad_to(std::uint64_t offset);
  // Writes the rest, padded to a page, and waits for all writes. Must be called; buffers are in use
  // until then.
  Status finish();

 private:
  static constexpr std::size_t kBuffers = 4;
  // A buffer has room for a full room() call behind its filled part; the excess moves to the next
  // buffer. The buffer's turn may also be used for data that lie elsewhere.
  struct Buffer {
    sys::AlignedBuffer memory;
    std::int64_t ticket = -1;
    ByteView written;          // the data that the ticket stands for
    std::uint64_t offset = 0;  // place in the file
  };

  StreamWriter(const sys::File& file, std::uint64_t offset) : file_(&file), offset_(offset) {}
  Status flush(std::uint64_t length);
  Status submit(ByteView data);
  Status wait_for(Buffer& buffer);

  const sys::File* file_;
  std::uint64_t offset_;      // place of the present buffer in the file
  std::uint64_t filled_ = 0;  // bytes in the present buffer
  std::size_t current_ = 0;
  std::array<Buffer, kBuffers> buffers_;
  std::unique_ptr<sys::WriteQueue> queue_;  // destroyed first, because its writes use the buffers
};

}  // namespace diapause::capture
