// Which pages were written: the PAGEMAP_SCAN call of Linux 6.7.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "sys/mappings.hpp"

namespace diapause::sys {

class PageScan {
 public:
  static Result<PageScan> open();
  PageScan(PageScan&& other) noexcept;
  PageScan& operator=(PageScan&&) = delete;
  ~PageScan();

  // The pages of `range`, in order, that were written or thrown away since they were protected by a Userfault that
  // notes writes; each is protected again in the same step, so that no write falls between two calls. Pages that do not
  // exist yet count as written until somebody reads them. os_errno is EPERM where not all of the range is watched.
  Result<std::vector<PageRange>> written_and_protect(PageRange range) const;

  // Whether there is a page that no Userfault protects. Pages that do not exist do not count.
  Result<bool> has_unprotected(PageRange range) const;

 private:
  explicit PageScan(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace diapause::sys
