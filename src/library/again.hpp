// What a program that `diapause run` has started leaves for it when a start failed only because the system was short of
// something: it is to be started again, after a while.
#pragma once

#include <optional>
#include <string>

#include "config/settings.hpp"
#include "sys/file.hpp"

namespace diapause::library {

class AgainNote {
 public:
  // Keeps the file that DIAPAUSE_RUN_AGAIN_FILE names open: when it is needed there may be no descriptor left. Without
  // such a variable, and where it cannot be opened, nothing is ever left.
  void open(sys::Kernel& kernel, const config::Environment& environment);
  void leave(const std::string& why) const;

 private:
  std::optional<sys::File> file_;
};

}  // namespace diapause::library
