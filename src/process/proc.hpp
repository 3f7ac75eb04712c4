// Reads what /proc tells of a process, as this process sees it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "process/state.hpp"

namespace diapause::process {

// Returns the whole file, of any length.
Result<std::string> read_proc(const std::string& path);
// Writes such a file, by one call.
Status write_proc(const std::string& path, const std::string& text);
// Returns where a link of /proc leads.
Result<std::string> read_link(const std::string& path);
// Returns the numbers among the names in a directory of /proc, in rising order.
Result<std::vector<pid_t>> numbers_in(const std::string& directory);

// These are the lines of /proc/<pid>/status that matter. Ids are those of the innermost namespace.
struct ProcStatus {
  std::uint32_t id = 0, thread_id = 0, group = 0, session = 0;
  pid_t parent_here = 0;  // the only id in the namespace of this process
  pid_t tracer_here = 0;
  char state = '?';
  std::uint32_t mask = 0;
  std::uint32_t filters = 0;     // number of its seccomp filters
  std::uint64_t locked_kib = 0;  // locked memory
  std::uint32_t no_new_privileges = 0;
  std::uint64_t inheritable = 0, permitted = 0, effective = 0, bounding = 0,
                ambient = 0;  // capabilities
  std::string name;
  std::string users;  // user, group and other groups, with their kinds, as text to compare
};
Result<ProcStatus> status_of(const std::string& directory);

// Returns whether a process still has memory. One that has ended, or is about to, has none.
bool has_memory(pid_t process);

// Has the fields of /proc/<pid>/stat by their numbers in proc(5), from 3 on.
class StatFields {
 public:
  static Result<StatFields> of(pid_t process);
  std::uint64_t number(std::size_t field) const;

 private:
  std::vector<std::string> fields_;
};

// This is a line of /proc/<pid>/maps, with what smaps says of it.
struct Mapping {
  std::uint64_t begin = 0, end = 0;
  std::uint32_t protection = 0;
  bool is_shared = false;
  std::uint64_t offset = 0;
  std::uint64_t device = 0, inode = 0;
  std::string name;
  // VmFlags: "rd wr mr ", and "pk " if the mapping has a protection key; not of places_of().
  std::string flags;
  bool has(std::string_view flag) const { return flags.find(flag) != std::string::npos; }
};
Result<std::vector<Mapping>> mappings_of(pid_t process);
// Returns the same without flags, for which the kernel would have to look at every page.
Result<std::vector<Mapping>> places_of(pid_t process);
// Returns how many pages of memory a process has, shared ones among them.
Result<std::uint64_t> resident_pages_of(pid_t process);

// Each of the following returns runs of pages that hold something, in [begin, end) of memory that
// is not shared.
struct Extent {
  std::uint64_t begin = 0, end = 0;
};
// In anonymous memory, pages that were never written are left out.
Result<std::vector<Extent>> populated_extents(pid_t process, const Extent& range);
// In a private mapping of a file, these are the pages that the process has written to and so has
// for itself.
Result<std::vector<Extent>> written_extents(pid_t process, const Extent& range);
// In a mapping of a file, these are the pages that can be read; pages behind the end of the file
// cannot.
std::vector<Extent> readable_extents(pid_t process, const Extent& range);

// In memory that a userfaultfd watches for writes, from now on the pages that are there count as
// unwritten. Returns those that were there and unwritten until now. Fails if a part of the range is
// not watched so, or if the kernel cannot tell (before Linux 6.7); other parts may count as
// unwritten then.
Result<std::vector<Extent>> mark_unwritten(pid_t process, const Extent& range);

// Returns the guarded pages (MADV_GUARD_INSTALL) of any memory. Kernels before 6.15 do not tell of
// them, and the result is empty there.
Result<std::vector<Extent>> guarded_extents(pid_t process, const Extent& range);

// Returns the same of pages that the process itself must not read now.
std::vector<Extent> forced_extents(pid_t process, const Extent& range);

// Returns all values in /proc/<pid>/fdinfo/<n> whose lines begin with a word such as "pos".
std::vector<std::string> values_in(const std::string& text, std::string_view key);
std::optional<std::uint64_t> number_in(const std::string& text, std::string_view key, int base);

}  // namespace diapause::process
