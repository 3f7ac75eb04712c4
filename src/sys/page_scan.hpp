// Finds the pages that were written, with the PAGEMAP_SCAN call of Linux 6.7.
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

  // Returns the pages of `range`, in order, that were written or discarded since they were
  // protected by a Userfault in the mode note_writes. Each is protected again in the same step, so
  // that no write is missed between two calls. Pages that do not exist yet count as written until
  // somebody reads them. Fails with EPERM in os_errno if a part of the range is not watched.
  Result<std::vector<PageRange>> written_and_protect(PageRange range) const;

  // Returns the pages of `range`, in order, that no Userfault protects, and those that do not
  // exist.
  Result<std::vector<PageRange>> unprotected(PageRange range) const;

  // Returns whether there is a page that no Userfault protects. Pages that do not exist do not
  // count.
  Result<bool> has_unprotected(PageRange range) const;

 private:
  explicit PageScan(int fd) : fd_(fd) {}
  Result<std::vector<PageRange>> written(PageRange range, std::uint64_t flags) const;

  int fd_;
};

}  // namespace diapause::sys
