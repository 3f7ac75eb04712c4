// Makes sockets of a stored job in this process, one by one.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "base/log.hpp"
#include "base/result.hpp"
#include "process/state.hpp"

namespace diapause::process {

// Has a socket, which is closed unless it is taken.
class Owned {
 public:
  explicit Owned(int number = -1) : number_(number) {}
  Owned(Owned&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Owned() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  int take() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// Changes the current directory for its lifetime, unless the given one is empty. Relative paths of
// sockets start from the directory of the process that had them.
class Visit {
 public:
  explicit Visit(const std::string& directory);
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit();

 private:
  int before_ = -1;
};

inline const sockaddr* address_in(const ByteVector& bytes) {
  return reinterpret_cast<const sockaddr*>(bytes.data());
}
inline socklen_t length_of(const ByteVector& bytes) { return static_cast<socklen_t>(bytes.size()); }
// Returns the error of a socket that has this address. It says that another program has the address
// if `error` does.
Error socket_error(const ByteVector& address, int error);

// Returns a socket of the same kind, with the options that come before the address.
Result<Owned> make_socket(const Socket& from);
// Closed connections within this machine that hold the port are ended.
Status bind_to(int socket, const Socket& from, const ByteVector& address);
// Returns a socket that is not connected to another one of the job. If only closed connections hold
// its port, the call waits until the kernel has forgotten them, for about a minute at most, and
// says so in the log.
Result<Owned> open_single(const Socket& from, const LogSink& log);
bool is_bound(const Socket& one);

enum class Buffer { of_sender, of_receiver };
// Enlarges a buffer of a socket by `bytes`. The program has not asked for that, so the kernel goes
// on to change the size by itself if it did.
void widen(int socket, Buffer which, std::size_t bytes);

}  // namespace diapause::process
