// `diapause inject`: damages a file on purpose.
#include <fmt/core.h>

#include <array>
#include <charconv>

#include "cli/collection.hpp"
#include "cli/verbs.hpp"
#include "sys/path.hpp"

namespace diapause::cli {
namespace {

Result<ByteVector> bytes_of_digits(const std::string& digits) {
  ByteVector bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    std::uint8_t value = 0;
    const auto [end, error] = std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
    if (error != std::errc{} || end != digits.data() + i + 2) break;
    bytes.push_back(std::byte{value});
  }
  if (bytes.empty() || 2 * bytes.size() != digits.size()) {
    return fail(
        Code::argument,
        fmt::format("--overwrite {}: two hexadecimal digits for each byte are wanted", digits));
  }
  return bytes;
}

Status check_below_a_tier(const Places& places, const std::string& path) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<std::string> roots, tier_roots(places));
  for (const std::string& root : roots) {
    if (root.empty()) continue;
    const auto canonical = sys::canonical_path(root);
    if (canonical && path.starts_with(*canonical + "/")) return {};
  }
  return fail(Code::denied,
              fmt::format("{} is not below any of the tiers; if it is meant, say --force", path));
}

Status check_inside(const sys::File& file, std::uint64_t offset, std::uint64_t length) {
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, file.size());
  if (offset <= size && length <= size - offset) return {};
  return fail(Code::argument, fmt::format("{} has {} bytes, and not {} at offset {}", file.path(),
                                          size, length, offset));
}

Result<std::string> flip(const sys::File& file, std::uint64_t offset, std::uint32_t bit) {
  DIAPAUSE_TRY(check_inside(file, offset, 1));
  std::array<std::byte, 1> byte{};
  DIAPAUSE_TRY(file.read_exact(byte, offset));
  const std::byte before = byte[0];
  byte[0] ^= std::byte{1} << bit;
  DIAPAUSE_TRY(file.write_all(byte, offset));
  return fmt::format("flipped bit {} of byte {} of {}: {:#04x} is now {:#04x}", bit, offset,
                     file.path(), std::to_integer<int>(before), std::to_integer<int>(byte[0]));
}

Result<std::string> overwrite(const sys::File& file, std::uint64_t offset,
                              const std::string& digits) {
  DIAPAUSE_TRY_ASSIGN(const ByteVector bytes, bytes_of_digits(digits));
  DIAPAUSE_TRY(check_inside(file, offset, bytes.size()));
  DIAPAUSE_TRY(file.write_all(bytes, offset));
  return fmt::format("overwrote {} bytes at {} of {}", bytes.size(), offset, file.path());
}

Result<std::string> truncate(const sys::File& file, std::uint64_t length) {
  DIAPAUSE_TRY(check_inside(file, 0, length));
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, file.size());
  DIAPAUSE_TRY(file.truncate(length));
  return fmt::format("cut {} from {} to {} bytes", file.path(), size, length);
}

Result<std::string> damage(const InjectArguments& arguments) {
  DIAPAUSE_TRY_ASSIGN(const std::string path, sys::canonical_path(arguments.file));
  if (!arguments.force) DIAPAUSE_TRY(check_below_a_tier(arguments.places, path));
  DIAPAUSE_TRY_ASSIGN(const sys::File file, sys::open_existing_file(sys::real_kernel(), path));
  std::string done;
  if (arguments.truncate) {
    DIAPAUSE_TRY_ASSIGN(done, truncate(file, *arguments.truncate));
  } else if (arguments.overwrite) {
    DIAPAUSE_TRY_ASSIGN(done, overwrite(file, arguments.offset.value_or(0), *arguments.overwrite));
  } else {
    DIAPAUSE_TRY_ASSIGN(done, flip(file, *arguments.offset, *arguments.bit));
  }
  DIAPAUSE_TRY(file.sync());
  return done;
}

}  // namespace

int inject(const InjectArguments& arguments) {
  const auto done = damage(arguments);
  if (!done) return complain(done.error());
  fmt::print("{}\n", *done);
  return kDone;
}

}  // namespace diapause::cli
