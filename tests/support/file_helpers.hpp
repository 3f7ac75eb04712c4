// Short ways for tests to say what they do with files.
#pragma once

#include <fcntl.h>

#include <span>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "support/volatile_disk.hpp"
#include "sys/file.hpp"

namespace diapause::test_support {

constexpr int kNewFile = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;  // flags of open(2)

inline ByteView bytes(std::string_view text) { return as_byte_view(text); }

inline std::string content(const VolatileDisk& disk, const std::string& path) {
  const auto data = disk.read_content(path);
  return data ? std::string(reinterpret_cast<const char*>(data->data()), data->size())
              : "(missing)";
}

// The code of a failed result; a success is Code{0}, which is no code.
template <class T>
Code code_of(const Result<T>& result) {
  return result ? Code{0} : result.error().code;
}
template <class T>
std::string message_of(const Result<T>& result) {
  return result ? "success" : result.error().message;
}

inline Result<std::string> read_text(const sys::Directory& directory, std::string_view name) {
  DIAPAUSE_TRY_ASSIGN(const sys::File file, directory.open_file(name, sys::Access::read));
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, file.size());
  std::string text(size, '?');
  DIAPAUSE_TRY(file.read_exact(std::as_writable_bytes(std::span(text)), 0));
  return text;
}

inline Status write_text(const sys::Directory& directory, std::string_view name,
                         std::string_view text) {
  DIAPAUSE_TRY_ASSIGN(const sys::File file, directory.create_file(name));
  DIAPAUSE_TRY(file.write_all(bytes(text), 0));
  return file.sync();
}

// Publishes as all code here does: the file is first written whole under a temporary name.
inline Status publish(const sys::Directory& directory, std::string_view name,
                      std::string_view text) {
  const std::string temporary = std::string(name) + ".tmp";
  DIAPAUSE_TRY(write_text(directory, temporary, text));
  DIAPAUSE_TRY(directory.rename(temporary, directory, name));
  return directory.sync();
}

}  // namespace diapause::test_support
