// Makes our configuration out of another library's, as text for diapause_open_options.
#pragma once

#include <string>

namespace diapause::drop_in {

class Settings {
 public:
  void set(const std::string& key, const std::string& value);
  void set(const std::string& key, long value) { add(key, std::to_string(value)); }
  void set_none(const std::string& key) { add(key, "[]"); }  // for a list
  const std::string& text() const { return text_; }

 private:
  void add(const std::string& key, const std::string& value) {
    text_ += key + " = " + value + "\n";
  }
  std::string text_;
};

}  // namespace diapause::drop_in
