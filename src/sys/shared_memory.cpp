#include "sys/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace diapause::sys {
namespace {

constexpr const char* kWhat = "memory that processes share";

}  // namespace

Result<SharedMemory> SharedMemory::create(std::uint64_t bytes) {
  const int descriptor = ::memfd_create("diapause-ranks", MFD_CLOEXEC);
  if (descriptor < 0) return fail(os_error(kWhat, errno));
  SharedMemory memory(descriptor);
  if (::ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) return fail(os_error(kWhat, errno));
  DIAPAUSE_TRY(memory.map(bytes));
  return memory;
}

Result<SharedMemory> SharedMemory::open(const Handle& handle, std::uint64_t bytes) {
  const std::string path =
      "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.descriptor);
  // Numbers of processes may mean others here, and opening what is not known can block or do harm.
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return fail(os_error(path, errno));
  const bool is_same =
      found.st_dev == handle.device && found.st_ino == handle.inode && S_ISREG(found.st_mode);
  if (!is_same || static_cast<std::uint64_t>(found.st_size) != bytes) {
    return fail(Code::not_found,
                path + " is not the memory that another process of the job shares");
  }
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return fail(os_error(path, errno));
  SharedMemory memory(descriptor);
  DIAPAUSE_TRY(memory.map(bytes));
  memory.close_handle();
  return memory;
}

Status SharedMemory::map(std::uint64_t bytes) {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (mapped == MAP_FAILED) return fail(os_error(kWhat, errno));
  bytes_ = {static_cast<std::byte*>(mapped), bytes};
  return {};
}

Result<SharedMemory::Handle> SharedMemory::handle() const {
  struct stat found {};
  if (::fstat(descriptor_, &found) != 0) return fail(os_error(kWhat, errno));
  return Handle{::getpid(), descriptor_, found.st_dev, found.st_ino};
}

void SharedMemory::close_handle() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  close_handle();
  if (bytes_.data() != nullptr) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace diapause::sys
