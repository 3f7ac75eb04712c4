// A file of the program's own, as VELOC's cache of files takes it: what is written is in the file
// when the call returns, and the operating system caches it. It is part of no checkpoint.
#ifndef DIAPAUSE_DROP_IN_VELOC_CACHE_HPP
#define DIAPAUSE_DROP_IN_VELOC_CACHE_HPP

#include <sys/types.h>

#include <memory>
#include <string>

class posix_cached_file_t;

namespace veloc {

// Functions that return bool return whether they succeeded.
class cached_file_t {
  std::unique_ptr<posix_cached_file_t> ptr;

 public:
  // VELOC's directory for its cache: it is not used.
  cached_file_t(const std::string& scratch);
  ~cached_file_t();

  // `flags` and `mode` are those of open(2). One file is open at a time.
  bool open(const std::string& name, int flags, mode_t mode);
  // All bytes, or false.
  bool pread(void* data, size_t count, off_t offset);
  bool pwrite(const void* data, size_t count, off_t offset);
  void close();

  // Returns whether all writes of this process since the last call have succeeded.
  static bool flush();
  // There is nothing that has to end.
  static void shutdown();
};

}  // namespace veloc

#endif
