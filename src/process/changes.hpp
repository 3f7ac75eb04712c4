// Tells which pages of a job's processes were written since when, without cost for what is not
// written. The kernel notes it (userfaultfd in the mode WP_ASYNC, and PAGEMAP_SCAN; Linux 6.7, no
// privilege).
//
// Only anonymous memory that a process does not share is watched. Anything that is not certain
// counts as written: memory that is not watched, pages that are not there or are swapped out,
// processes that were forked or have called exec, and memory that was unmapped, moved or mapped
// anew.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "process/dump.hpp"
#include "process/foreign_userfault.hpp"

namespace diapause::process {

class Changes {
 public:
  // Tells dump() whose memory is watched by this object. It is called before every dump().
  void announce(FrozenJob& frozen) const;

  // Notes what has been written since the last call, and watches on. `number` is greater than in
  // the calls before; a page that was written, or may have been, has it as its last change. It is
  // called after dump(), while the job stands still. Fails with Code::argument if a process itself
  // watches memory by userfaultfd, which cannot be restored.
  Status note(FrozenJob& frozen, const Dump& dump, std::uint64_t number);

  // Returns the number of the last note() that found a page of this memory changed; kAlways if that
  // is not known.
  static constexpr std::uint64_t kAlways = UINT64_MAX;
  std::uint64_t last_change(std::uint32_t process, const Extent& memory) const;

  // Returns why nothing is watched; empty if the kernel can do it.
  const std::string& refusal() const { return refusal_; }
  // Watches nothing from now on.
  void give_up(std::string why);

 private:
  struct Range {
    std::uint64_t end = 0;
    std::vector<std::uint32_t> changed_in;  // for each page
  };
  using Ranges = std::map<std::uint64_t, Range>;  // by the address
  struct Watched {
    pid_t here = 0;
    ForeignUserfault userfault;
    Ranges ranges;
  };
  Result<Watched*> watched(FrozenProcess& frozen);
  static Status note_area(Watched& watched, const Extent& area, const Ranges& before,
                          std::uint32_t number);
  static void carry(Range& range, const Extent& unwritten, const Ranges& before);

  std::map<std::uint32_t, Watched> watched_;  // by the process
  std::string refusal_;
};

}  // namespace diapause::process
