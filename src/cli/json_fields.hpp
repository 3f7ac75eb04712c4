// Reads fields of the objects in a ledger, which anybody may have written. A field of another type
// than it should have is not there.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace diapause::cli::fields {

using json = nlohmann::ordered_json;

inline constexpr double kLargest = 1e18;  // no machine has more joules, seconds or bytes

inline constexpr std::uint64_t kNewestSchema = 2;  // of a ledger's lines

inline const json* find(const json& object, const char* key) {
  const auto found = object.find(key);  // the end of what is no object
  return found == object.end() ? nullptr : &*found;
}

inline std::optional<double> number_of(const json& value) {
  if (!value.is_number()) return std::nullopt;
  const auto found = value.get<double>();
  return std::abs(found) <= kLargest ? std::optional(found) : std::nullopt;
}

inline std::optional<double> number(const json& object, const char* key) {
  const json* const value = find(object, key);
  return value == nullptr ? std::nullopt : number_of(*value);
}

// Returns a number of at least 0.
inline std::optional<double> duration(const json& object, const char* key) {
  const auto value = number(object, key);
  return value && *value >= 0 ? value : std::nullopt;
}

inline std::optional<std::uint64_t> count(const json& object, const char* key) {
  const json* const value = find(object, key);
  if (value == nullptr || !value->is_number_unsigned()) return std::nullopt;
  return value->get<std::uint64_t>();
}

inline std::optional<std::string> text(const json& object, const char* key) {
  const json* const value = find(object, key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return value->get<std::string>();
}

}  // namespace diapause::cli::fields
