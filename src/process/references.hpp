// Finds pages that an image need not hold, because files of the machine (libraries and programs)
// hold them.
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
  // `directories` are absolute paths; files below them belong to the machine and not to the job.
  explicit References(std::vector<std::string> directories)
      : directories_(std::move(directories)) {}

  // Drops the names of files elsewhere. Their pages are in the image, and a restart does not look
  // for the files.
  void forget_other_files(Dump& dump) const;

  // Says what may be done to find out whether a file holds the pages of a dump.
  enum class Effort {
    look,  // at the file's times: enough if it was read before
    read   // the file and the pages. `dump` may have been redirected to copies
  };
  // Takes out of `dump` the pages that files hold, and notes there what the files must hold at the
  // restart.
  void apply(Dump& dump, Effort effort);

 private:
  // Identifies a file and its contents. It changes when somebody writes to the file.
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
    std::map<Range, std::uint64_t> checksums;  // checksums of data that both file and memory held
  };
  using Pages = std::vector<const Contents*>;

  // Returns the ranges of the file that have one checksum each.
  static std::vector<Range> parts_of(const Contents& pages);
  static Result<Identity> identity_of(const sys::File& file);
  static Status compare(const sys::File& file, const Contents& pages, Known& known);
  static bool knows(const Known& known, const Contents& pages);
  bool is_below(const std::string& path) const;
  // Returns null if the file holds something else, or if that is not known.
  const Known* find_out(const std::string& path, const Pages& pages, Effort effort);

  std::vector<std::string> directories_;
  std::map<std::string, Known> known_;  // by the path
};

// Opens a file that the job had mapped, to read it; anything but a regular file is refused, and not
// waited for.
Result<sys::File> open_mapped_file(const std::string& path);

// Checks that the files which the image relies on hold what they must. It is called before any
// process is made. Code::mismatch names a file that does not.
Status check_files(const Job& job);

}  // namespace diapause::process
