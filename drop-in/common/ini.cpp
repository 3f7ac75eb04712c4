#include "ini.hpp"

#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace diapause::drop_in {
namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string without_comment(const std::string& line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool begins = line[i] == '#' || line[i] == ';';
    if (begins && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) return line.substr(0, i);
  }
  return line;
}

std::string without_quotes(const std::string& value) {
  const bool is_quoted = value.size() > 1 && value.front() == value.back() &&
                         (value.front() == '"' || value.front() == '\'');
  return is_quoted ? value.substr(1, value.size() - 2) : value;
}

std::string full_key(const std::string& section, const std::string& key) {
  return section.empty() ? lower(key) : lower(section) + "." + lower(key);
}

}  // namespace

std::string lower(std::string text) {
  for (char& character : text)
    character = static_cast<char>(std::tolower(static_cast<unsigned char>(character)));
  return text;
}

long whole_number(const std::string& text, const std::string& what) {
  long number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end) return number;
  throw std::runtime_error(what + " = " + text + ": this is no whole number");
}

Ini Ini::read(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none))
    throw std::runtime_error(path + ": this is a directory, and no configuration file");
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  const bool is_empty = file && file.peek() == std::ifstream::traits_type::eof();
  if (!is_empty && !(text << file.rdbuf())) {
    throw std::runtime_error(path + ": the configuration file cannot be read");
  }
  return parse(text.str(), path);
}

Ini Ini::parse(const std::string& text, const std::string& name) {
  Ini ini;
  ini.name_ = name;
  std::istringstream lines(text);
  std::string section;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = trimmed(without_comment(line));
    if (line.empty()) continue;
    const auto equals = line.find('=');
    if (line.front() == '[' && line.back() == ']') {
      section = trimmed(line.substr(1, line.size() - 2));
    } else if (equals != std::string::npos && equals > 0) {
      ini.values_[full_key(section, trimmed(line.substr(0, equals)))] =
          without_quotes(trimmed(line.substr(equals + 1)));
    } else {
      throw std::runtime_error(name + ", line " + std::to_string(number) +
                               ": this is neither [section] nor key = value: " + line);
    }
  }
  return ini;
}

std::optional<std::string> Ini::get(const std::string& section, const std::string& key) const {
  const auto found = values_.find(full_key(section, key));
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::optional<long> Ini::number(const std::string& section, const std::string& key) const {
  const auto text = get(section, key);
  if (!text) return std::nullopt;
  return whole_number(*text, name_ + ": " + key);
}

}  // namespace diapause::drop_in
