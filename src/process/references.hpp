// Pages of files that an image need not hold, because the files of the machine hold them: libraries and programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "process/dump.hpp"
#include "sys/file.hpp"

namespace diapause::process {

class References {
 public:
  // Absolute paths of the directories below which files are the machine's, and not the job's.
  explicit References(std::vector<std::string> directories) : directories_(std::move(directories)) {}

  // Files elsewhere count by their pages only: a restart does not look for them.
  void forget_other_files(Dump& dump) const;

  // What may be done to find out whether a file holds the pages of a dump.
  enum class Effort {
    look,  // at the file's times: enough if it was read before
    read   // the file and the pages. `dump` may have been redirected to copies
  };
  // Takes out of `dump` the pages that files hold, and notes there what the files must hold at the restart.
  void apply(Dump& dump, Effort effort);

 private:
  // Another one is another file, or the same one that somebody has written to.
  struct Identity {
    std::uint64_t device = 0, inode = 0, bytes = 0;
    std::int64_t written_ns = 0, changed_ns = 0;
    bool operator==(const Identity&) const = default;
  };
  struct Range {
    std::uint64_t offset = 0, bytes = 0;
    auto operator<=>(const Range&) const = default;
  };
  struct Known {
    Identity identity;
    std::map<Range, std::uint64_t> checksums;  // of what file and memory both held
  };
  using Pages = std::vector<const Contents*>;

  // The ranges of the file that have one checksum each.
  static std::vector<Range> parts_of(const Contents& pages);
  static Result<Identity> identity_of(const sys::File& file);
  static Status compare(const sys::File& file, const Contents& pages, Known& known);
  static bool knows(const Known& known, const Contents& pages);
  bool is_below(const std::string& path) const;
  // Null: the file holds something else, or that is not known.
  const Known* find_out(const std::string& path, const Pages& pages, Effort effort);

  std::vector<std::string> directories_;
  std::map<std::string, Known> known_;  // by path
};

// Opens a file that the job had mapped, to read it; anything but a regular file is refused, and not waited for.
Result<sys::File> open_mapped_file(const std::string& path);

// Whether the files that the image relies on hold what they must. Before any process. Code::mismatch names one that
// does not.
Status check_files(const Job& job);

}  // namespace diapause::process
