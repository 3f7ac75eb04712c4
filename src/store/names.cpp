#include "store/names.hpp"

#include <fmt/core.h>

#include <charconv>

#include "format/checksum.hpp"

namespace diapause::store {
namespace {

constexpr std::size_t kKeyDigits = 8;

// Takes a decimal number without leading zeros off the front of `text`.
template <class Number>
bool take_number(std::string_view& text, Number& out) {
  if (text.empty() || (text[0] == '0' && text.size() > 1 && text[1] >= '0' && text[1] <= '9'))
    return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool parse_hex(std::string_view text, format::CommitId& out) {
  if (text.size() != 2 * out.bytes.size()) return false;
  for (std::size_t i = 0; i < out.bytes.size(); ++i) {
    const std::string_view digits = text.substr(2 * i, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + 2, out.bytes[i], 16);
    if (error != std::errc{} || end != digits.data() + 2) return false;
  }
  return out.hex() == text;  // lower case only: one name for one version
}

}  // namespace

std::string version_directory(const format::VersionId& version) {
  return fmt::format("v{}-i{}-{}", version.number, version.incarnation, version.commit.hex());
}

std::optional<format::VersionId> parse_version_directory(std::string_view name) {
  format::VersionId id;
  if (take(name, "v") && take_number(name, id.number) && take(name, "-i") &&
      take_number(name, id.incarnation) && take(name, "-") && parse_hex(name, id.commit)) {
    return id;
  }
  return std::nullopt;
}

std::string image_name(std::uint32_t rank) { return fmt::format("r{}.img", rank); }

std::optional<std::uint32_t> parse_image_name(std::string_view name) {
  std::uint32_t rank = 0;
  if (take(name, "r") && take_number(name, rank) && name == ".img") return rank;
  return std::nullopt;
}

std::string parity_name(std::uint32_t group, std::uint32_t member) {
  return fmt::format("g{}-p{}.img", group, member);
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> parse_parity_name(std::string_view name) {
  std::uint32_t group = 0;
  std::uint32_t member = 0;
  if (take(name, "g") && take_number(name, group) && take(name, "-p") &&
      take_number(name, member) && name == ".img") {
    return std::pair(group, member);
  }
  return std::nullopt;
}

std::string shared_name(std::uint32_t number) { return fmt::format("a{}.img", number); }

std::optional<std::uint32_t> parse_shared_name(std::string_view name) {
  std::uint32_t number = 0;
  if (take(name, "a") && take_number(name, number) && name == ".img") return number;
  return std::nullopt;
}

std::string returned_name(const std::string& lent_name) { return lent_name + ".free"; }

std::string job_key(std::string_view name, const format::JobId& id) {
  return fmt::format("{}-{}", name, id.hex().substr(0, kKeyDigits));
}

std::string old_job_key(std::string_view name, std::string_view absolute_global_path) {
  const std::uint64_t hash = format::checksum64(as_byte_view(absolute_global_path));
  return fmt::format("{}-{:08x}", name, hash & 0xffffffffu);
}

bool is_job_key(std::string_view key) {
  if (key.size() < kKeyDigits + 2 || key[key.size() - kKeyDigits - 1] != '-') return false;
  return key.substr(key.size() - kKeyDigits).find_first_not_of("0123456789abcdef") == key.npos;
}

std::string name_in_key(std::string_view key) {
  return std::string(key.substr(0, key.size() - kKeyDigits - 1));
}

bool is_key_of(std::string_view key, std::string_view job) {
  return is_job_key(key) && key.substr(0, key.size() - kKeyDigits - 1) == job;
}

}  // namespace diapause::store
