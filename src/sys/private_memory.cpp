#include "sys/private_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace diapause::sys {

Result<PrivateMemory> PrivateMemory::of_file(const File& file, std::uint64_t offset,
                                             std::uint64_t bytes) {
  // A mapping begins at a page of the machine, which may be larger than 4096 bytes.
  const std::uint64_t before = offset % static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  PrivateMemory memory;
  int error = 0;
  do {
    error = 0;
    memory.mapping_ = file.kernel().map_private(file.fd(), offset - before, before + bytes, &error);
  } while (memory.mapping_ == nullptr && error == EINTR);
  if (memory.mapping_ == nullptr) return fail(os_error("mapping " + file.path(), error));
  memory.kernel_ = &file.kernel();
  memory.mapping_bytes_ = before + bytes;
  memory.bytes_ = {memory.mapping_ + before, bytes};
  return memory;
}

Result<PrivateMemory> PrivateMemory::anonymous(std::uint64_t bytes) {
  PrivateMemory memory;
  DIAPAUSE_TRY_ASSIGN(memory.buffer_, AlignedBuffer::allocate(std::max<std::uint64_t>(bytes, 1)));
  memory.bytes_ = memory.buffer_.bytes().first(bytes);
  return memory;
}

Status PrivateMemory::populate(std::uint64_t offset, std::uint64_t length) const {
  if (mapping_ == nullptr) return {};
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto in_mapping = static_cast<std::uint64_t>(bytes_.data() - mapping_) + offset;
  const std::uint64_t begin = in_mapping / page * page;
  const int result = kernel_->populate(mapping_ + begin, in_mapping + length - begin);
  if (result == 0) return {};
  return fail(os_error("reading a mapped file", -result));
}

PrivateMemory::PrivateMemory(PrivateMemory&& other) noexcept
    : kernel_(other.kernel_),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(other.mapping_bytes_),
      buffer_(std::move(other.buffer_)),
      bytes_(std::exchange(other.bytes_, {})) {}

PrivateMemory::~PrivateMemory() {
  if (mapping_ != nullptr) kernel_->unmap(mapping_, mapping_bytes_);
}

}  // namespace diapause::sys
