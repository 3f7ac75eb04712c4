// Reads a text file to which another process may still be appending lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::sys {

class LineFile {
 public:
  // Opens the file for reading. Links are followed, and anybody may own it.
  static Result<LineFile> open(Kernel& kernel, const std::string& path);

  // Returns the next complete line without its end, or nullopt if there is none yet. A line of more
  // than 1 MiB is an error.
  Result<std::optional<std::string>> next();
  // Continues with the first line that begins within the last `bytes` of the file. Never goes
  // backwards.
  Status skip_to_last(std::uint64_t bytes);
  const std::string& path() const { return file_.path(); }

 private:
  explicit LineFile(File file) : file_(std::move(file)) {}
  File file_;
  std::uint64_t offset_ = 0;  // place of the data behind pending_
  std::string pending_;       // read, and not yet returned completely
  std::size_t given_ = 0;     // bytes of pending_ that were returned
};

}  // namespace diapause::sys
