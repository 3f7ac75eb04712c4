// Files that the loss of power must not leave empty or in part under their names.
#pragma once

#include <filesystem>
#include <string>

namespace diapause::drop_in {

// Gives the file this text, or makes it: whatever happens, it has its old contents or the new ones.
// A link to a file stays one, and the permissions stay what they were. Throws std::runtime_error,
// which says that `what` cannot be written.
void replace_file(const std::filesystem::path& path, const std::string& text,
                  const std::string& what);

// Makes a copy that is safe when this returns, but for its name. Throws std::exception.
void copy_durably(const std::filesystem::path& from, const std::filesystem::path& to);

// Gives a file another name in its file system, for good. Throws std::exception.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace diapause::drop_in
