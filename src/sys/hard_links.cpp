#include "sys/hard_links.hpp"

#include <sys/stat.h>

#include "sys/robust.hpp"

namespace diapause::sys {

bool has_other_names(const File& file) {
  struct stat status;
  return uninterrupted([&] { return file.kernel().fstat(file.fd(), &status); }) >= 0 &&
         status.st_nlink > 1;
}

}  // namespace diapause::sys
