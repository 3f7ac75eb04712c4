// A socket of the UNIX family by which processes of one user on one machine talk: a line there, a line back.
#pragma once

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

  // Without the line's end. Code::timeout if nothing comes in `most_s`; lines are at most 64 KiB long.
  Result<std::string> receive(double most_s);
  Status send(const std::string& line);

 private:
  friend class LocalSocket;
  friend Result<LocalConnection> connect_local(const Directory& directory, const std::string& name);
  explicit LocalConnection(int fd) : fd_(fd) {}
  int fd_;
};

class LocalSocket {
 public:
  // Makes `name` in a private directory, with mode 0600; one that is there already is replaced.
  static Result<LocalSocket> listen(const Directory& directory, const std::string& name);
  LocalSocket(LocalSocket&& other) noexcept;
  LocalSocket& operator=(LocalSocket&&) = delete;
  ~LocalSocket();  // and its name goes

  int fd() const { return fd_; }
  // Somebody who waits; nullopt if nobody does, or if it is another user.
  std::optional<LocalConnection> accept() const;

 private:
  LocalSocket(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
};

// Code::not_found if nobody listens there.
Result<LocalConnection> connect_local(const Directory& directory, const std::string& name);

}  // namespace diapause::sys
