// Files of /sys and /proc: made up by the kernel when they are read, and read again and again.
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
  // Opens for reading; links are followed, as /sys is made of them. Code::not_found and Code::denied name the path.
  static Result<ValueFile> open(Kernel& kernel, const std::string& path);

  // The text as it is now, without the last line end, at most `most_bytes` of it (the rest is cut off).
  Result<std::string> text(std::size_t most_bytes = 4096) const;
  // What one read gives of its beginning, into `place`: for what is asked for many times a second.
  Result<std::string_view> head(std::span<char> place) const;
  // The number that it begins with, up to a space or a line end. Code::corrupt if there is none.
  Result<std::uint64_t> number() const;
  const std::string& path() const { return file_.path(); }

 private:
  explicit ValueFile(File file) : file_(std::move(file)) {}
  File file_;
};

// A file that is read once. As ValueFile::text().
Result<std::string> read_value(Kernel& kernel, const std::string& path);
Result<std::uint64_t> read_number(Kernel& kernel, const std::string& path);

// Names of the entries of a directory that anybody may own, in order ("hwmon2" before "hwmon10").
Result<std::vector<std::string>> list_names(Kernel& kernel, const std::string& path);

// The number that `text` begins with, up to a space or a line end. Code::corrupt names `path` if there is none.
Result<std::uint64_t> number_in(std::string_view text, const std::string& path);

}  // namespace diapause::sys
