#include "library/again.hpp"

#include <algorithm>
#include <utility>

#include "sys/path.hpp"

namespace diapause::library {

void AgainNote::open(sys::Kernel& kernel, const config::Environment& environment) {
  const auto variable = std::ranges::find(environment, "DIAPAUSE_RUN_AGAIN_FILE",
                                          &config::Environment::value_type::first);
  if (variable == environment.end()) return;
  auto file = sys::open_existing_file(kernel, variable->second);
  if (file) file_.emplace(std::move(*file));
}

void AgainNote::leave(const std::string& why) const {
  if (file_) (void)file_->write_all(as_byte_view(why + "\n"), 0);
}

}  // namespace diapause::library
