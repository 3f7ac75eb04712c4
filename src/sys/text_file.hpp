// Reads and writes text files that a user, or another program for the user, reads or writes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/file.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

// Returns the whole file. Links are followed, and anybody may own it. Errors name the path; a file
// of more than 1 MiB is an error.
Result<std::string> read_text_file(Kernel& kernel, const std::string& path);

// Calls `each` with every non-empty line, without its end, of a regular file of any size, up to the
// size that the file has at the beginning of the call. Lines of more than 16 MiB are skipped. Links
// are followed, and anybody may own the file. Errors name the path.
Status read_lines(Kernel& kernel, const std::string& path,
                  const std::function<void(std::string_view)>& each);

// Appends a line to the file, which is made with mode 0600 if it does not exist. A link is not
// followed, and an existing file must be a regular one. The file is not synced. Errors name the
// path.
Status append_line(Kernel& kernel, const std::string& path, const std::string& line);

// Returns the error that replace_text_file() would meet, as far as it can be known before. The file
// is left as it is.
Status check_replaceable(Kernel& kernel, const std::string& path);

// Replaces the file by `text` atomically and makes it readable for everybody. The file is not
// synced. Errors name the path.
Status replace_text_file(Kernel& kernel, const std::string& path, const std::string& text);

// This is a text file that is written line by line.
class TextWriter {
 public:
  // Makes the file with mode 0600, or empties an existing one, which must be a regular file and no
  // link.
  static Result<TextWriter> create(Kernel& kernel, const std::string& path);
  Status add_line(const std::string& line);

 private:
  explicit TextWriter(File file) : file_(std::move(file)) {}
  File file_;
  std::uint64_t size_ = 0;
};

}  // namespace diapause::sys
