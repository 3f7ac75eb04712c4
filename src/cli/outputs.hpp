// Files that a verb writes besides what it prints. Whether they can be written is known before
// anything is computed.
#pragma once

#include <string>

#include "base/result.hpp"

namespace diapause::cli {

// Returns the name of the file with a picture's numbers, which lies beside it.
std::string numbers_of_picture(const std::string& picture);

// The error names the option. An empty name asks for no file.
Status check_output(const std::string& option, const std::string& file);
Status check_picture(const std::string& option, const std::string& picture);

}  // namespace diapause::cli
