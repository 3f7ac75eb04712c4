// What the two ends of a connection tell each other while it is made, in place of the messages of
// InfiniBand's connection managers. They go over a TCP connection, so whoever reaches the port may
// have written what is read here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "fabric/control.hpp"

namespace diapause::fabric {

enum class MessageKind : std::uint8_t {
  hello = 1,  // of the end that listens, first of all: which port of rdma_cm this is
  request,    // of the end that connects
  reply,      // the request was accepted
  ready,      // the end that connects can receive, too
  reject,     // the request or the reply was not accepted
  goodbye,    // the connection is over
};

// An internet address with its port, in host order.
struct Endpoint {
  std::uint8_t family = 0;  // 4 or 6; 0: none
  std::array<std::uint8_t, 16> host{};
  std::uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
};

// One message. Which fields have a meaning depends on its kind; the others are zero.
struct ConnectionMessage {
  MessageKind kind = MessageKind::hello;
  std::uint32_t space = 0;   // hello: the port space
  std::uint16_t port = 0;    // hello: the port
  std::uint32_t status = 0;  // reject: the reason, by the numbers of InfiniBand
  // The rest is of requests and replies. It is about the sender.
  std::uint32_t pair = 0, pair_key = 0, first_packet = 0;
  std::uint8_t pair_kind = 0;  // as in ibv_qp_type
  std::uint8_t mtu = 0;        // as in ibv_mtu
  std::uint16_t lid = 0;
  Gid gid{};
  std::uint8_t responder_resources = 0, initiator_depth = 0, flow_control = 0, retry_count = 0,
               rnr_retry_count = 0, has_shared_queue = 0;
  Endpoint from, to;               // request: by the names that the program gave
  std::vector<std::uint8_t> data;  // the program's own; of rejects, too
  bool operator==(const ConnectionMessage&) const = default;
};

inline constexpr std::size_t kMostPrivateData = 255;

// Data beyond the most that there can be are cut.
std::vector<std::uint8_t> encode(const ConnectionMessage& message);

// Takes the first message from the beginning of what has been received. There is none yet if
// nothing is returned. Fails with Code::corrupt if no message can begin so.
Result<std::optional<ConnectionMessage>> take_message(std::vector<std::uint8_t>& received);

// The TCP port at which a port of rdma_cm is reached. The two kinds of ports are not the same, and
// programs use both by one number. It is above those that the kernel gives by itself.
std::uint16_t tcp_port_of(std::uint32_t space, std::uint16_t port);

}  // namespace diapause::fabric
