// Reads a value from text, stores it, and describes what is allowed, for each type of key.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "config/keys.hpp"

namespace diapause::config {
namespace {

constexpr std::size_t kMostNameBytes = 255;
// Signals that batch systems and people send, and that no debugger, terminal or fault needs.
constexpr std::array<std::string_view, 7> kSignals = {"SIGHUP",  "SIGINT",  "SIGTERM", "SIGUSR1",
                                                      "SIGUSR2", "SIGALRM", "SIGXCPU"};

template <class T>
std::optional<T> whole_text_as(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  std::size_t start = 0;
  for (std::size_t comma = text.find(','); comma != std::string::npos;
       comma = text.find(',', start)) {
    parts.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

bool is_sound_text(Rule rule, const std::string& text) {
  if (text.find('\0') != std::string::npos) return false;
  if (rule == Rule::not_empty) return !text.empty();
  if (rule == Rule::absolute) return text.starts_with('/');
  if (rule == Rule::signal) return std::ranges::find(kSignals, text) != kSignals.end();
  if (rule != Rule::node_name) return true;
  return text.size() <= kMostNameBytes && text != "." && text != ".." &&
         text.find('/') == std::string::npos;
}

double most_number(Rule rule) {
  return rule == Rule::percent ? 100 : rule == Rule::ratio ? 1 : kMostSeconds;
}

bool is_above_zero(Rule rule) { return rule == Rule::positive || rule == Rule::ratio; }

bool is_above_least(Rule rule, double value) {
  if (rule == Rule::any_sign) return value >= -kMostSeconds;
  return is_above_zero(rule) ? value > 0 : value >= 0;
}

struct Assign {
  const Key& key;
  const Found& found;

  bool operator()(double& place) const {
    const auto* integer = std::get_if<std::int64_t>(&found.value);
    const auto* number = std::get_if<double>(&found.value);
    if (integer == nullptr && number == nullptr) return false;
    const double value = integer != nullptr ? static_cast<double>(*integer) : *number;
    // The condition is written so that NaN is out of range.
    const bool in_range = value <= most_number(key.rule) && is_above_least(key.rule, value);
    if (in_range) place = value;
    return in_range;
  }
  template <class Integer>
  bool put_integer(Integer& place) const {
    const auto* integer = std::get_if<std::int64_t>(&found.value);
    if (integer == nullptr || *integer < key.least || *integer > key.most) return false;
    place = static_cast<std::uint32_t>(*integer);
    return true;
  }
  bool operator()(std::uint32_t& place) const { return put_integer(place); }
  bool operator()(std::optional<std::uint32_t>& place) const { return put_integer(place); }
  bool operator()(std::uint64_t& place) const {
    const auto* integer = std::get_if<std::int64_t>(&found.value);
    if (integer == nullptr || *integer < key.least || *integer > key.most) return false;
    place = static_cast<std::uint64_t>(*integer);
    return true;
  }
  bool operator()(std::string& place) const {
    const auto* text = std::get_if<std::string>(&found.value);
    if (text == nullptr || !is_sound_text(key.rule, *text)) return false;
    place = *text;
    return true;
  }
  bool operator()(std::vector<std::string>& place) const {
    const auto* list = std::get_if<std::vector<std::string>>(&found.value);
    if (list == nullptr || std::set(list->begin(), list->end()).size() != list->size())
      return false;
    for (const std::string& text : *list) {
      if (text.empty() || !is_sound_text(key.rule, text)) return false;
    }
    place = *list;
    return true;
  }
  bool operator()(FileCount& place) const {
    if (const auto* text = std::get_if<std::string>(&found.value)) {
      if (*text != "rank" && *text != "auto") return false;
      place = {*text == "rank" ? FileCount::Kind::per_rank : FileCount::Kind::automatic, 0};
      return true;
    }
    std::uint32_t count = 0;
    if (!put_integer(count)) return false;
    place = {FileCount::Kind::fixed, count};
    return true;
  }
  bool operator()(ChoiceRef place) const {
    const auto* text = std::get_if<std::string>(&found.value);
    if (text == nullptr) return false;
    const auto word = std::find(key.words.begin(), key.words.end(), *text);
    if (word == key.words.end()) return false;
    place.choose(static_cast<std::size_t>(word - key.words.begin()));
    return true;
  }
};

struct ReadText {
  const std::string& text;

  decltype(Found::value) operator()(double& (*)(Draft&)) const {
    const auto number = whole_text_as<double>(text);
    return number ? decltype(Found::value)(*number) : std::monostate();
  }
  decltype(Found::value) integer() const {
    const auto number = whole_text_as<std::int64_t>(text);
    return number ? decltype(Found::value)(*number) : std::monostate();
  }
  decltype(Found::value) operator()(std::uint32_t& (*)(Draft&)) const { return integer(); }
  decltype(Found::value) operator()(std::uint64_t& (*)(Draft&)) const { return integer(); }
  decltype(Found::value) operator()(std::optional<std::uint32_t>& (*)(Draft&)) const {
    return integer();
  }
  decltype(Found::value) operator()(std::vector<std::string>& (*)(Draft&)) const {
    return split_at_commas(text);
  }
  decltype(Found::value) operator()(std::string& (*)(Draft&)) const { return text; }
  decltype(Found::value) operator()(FileCount& (*)(Draft&)) const {
    const auto number = whole_text_as<std::int64_t>(text);
    return number ? decltype(Found::value)(*number) : text;
  }
  decltype(Found::value) operator()(ChoiceRef (*)(Draft&)) const { return text; }
};

struct Allowed {
  const Key& key;

  std::string operator()(double& (*)(Draft&)) const {
    if (key.rule == Rule::any_sign)
      return fmt::format("a number from {0:.0f} to {1:.0f}", -kMostSeconds, kMostSeconds);
    return fmt::format("a number {} 0 and at most {:.0f}",
                       is_above_zero(key.rule) ? "above" : "of at least", most_number(key.rule));
  }
  std::string integer() const {
    return fmt::format("an integer from {} to {}", key.least, key.most);
  }
  std::string operator()(std::uint32_t& (*)(Draft&)) const { return integer(); }
  std::string operator()(std::uint64_t& (*)(Draft&)) const { return integer(); }
  std::string operator()(std::optional<std::uint32_t>& (*)(Draft&)) const { return integer(); }
  std::string operator()(std::string& (*)(Draft&)) const {
    if (key.rule == Rule::not_empty) return "a string that is not empty";
    return key.rule == Rule::node_name ? "a string that can name a directory" : "a string";
  }
  std::string operator()(std::vector<std::string>& (*)(Draft&)) const {
    if (key.rule == Rule::signal)
      return fmt::format("a list of different ones of {}", fmt::join(kSignals, ", "));
    if (key.rule == Rule::words) return "a list of different words";
    if (key.rule == Rule::absolute) return "a list of different paths that begin with /";
    return "a list of different strings that can name directories";
  }
  std::string operator()(FileCount& (*)(Draft&)) const {
    return "\"rank\", \"auto\" or " + integer();
  }
  std::string operator()(ChoiceRef (*)(Draft&)) const {
    std::string text;
    for (std::size_t i = 0; i < key.words.size(); ++i) {
      text += (i == 0 ? "" : i + 1 == key.words.size() ? " or " : ", ") + quoted(key.words[i]);
    }
    return text;
  }
};

}  // namespace

std::string Key::allowed() const { return std::visit(Allowed{*this}, place); }

Found found_in_text(const Key& key, const std::string& text) {
  return {std::visit(ReadText{text}, key.place), quoted(text)};
}

bool assign(const Key& key, const Found& found, Draft& draft) {
  return std::visit([&](auto place_of) { return Assign{key, found}(place_of(draft)); }, key.place);
}

}  // namespace diapause::config
