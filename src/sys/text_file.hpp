// Small text files that a user, or another program for the user, reads or wrote.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/file.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

// The whole file; links are followed, anybody may own it. Errors name the path; more than 1 MiB is an error.
Result<std::string> read_text_file(Kernel& kernel, const std::string& path);

// Calls `each` with every line that is not empty, without its end, of a file of any size, up to the size that the file
// has when this begins. A line of more than 16 MiB is left out. Links are followed, anybody may own it, but it must be
// a regular file. Errors name the path.
Status read_lines(Kernel& kernel, const std::string& path, const std::function<void(std::string_view)>& each);

// Adds a line to the file, which is made with mode 0600 if there is none. A link is not followed, and what is there
// must be a regular file. Not synced. Errors name the path.
Status append_line(Kernel& kernel, const std::string& path, const std::string& line);

// Puts `text` in the place of the file, so that whoever opens it sees the old text or the new one, and lets everybody
// read it. Not synced. Errors name the path.
Status replace_text_file(Kernel& kernel, const std::string& path, const std::string& text);

// A file of lines that are known one after the other.
class TextWriter {
 public:
  // Makes the file with mode 0600, or empties the one that is there, which must be a regular file and no link.
  static Result<TextWriter> create(Kernel& kernel, const std::string& path);
  Status add_line(const std::string& line);

 private:
  explicit TextWriter(File file) : file_(std::move(file)) {}
  File file_;
  std::uint64_t size_ = 0;
};

}  // namespace diapause::sys
