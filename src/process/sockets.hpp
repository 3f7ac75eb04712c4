// Has functions on sockets of this process that dump and restore share.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "process/state.hpp"

namespace diapause::process {

// Returns the name of an address in messages: "the port 127.0.0.1:80", "the socket /run/x", "the
// socket @x".
std::string text_of_address(const ByteVector& address);
// Returns an internet address without its port ("127.0.0.1"), and nothing for another family.
std::string host_of_address(const ByteVector& address);
// Returns the port of an internet address, and 0 for any other.
std::uint16_t port_of(const ByteVector& address);
// Returns an internet address with another port.
ByteVector with_port(const ByteVector& address, std::uint16_t port);
// Returns the address in its plainest family: an IPv4 address inside of IPv6 becomes one of IPv4.
ByteVector plain_address(const ByteVector& address);
// Returns an internet address as a socket of that family takes it.
ByteVector address_for_family(const ByteVector& plain, std::uint32_t family);
// Returns whether a socket of this machine can have the address.
bool is_own_address(const ByteVector& address);
// Returns an address of a socket, and nothing if it has none. `ask` is ::getsockname or
// ::getpeername.
using AskAddress = int(int, sockaddr*, socklen_t*);
ByteVector address_by(int socket, AskAddress& ask);
// Returns whether the other end of a socket is on another node of the job. `index` is that in
// Job::sockets.
bool is_far(const Job& job, std::uint32_t index);
// Returns the path of an AF_UNIX address. It is empty if the socket is not in the file system.
std::string path_of_address(const ByteVector& address);

// Returns the options that a restart restores, as the socket has them.
std::vector<SocketOption> options_of(int socket);
// Sets the options that differ from those of the socket. Returns Code::corrupt for an option that
// is never restored.
enum class OptionTime { before_binding, at_the_end, when_filled };
Status set_options(int socket, const std::vector<SocketOption>& options, OptionTime time);

// Describes a UNIX socket. The kernel tells this only of all sockets at once.
struct UnixSocket {
  std::uint32_t peer = 0;        // inode of the other end; 0: none, or one that nobody has open
  std::uint32_t waiting = 0;     // for a listening socket: connections that were not accepted yet
  std::uint32_t backlog = 0;     // for a listening socket
  std::uint64_t file_inode = 0;  // the lower half of its path's inode, as far as the kernel tells
  bool is_listening = false, is_connected = false;
};
// Returns all UNIX sockets of the machine by their inodes.
Result<std::map<std::uint32_t, UnixSocket>> list_unix_sockets();

}  // namespace diapause::process
