#include "hex_dump.hpp"

#include <algorithm>
#include <regex>
#include <sstream>

namespace diapause::golden {
namespace {

void parse_line(const std::string& line, ByteVector& bytes) {
  static const std::regex kLine("([0-9a-f]{8})(?:  ((?:[0-9a-f]{2} ?)+)(?: .*)?)?");
  std::smatch match;
  if (!std::regex_match(line, match, kLine)) return;
  std::size_t at = std::stoul(match[1], nullptr, 16);
  std::istringstream numbers(match[2]);
  bytes.resize(std::max(bytes.size(), at));
  for (std::string digits; numbers >> digits; ++at) {
    bytes.resize(std::max(bytes.size(), at + 1));
    bytes[at] = static_cast<std::byte>(std::stoul(digits, nullptr, 16));
  }
}

}  // namespace

ByteVector parse_hex_dump(const std::string& markdown) {
  ByteVector bytes;
  std::istringstream lines(markdown);
  bool in_code = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      in_code = !in_code;
    } else if (in_code) {
      parse_line(line, bytes);
    }
  }
  return bytes;
}

}  // namespace diapause::golden
