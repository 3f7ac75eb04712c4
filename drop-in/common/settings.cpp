#include "settings.hpp"

namespace diapause::drop_in {

void Settings::set(const std::string& key, const std::string& value) {
  std::string quoted = "\"";
  for (const char character : value) {
    if (character == '"' || character == '\\') quoted += '\\';
    quoted += character;
  }
  add(key, quoted + "\"");
}

}  // namespace diapause::drop_in
