// Notes for `diapause run` that a start failed only because the system lacked some resource. The
// program is then started again after a while.
#pragma once

#include <optional>
#include <string>

#include "config/settings.hpp"
#include "sys/file.hpp"

namespace diapause::library {

class AgainNote {
 public:
  // Keeps the file that DIAPAUSE_RUN_AGAIN_FILE names open, because later there may be no free
  // descriptor. Without that variable, or if the file cannot be opened, no note is ever left.
  void open(sys::Kernel& kernel, const config::Environment& environment);
  void leave(const std::string& why) const;

 private:
  std::optional<sys::File> file_;
};

}  // namespace diapause::library
