#include "capture/stream_writer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

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

// Starts to write `data` in the turn of the present buffer, and waits until the next buffer is
// free.
Status StreamWriter::submit(ByteView data) {
  Buffer& present = buffers_[current_];
  present.written = data;
  present.offset = offset_;
  present.ticket = queue_->submit(file_->fd(), data, offset_);
  if (present.ticket < 0)
    return fail(os_error("writing " + file_->path(), static_cast<int>(-present.ticket)));
  offset_ += data.size();
  current_ = (current_ + 1) % kBuffers;
  return wait_for(buffers_[current_]);
}

Status StreamWriter::wait_for(Buffer& buffer) {
  if (buffer.ticket < 0) return {};
  const int error = queue_->wait(std::exchange(buffer.ticket, -1));
  // If O_DIRECT was granted and is refused now, File::write_all() falls back.
  if (error == -EINVAL) return file_->write_all(buffer.written, buffer.offset);
  return error < 0 ? fail(os_error("writing " + file_->path(), -error)) : Status{};
}

// Writes the first `length` bytes of the present buffer and moves the rest to the next one.
Status StreamWriter::flush(std::uint64_t length) {
  const ByteView full = buffers_[current_].memory.bytes();
  DIAPAUSE_TRY(submit(full.first(length)));
  const std::uint64_t rest = filled_ > length ? filled_ - length : 0;
  std::memcpy(buffers_[current_].memory.bytes().data(), full.data() + length, rest);
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

Status StreamWriter::append_lasting(ByteView data) {
  const bool whole_pages = reinterpret_cast<std::uintptr_t>(data.data()) % kPageBytes == 0 &&
                           data.size() % kPageBytes == 0;
  return filled_ == 0 && whole_pages ? submit(data) : append(data);
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
  for (Buffer& buffer : buffers_) DIAPAUSE_TRY(wait_for(buffer));
  return {};
}

}  // namespace diapause::capture
