// Files that have more than one name.
#pragma once

#include "sys/file.hpp"

namespace diapause::sys {

// Returns whether the file can be reached, and changed, by another name than the one by which it
// was opened. The result is false if that cannot be asked.
bool has_other_names(const File& file);

}  // namespace diapause::sys
