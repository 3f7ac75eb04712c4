// Sockets that this process has open, asked and set: what dump and restore share.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "process/state.hpp"

namespace diapause::process {

// "the port 127.0.0.1:80", "the socket /run/x", "the socket @x": an address as it is called in messages.
std::string text_of_address(const ByteVector& address);
// "127.0.0.1": of the internet families, without the port; empty: of another family.
std::string host_of_address(const ByteVector& address);
// Of the internet families; 0: none.
std::uint16_t port_of(const ByteVector& address);
// The same address by one family: IPv4 inside of IPv6 is IPv4.
ByteVector plain_address(const ByteVector& address);
// An internet address as a socket of that family takes it.
ByteVector address_for_family(const ByteVector& plain, std::uint32_t family);
// Of AF_UNIX; empty: none in the file system.
std::string path_of_address(const ByteVector& address);

// The options that are restored, as the socket has them.
std::vector<SocketOption> options_of(int socket);
// Sets those that differ from what the socket has. Code::corrupt for one that is not restored.
enum class OptionTime { before_binding, at_the_end };
Status set_options(int socket, const std::vector<SocketOption>& options, OptionTime time);

// What the kernel tells of a UNIX socket only to those who ask for all of them.
struct UnixSocket {
  std::uint32_t peer = 0;        // inode of the other end; 0: none, or one that nobody has open
  std::uint32_t waiting = 0;     // of one that listens: connections that were not accepted yet
  std::uint32_t backlog = 0;     // of one that listens
  std::uint64_t file_inode = 0;  // of its path, as far as the kernel tells: the lower half
  bool is_listening = false, is_connected = false;
};
// By the inode of the socket.
Result<std::map<std::uint32_t, UnixSocket>> list_unix_sockets();

}  // namespace diapause::process
