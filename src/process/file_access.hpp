// Opens and writes files of a job by their names.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause::process {

// Opens a file. A file's owner may have it open in ways that its mode forbids, because he made it
// so or has changed the mode since. He can allow it to himself for a moment. Returns -1, and the
// reason in errno.
int open_as_owner(const std::string& path, int flags, mode_t mode = 0);
// Returns whether a path is that of a directory, or of something in it.
bool is_below(std::string_view path, std::string_view directory);
// Returns a time of a file since 1970.
std::int64_t nanoseconds(const timespec& time);
// Makes the directories above a path. A program may have had them only for as long as it ran, such
// as a directory of its session.
void make_directories_of(const std::string& path);
// Writes all bytes. `what` says in an error what was done.
Status write_all(int file, std::uint64_t offset, ByteView bytes, const std::string& what);
// Returns whether a part of a file holds zeros as far as the file goes.
bool holds_zeros(int file, std::uint64_t offset, std::size_t bytes);
// Does the same as write_all() to a file that can be read, too, but leaves pages alone that are to
// hold zeros and do so already, or lie in a hole or behind the end of the file.
Status write_sparsely(int file, std::uint64_t offset, ByteView bytes, const std::string& what);

}  // namespace diapause::process
