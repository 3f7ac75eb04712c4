// A text file that somebody may still be writing, line by line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::sys {

class LineFile {
 public:
  // Opens for reading; links are followed, anybody may own it.
  static Result<LineFile> open(Kernel& kernel, const std::string& path);

  // The next line that is complete, without its end; none if there is none yet. Lines of more than 1 MiB are an error.
  Result<std::optional<std::string>> next();
  // Goes on with the first line that begins within the last `bytes` of the file; backwards never.
  Status skip_to_last(std::uint64_t bytes);
  const std::string& path() const { return file_.path(); }

 private:
  explicit LineFile(File file) : file_(std::move(file)) {}
  File file_;
  std::uint64_t offset_ = 0;  // of what comes after pending_
  std::string pending_;       // read, and not yet given
  std::size_t given_ = 0;     // of pending_
};

}  // namespace diapause::sys
