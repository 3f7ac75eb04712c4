// Text for people: quantities, lists, tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/manifest.hpp"

namespace diapause::cli {

std::string bytes_text(std::uint64_t bytes);   // "1.5 MiB"
std::string time_text(std::uint64_t unix_ns);  // local time, "2026-03-04 15:06:07"
// "284 +- 2 J": two digits of what it may be off, or one where the first is more than 3, and of the value as many. What
// may be off by nothing has two decimals.
std::string value_text(double value, double off, const char* unit);
// "280 J": so many digits and no more.
std::string rounded_text(double value, int digits, const char* unit);
std::string levels_text(const format::Manifest& manifest);  // "1 2 3"
// Numbers in rising order: "0-3, 7".
std::string numbers_text(const std::vector<std::uint32_t>& numbers);
// What a file may hold and a terminal must not see: control characters become '?'.
std::string printable(std::string text);
std::string printable_lines(std::string text);  // the same, where line ends are meant

enum class Align { left, right };

// Columns as wide as their widest cell, two spaces between.
class Table {
 public:
  struct Column {
    std::string head;
    Align align = Align::left;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  std::string text(const std::string& indent = "") const;  // with a line end after each line

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace diapause::cli
