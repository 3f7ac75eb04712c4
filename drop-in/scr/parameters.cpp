#include "parameters.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include "../common/ini.hpp"

namespace diapause::drop_in {
namespace {

constexpr const char* kSpace = " \t\r\n";

bool begins_descriptors(const std::string& key) {
  return key == "CKPT" || key == "STORE" || key == "GROUPS";
}

bool is_of_name(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_';
}

std::optional<std::string> of_environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

}  // namespace

std::string with_environment(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_braced = text.compare(at, 2, "${") == 0;
    const std::size_t begin = at + (is_braced ? 2 : 1);
    std::size_t end = begin;
    while (end < text.size() && is_of_name(text[end])) ++end;
    const bool is_closed = !is_braced || (end < text.size() && text[end] == '}');
    if (text[at] != '$' || end == begin || !is_closed) {
      result += text[at++];
      continue;
    }
    result += of_environment(text.substr(begin, end - begin)).value_or("");
    at = end + (is_braced ? 1 : 0);
  }
  return result;
}

std::vector<ScrParameters::Pair> ScrParameters::pairs_of(const std::string& line) {
  std::vector<Pair> pairs;
  for (std::size_t at = line.find_first_not_of(kSpace); at != std::string::npos;) {
    const std::size_t key_end = line.find_first_of(" \t\r\n=", at);
    Pair& pair = pairs.emplace_back(Pair{line.substr(at, key_end - at), {}});
    at = line.find_first_not_of(kSpace, key_end);
    const bool has_value = at != std::string::npos && line[at] == '=';
    if (pair.key.empty() || (!has_value && at != std::string::npos)) {
      throw std::runtime_error("'" + line +
                               "': a line of SCR's configuration is KEY=VALUE [KEY=VALUE ...]");
    }
    if (!has_value) break;
    at = line.find_first_not_of(kSpace, at + 1);
    const std::size_t value_end = line.find_first_of(kSpace, at);
    pair.value = at == std::string::npos ? "" : line.substr(at, value_end - at);
    at = line.find_first_not_of(kSpace, value_end);
  }
  return pairs;
}

ScrParameters::Answer ScrParameters::apply(const std::string& line) {
  const std::vector<Pair> pairs = pairs_of(line);
  if (pairs.empty()) return {};
  if (!pairs.back().value) return ask(pairs);
  const Pair& first = pairs.front();
  if (first.value->empty()) {
    values_.erase(first.key);
    descriptors_.erase(first.key);
  } else if (begins_descriptors(first.key)) {
    Descriptor& descriptor = descriptors_[first.key][*first.value];
    for (std::size_t i = 1; i < pairs.size(); ++i) descriptor[pairs[i].key] = *pairs[i].value;
  } else {
    for (const Pair& pair : pairs) values_[pair.key] = *pair.value;
  }
  return {};
}

ScrParameters::Answer ScrParameters::ask(const std::vector<Pair>& pairs) const {
  const Pair& first = pairs.front();
  if (pairs.size() == 1) return {true, get(first.key)};
  const auto& known = descriptors(first.key);
  const auto descriptor = known.find(*first.value);
  if (descriptor == known.end()) return {true, {}};
  const auto found = descriptor->second.find(pairs.back().key);
  if (found == descriptor->second.end()) return {true, {}};
  return {true, found->second};
}

ScrParameters ScrParameters::read(const std::string& path) {
  ScrParameters parameters;
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": the configuration file cannot be read");
  for (std::string line; std::getline(file, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    try {
      const Answer answer = parameters.apply(with_environment(line));
      if (answer.is_query) throw std::runtime_error("'" + line + "': the key has no value");
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(path + ": " + error.what());
    }
  }
  return parameters;
}

std::optional<std::string> ScrParameters::get(const std::string& key) const {
  const auto& known = descriptors(key);
  if (known.size() == 1) return known.begin()->first;
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

const std::map<std::string, ScrParameters::Descriptor>& ScrParameters::descriptors(
    const std::string& key) const {
  static const std::map<std::string, Descriptor> none;
  const auto found = descriptors_.find(key);
  return found == descriptors_.end() ? none : found->second;
}

std::vector<std::string> ScrParameters::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : values_) keys.push_back(key);
  return keys;
}

ScrSettings::ScrSettings(const ScrParameters& of_program) : of_program_(of_program) {
  const auto named = get("SCR_CONF_FILE");
  const std::string path = named.value_or(get("SCR_PREFIX").value_or(".") + "/.scrconf");
  if (named || std::filesystem::exists(path)) of_file_ = ScrParameters::read(path);
}

std::optional<std::string> ScrSettings::get(const std::string& key) const {
  if (const auto value = of_environment(key)) return value;
  if (const auto value = of_file_.get(key)) return value;
  return of_program_.get(key);
}

long ScrSettings::number(const std::string& key, long otherwise, long least) const {
  const auto text = get(key);
  if (!text) return otherwise;
  const long value = whole_number(*text, key);
  if (value >= least) return value;
  throw std::runtime_error(key + " = " + *text + ": it must be at least " + std::to_string(least));
}

const std::map<std::string, ScrParameters::Descriptor>& ScrSettings::descriptors(
    const std::string& key) const {
  const auto& of_file = of_file_.descriptors(key);
  return of_file.empty() ? of_program_.descriptors(key) : of_file;
}

std::vector<std::string> ScrSettings::keys() const {
  std::set<std::string> keys;
  for (const ScrParameters* const parameters : {&of_file_, &of_program_}) {
    for (const std::string& key : parameters->keys()) keys.insert(key);
  }
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string name(*variable, std::strcspn(*variable, "="));
    if (name.rfind("SCR_", 0) == 0) keys.insert(name);
  }
  return {keys.begin(), keys.end()};
}

}  // namespace diapause::drop_in
