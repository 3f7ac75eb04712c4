// This is the base implementation, for kernels without queues, private mappings or devices:
// transfers are complete when submit() returns.
#include "sys/kernel.hpp"

#include <fcntl.h>

#include <cerrno>
#include <unordered_map>

#include "sys/robust.hpp"

namespace diapause::sys {
namespace {

// Moves all of `data` by calls that may move less. `at_end` is the result if a call moves nothing.
template <class Bytes, class Call>
int move_all(Bytes data, std::uint64_t offset, int at_end, Call call) {
  while (!data.empty()) {
    const std::int64_t count = uninterrupted([&] { return call(data, offset); });
    if (count < 0) return static_cast<int>(count);
    if (count == 0) return at_end;
    data = data.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return 0;
}

// Holds results until they are asked for.
class Results {
 public:
  std::int64_t put(int result) {
    results_[next_ticket_] = result;
    return next_ticket_++;
  }
  int take(std::int64_t ticket) {
    const auto found = results_.extract(ticket);
    return found.empty() ? -EINVAL : found.mapped();
  }

 private:
  std::unordered_map<std::int64_t, int> results_;
  std::int64_t next_ticket_ = 0;
};

class PlainReads final : public ReadQueue {
 public:
  explicit PlainReads(Kernel& kernel) : kernel_(kernel) {}

  std::int64_t submit(int fd, MutableBytes data, std::uint64_t offset) override {
    return results_.put(move_all(data, offset, -ENODATA, [&](MutableBytes rest, std::uint64_t at) {
      return kernel_.pread(fd, rest, at);
    }));
  }
  int wait(std::int64_t ticket) override { return results_.take(ticket); }

 private:
  Kernel& kernel_;
  Results results_;
};

class PlainWrites final : public WriteQueue {
 public:
  explicit PlainWrites(Kernel& kernel) : kernel_(kernel) {}

  std::int64_t submit(int fd, ByteView data, std::uint64_t offset) override {
    return results_.put(move_all(data, offset, -EIO, [&](ByteView rest, std::uint64_t at) {
      return kernel_.pwrite(fd, rest, at);
    }));
  }
  int wait(std::int64_t ticket) override { return results_.take(ticket); }

 private:
  Kernel& kernel_;
  Results results_;
};

}  // namespace

int Kernel::fstatat(int directory, const char* path, struct stat* out) {
  const int fd = openat(directory, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
  if (fd < 0) return fd;
  const int result = fstat(fd, out);
  close(fd);
  return result;
}

int Kernel::try_range_lock(int) { return -ENOSYS; }
int Kernel::unlock_range(int) { return -ENOSYS; }
int Kernel::real_path(int, std::string*) { return -ENOSYS; }
int Kernel::stop_direct(int) { return -EINVAL; }

void Kernel::back_by_large_pages(int, std::uint64_t, std::uint64_t) {}
std::byte* Kernel::map_private(int, std::uint64_t, std::uint64_t, int* error) {
  *error = ENODEV;
  return nullptr;
}
int Kernel::populate(std::byte*, std::uint64_t) { return 0; }

int Kernel::perf_counter(std::uint32_t, std::uint64_t, int) { return -ENOSYS; }
std::int64_t Kernel::read(int, MutableBytes) { return -ENOSYS; }
int Kernel::ioctl(int, unsigned long, void*) { return -ENOSYS; }

std::unique_ptr<ReadQueue> Kernel::read_queue(unsigned) {
  return std::make_unique<PlainReads>(*this);
}
std::unique_ptr<WriteQueue> Kernel::write_queue(unsigned) {
  return std::make_unique<PlainWrites>(*this);
}

}  // namespace diapause::sys
