// Directories that users of other libraries name for their checkpoints.
#pragma once

#include <string>

namespace diapause::drop_in {

// Makes the directory that a user has named by `path`, if it is not there, and returns the one to
// use. That is the directory itself if it is this user's own, and a directory in it if it is
// shared, such as /tmp: others may write there, and nothing that they could replace is read back.
// Links are followed. Throws std::runtime_error that names `key` if nothing can be written there.
std::string own_directory(const std::string& path, const std::string& key);

}  // namespace diapause::drop_in
