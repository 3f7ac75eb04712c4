// Reads files of /sys and /proc repeatedly. The kernel generates their contents on every read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::sys {

class ValueFile {
 public:
  // Opens the file for reading. Links are followed, because /sys consists of them. Code::not_found
  // and Code::denied name the path.
  static Result<ValueFile> open(Kernel& kernel, const std::string& path);

  // Returns the present text without its last line end, cut after `most_bytes`.
  Result<std::string> text(std::size_t most_bytes = 4096) const;
  // Returns what a single read gives of the beginning, stored in `place`. It is for values that are
  // read many times a second.
  Result<std::string_view> head(std::span<char> place) const;
  // Returns the number at the beginning, up to a space or a line end. Fails with Code::corrupt if
  // there is none.
  Result<std::uint64_t> number() const;
  const std::string& path() const { return file_.path(); }

 private:
  explicit ValueFile(File file) : file_(std::move(file)) {}
  File file_;
};

// These read a file once, like ValueFile::text() and ValueFile::number().
Result<std::string> read_value(Kernel& kernel, const std::string& path);
Result<std::uint64_t> read_number(Kernel& kernel, const std::string& path);

// Returns the names of the entries of a directory, which anybody may own, in order ("hwmon2" before
// "hwmon10").
Result<std::vector<std::string>> list_names(Kernel& kernel, const std::string& path);

// Returns the number at the beginning of `text`, up to a space or a line end. Code::corrupt names
// `path` if there is none.
Result<std::uint64_t> number_in(std::string_view text, const std::string& path);

}  // namespace diapause::sys
