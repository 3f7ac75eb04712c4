// VELOC's cached files (veloc/cache.hpp), without a cache of our own.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "veloc/cache.hpp"

namespace {

// The interface asks for all files of the process at once.
std::atomic<bool>& has_failed_write() {
  static std::atomic<bool> failed{false};
  return failed;
}

bool complain(const std::string& name, const char* what, int error) {
  std::fprintf(stderr, "veloc: %s cannot be %s: %s\n", name.c_str(), what, std::strerror(error));
  return false;
}

}  // namespace

class posix_cached_file_t {
 public:
  ~posix_cached_file_t() { close(); }

  bool open(const std::string& name, int flags, mode_t mode) {
    if (is_open()) return complain(name, "opened, because another file is open", EBUSY);
    name_ = name;
    file_ = ::open(name.c_str(), flags | O_CLOEXEC, mode);
    return is_open() || complain(name, "opened", errno);
  }

  bool pread(void* data, size_t count, off_t offset) {
    for (char* to = static_cast<char*>(data); count > 0;) {
      const ssize_t done = ::pread(file_, to, count, offset);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return complain(name_, "read", done == 0 ? ENODATA : errno);
      to += done;
      offset += done;
      count -= static_cast<size_t>(done);
    }
    return true;
  }

  bool pwrite(const void* data, size_t count, off_t offset) {
    for (const char* from = static_cast<const char*>(data); count > 0;) {
      const ssize_t done = ::pwrite(file_, from, count, offset);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) {
        has_failed_write() = true;
        return complain(name_, "written", errno);
      }
      from += done;
      offset += done;
      count -= static_cast<size_t>(done);
    }
    return true;
  }

  void close() {
    if (is_open() && ::close(file_) != 0) {
      has_failed_write() = true;
      complain(name_, "closed", errno);
    }
    file_ = -1;
  }

 private:
  bool is_open() const { return file_ >= 0; }

  std::string name_;
  int file_ = -1;
};

namespace veloc {

cached_file_t::cached_file_t(const std::string&) : ptr(std::make_unique<posix_cached_file_t>()) {}
cached_file_t::~cached_file_t() = default;

bool cached_file_t::open(const std::string& name, int flags, mode_t mode) {
  return ptr->open(name, flags, mode);
}
bool cached_file_t::pread(void* data, size_t count, off_t offset) {
  return ptr->pread(data, count, offset);
}
bool cached_file_t::pwrite(const void* data, size_t count, off_t offset) {
  return ptr->pwrite(data, count, offset);
}
void cached_file_t::close() { ptr->close(); }
bool cached_file_t::flush() { return !has_failed_write().exchange(false); }
void cached_file_t::shutdown() {}

}  // namespace veloc
