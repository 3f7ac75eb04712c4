// Writes JSON as text, without a tree of values in between, for lines that every checkpoint writes.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

namespace diapause::engine {

// An object whose members are written one after the other. Names of members are plain ASCII without
// quotes and are written as they are; a value in an array has an empty name.
class JsonText {
 public:
  void open_object(std::string_view name) { open(name, '{', '}'); }
  void open_array(std::string_view name) { open(name, '[', ']'); }
  // Closes what was opened last.
  void close();

  // A number that is not finite is written as null, and a floating-point number never as an
  // integer.
  template <class Number>
  requires std::integral<Number> || std::floating_point<Number>
  void put(std::string_view name, Number number) {
    static_assert(!std::is_same_v<Number, bool>);
    begin_value(name);
    if (!std::isfinite(static_cast<double>(number))) {
      text_ += "null";
      return;
    }
    std::array<char, 32> digits;
    char* const begin = digits.data();
    char* const end = std::to_chars(begin, begin + digits.size(), number).ptr;
    text_.append(begin, end);
    if constexpr (std::floating_point<Number>) {
      if (std::string_view(begin, end).find_first_of(".e") == std::string_view::npos) text_ += ".0";
    }
  }
  // The text need not be UTF-8: what is not is replaced.
  void put(std::string_view name, std::string_view text);
  void put_null(std::string_view name);

  // Returns the object, in which nothing may be open.
  std::string take();

 private:
  void open(std::string_view name, char begin, char end);
  void begin_value(std::string_view name);

  std::string text_ = "{";
  std::string ends_;  // of what is open
};

}  // namespace diapause::engine
