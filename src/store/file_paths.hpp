// Files of the program's own in an image: a region each, named "file:" and their path.
//
// Paths that come from an image are not trusted: they become files below a directory of our own, or
// an error.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::store {

inline constexpr std::string_view kFilePrefix = "file:";
inline constexpr std::size_t kDeepestFile =
    60;  // parts of a path: less than what Directory::remove_child takes away again

// The components of the path that a region of this name stands for; none if it is no file's.
// Code::corrupt for a path that leads anywhere else than below where it begins.
Result<std::optional<std::vector<std::string>>> path_in_name(std::string_view region);

// The file of this path below `root`; of a new one, the directories on the way are made.
enum class Opening { old_file, new_file };
Result<sys::File> open_below(const sys::Directory& root, const std::vector<std::string>& path,
                             Opening opening);

}  // namespace diapause::store
