// Has a UNIX socket by which processes of one user on one machine exchange lines: a request and an
// answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::sys {

class LocalConnection {
 public:
  LocalConnection(LocalConnection&& other) noexcept;
  LocalConnection& operator=(LocalConnection&&) = delete;
  ~LocalConnection();

  // Returns a line without its end. Fails with Code::timeout if none arrives within `most_s`
  // seconds. Lines are at most 64 KiB long.
  Result<std::string> receive(double most_s);
  Status send(const std::string& line);
  // Returns the id of the process that has made the connection, or 0 if this process knows none.
  std::int64_t peer() const;

 private:
  friend class LocalSocket;
  friend Result<LocalConnection> connect_local(const Directory& directory, const std::string& name);
  explicit LocalConnection(int fd) : fd_(fd) {}
  int fd_;
};

class LocalSocket {
 public:
  // Makes `name` in a private directory, with mode 0600. An existing one is replaced.
  static Result<LocalSocket> listen(const Directory& directory, const std::string& name);
  LocalSocket(LocalSocket&& other) noexcept;
  LocalSocket& operator=(LocalSocket&&) = delete;
  ~LocalSocket();  // also removes the name

  int fd() const { return fd_; }
  // Accepts a waiting connection. Returns nullopt if there is none, or if it is from another user.
  std::optional<LocalConnection> accept() const;

 private:
  LocalSocket(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
};

// Returns Code::not_found if nobody listens there. The errno is ECONNREFUSED if somebody did, and
// has ended without closing it.
Result<LocalConnection> connect_local(const Directory& directory, const std::string& name);

}  // namespace diapause::sys
