// Makes connections by TCP to processes of other machines. Nothing here blocks longer than it was
// told.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause::sys {

// This is a connection without delays for small messages. The kernel looks after its other end:
// that a machine is gone shows after half a minute.
class Stream {
 public:
  // `address` is a number, as own_addresses() and peer_address() give them. Fails with
  // Code::timeout after `most_s`.
  static Result<Stream> connect(const std::string& address, std::uint16_t port, double most_s);
  Stream(Stream&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Stream();

  int fd() const { return fd_; }
  std::string peer_address() const;
  // These send and receive what is possible now, without waiting, and return 0 if that is nothing.
  // Code::io says that the connection is over.
  Result<std::size_t> send_some(ByteView data);
  Result<std::size_t> receive_some(MutableBytes data);
  // These send and receive all of it, and fail with Code::timeout after `most_s`.
  Status send_all(ByteView data, double most_s);
  Status receive_all(MutableBytes data, double most_s);

 private:
  friend class Listener;
  explicit Stream(int fd);
  int fd_;
};

// Accepts connections at a port that the kernel chooses.
class Listener {
 public:
  static Result<Listener> open();
  // Takes a socket that listens already. The object closes it.
  static Listener adopt(int fd) { return Listener(fd, 0); }
  Listener(Listener&& other) noexcept : fd_(std::exchange(other.fd_, -1)), port_(other.port_) {}
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int fd() const { return fd_; }
  std::uint16_t port() const { return port_; }
  // Fails with Code::timeout if none comes within `most_s`.
  Result<Stream> accept(double most_s);

 private:
  Listener(int fd, std::uint16_t port) : fd_(fd), port_(port) {}
  int fd_;
  std::uint16_t port_;
};

// This is a set of descriptors that are waited for together. Its own descriptor is readable if one
// of them is.
class WaitSet {
 public:
  static Result<WaitSet> open();
  WaitSet(WaitSet&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  WaitSet& operator=(WaitSet&&) = delete;
  ~WaitSet();

  enum class Wants { reading, reading_and_writing };
  int fd() const { return fd_; }
  Status add(int fd, std::uint32_t tag);
  void change(int fd, std::uint32_t tag, Wants wants);
  void remove(int fd);
  // Returns the tags of those that something can be done with. The result is empty after `most_ms`
  // (-1 for never).
  std::vector<std::uint32_t> wait(int most_ms);

 private:
  explicit WaitSet(int fd) : fd_(fd) {}
  int fd_;
};

// Returns the addresses of this machine, as numbers. Those that others cannot reach are left out.
std::vector<std::string> own_addresses();

}  // namespace diapause::sys
