// Text for people: quantities, lists, tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/manifest.hpp"

namespace diapause::cli {

// What plans and simulations say of their joules.
inline constexpr const char* kJoulesAre =
    "joules follow from powers that were given or assumed, so they have no bound";

std::string bytes_text(std::uint64_t bytes);     // like "1.5 MiB"
std::string bytes_or_dash(std::uint64_t bytes);  // the same, and "-" for none
std::string time_text(std::uint64_t unix_ns);    // the local time, like "2026-03-04 15:06:07"
// Returns text such as "284 +- 2 J". The uncertainty is shown with two digits, or one if the first
// is above 3, and the value to the same place. A value without uncertainty has two decimals.
std::string value_text(double value, double off, const char* unit);
// Returns the same without the uncertainty, such as "284 J".
std::string to_the_digits_of(double value, double off, const char* unit);
// Returns text such as "280 J", with so many digits.
std::string rounded_text(double value, int digits, const char* unit);
std::string levels_text(const format::Manifest& manifest);  // like "1 2 3"
// Returns ascending numbers as text such as "0-3, 7".
std::string numbers_text(const std::vector<std::uint32_t>& numbers);
// Replaces control characters, which a file may hold and a terminal must not see, by '?'.
std::string printable(std::string text);
std::string printable_lines(std::string text);  // the same for text that may have several lines

enum class Align { left, right };

// A table whose columns are as wide as their widest cell, with two spaces between them.
class Table {
 public:
  struct Column {
    std::string head;
    Align align = Align::left;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  std::string text(const std::string& indent = "") const;  // each line has a line end

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace diapause::cli
