// Reads configuration files as FTI and VELOC do: `key = value` in lines, under `[section]` or under
// none.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace diapause::drop_in {

// Keys and sections are compared without case. Comments begin with '#' or ';' at the beginning of a
// line or after a space. Quotes around a value are not part of it. If a key stands twice, the later
// value counts.
class Ini {
 public:
  // Throws std::runtime_error that names the file, and the line that cannot be read.
  static Ini read(const std::string& path);
  static Ini parse(const std::string& text, const std::string& name);

  // Returns nothing if the key is missing or has no value.
  std::optional<std::string> get(const std::string& section, const std::string& key) const;
  // Throws std::runtime_error that names the key if its value is no whole number.
  std::optional<long> number(const std::string& section, const std::string& key) const;

  // The keys are "section.key", or "key" where there is no section, in lower case.
  const std::map<std::string, std::string>& all() const { return values_; }

 private:
  std::string name_;  // the name for messages
  std::map<std::string, std::string> values_;
};

std::string lower(std::string text);
// Throws std::runtime_error that says `what` is no whole number.
long whole_number(const std::string& text, const std::string& what);

}  // namespace diapause::drop_in
