#include "capture/stream_writer.hpp"

#include <algorithm>
#include <cstring>

namespace diapause::capture {

Result<StreamWriter> StreamWriter::create(const sys::File& file, std::uint64_t offset) {
  StreamWriter writer(file, offset);
  for (Buffer& buffer : writer.buffers_) {
    DIAPAUSE_TRY_ASSIGN(buffer.memory, sys::AlignedBuffer::allocate(2 * kBufferBytes));
  }
  writer.queue_ = file.kernel().write_queue(kBuffers);
  return writer;
}

MutableBytes StreamWriter::room(std::uint64_t length) {
  return buffers_[current_].memory.bytes().subspan(filled_, length);
}

Status StreamWriter::advance(std::uint64_t length) {
  filled_ += length;
  return filled_ >= kBufferBytes ? flush(kBufferBytes) : Status{};
}

// Writes the first `length` bytes of the present buffer and goes on in the next with what lay behind them.
Status StreamWriter::flush(std::uint64_t length) {
  Buffer& full = buffers_[current_];
  full.ticket = queue_->submit(file_->fd(), ByteView(full.memory.bytes().first(length)), offset_);
  if (full.ticket < 0) return fail(os_error("writing " + file_->path(), static_cast<int>(-full.ticket)));
  offset_ += length;
  current_ = (current_ + 1) % kBuffers;
  Buffer& next = buffers_[current_];
  if (next.ticket >= 0) {
    const int error = queue_->wait(next.ticket);
    next.ticket = -1;
    if (error < 0) return fail(os_error("writing " + file_->path(), -error));
  }
  const std::uint64_t rest = filled_ > length ? filled_ - length : 0;
  std::memcpy(next.memory.bytes().data(), full.memory.bytes().data() + length, rest);
  filled_ = rest;
  return {};
}

Status StreamWriter::append(ByteView data) {
  while (!data.empty()) {
    const std::uint64_t length = std::min<std::uint64_t>(data.size(), kBufferBytes);
    const MutableBytes to = room(length);
    std::memcpy(to.data(), data.data(), length);
    DIAPAUSE_TRY(advance(length));
    data = data.subspan(length);
  }
  return {};
}

Status StreamWriter::pad_to(std::uint64_t offset) {
  while (offset_ + filled_ < offset) {
    const std::uint64_t length = std::min<std::uint64_t>(offset - offset_ - filled_, kBufferBytes);
    const MutableBytes to = room(length);
    std::memset(to.data(), 0, length);
    DIAPAUSE_TRY(advance(length));
  }
  return {};
}

Status StreamWriter::finish() {
  if (filled_ > 0) {
    DIAPAUSE_TRY(pad_to(round_up(offset_ + filled_, kPageBytes)));
    if (filled_ > 0) DIAPAUSE_TRY(flush(filled_));
  }
  for (Buffer& buffer : buffers_) {
    if (buffer.ticket < 0) continue;
    const int error = queue_->wait(buffer.ticket);
    buffer.ticket = -1;
    if (error < 0) return fail(os_error("writing " + file_->path(), -error));
  }
  return {};
}

}  // namespace diapause::capture
