#include "fabric/connection_message.hpp"

#include <algorithm>

namespace diapause::fabric {
namespace {

constexpr std::uint32_t kMark = 0x316d6372;  // "rcm1"; another format gets another one
constexpr std::size_t kHeaderBytes = 8;
constexpr std::size_t kEndpointBytes = 19;
constexpr std::size_t kFixedBytes = 49 + 2 * kEndpointBytes;
constexpr std::uint8_t kLastMtu = 5, kPairKindRc = 2, kPairKindUc = 3, kPairKindUd = 4;

class Writer {
 public:
  template <class T>
  void number(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i)
      bytes.push_back(static_cast<std::uint8_t>(std::uint64_t{value} >> (8 * i)));
  }
  void all(std::span<const std::uint8_t> from) {
    bytes.insert(bytes.end(), from.begin(), from.end());
  }
  void endpoint(const Endpoint& one) {
    number(one.family);
    all(one.host);
    number(one.port);
  }
  std::vector<std::uint8_t> bytes;
};

// Its user has made sure that there are as many bytes.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  template <class T>
  void number(T& value) {
    std::uint64_t read = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) read |= std::uint64_t{bytes_[i]} << (8 * i);
    value = static_cast<T>(read);
    bytes_ = bytes_.subspan(sizeof value);
  }
  void all(std::span<std::uint8_t> to) {
    std::copy_n(bytes_.begin(), to.size(), to.begin());
    bytes_ = bytes_.subspan(to.size());
  }
  void endpoint(Endpoint& one) {
    number(one.family);
    all(one.host);
    number(one.port);
  }
  std::span<const std::uint8_t> rest() const { return bytes_; }

 private:
  std::span<const std::uint8_t> bytes_;
};

// The fields between the header and the program's own data, for a Writer or a Reader.
template <class Side, class Message, class Length>
void go_through(Side& side, Message& message, Length& data_length) {
  side.number(message.space);
  side.number(message.port);
  side.number(message.status);
  side.number(message.pair);
  side.number(message.pair_key);
  side.number(message.first_packet);
  side.number(message.pair_kind);
  side.number(message.mtu);
  side.number(message.lid);
  side.all(message.gid);
  side.number(message.responder_resources);
  side.number(message.initiator_depth);
  side.number(message.flow_control);
  side.number(message.retry_count);
  side.number(message.rnr_retry_count);
  side.number(message.has_shared_queue);
  side.number(data_length);
  side.endpoint(message.from);
  side.endpoint(message.to);
}

bool is_pair_kind(std::uint8_t kind) {
  return kind == kPairKindRc || kind == kPairKindUc || kind == kPairKindUd;
}

bool is_endpoint(const Endpoint& one) { return one.family == 4 || one.family == 6; }

// Returns whether the fields can be what an end of ours has written.
bool is_sound(const ConnectionMessage& one) {
  const bool describes_pair = one.kind == MessageKind::request || one.kind == MessageKind::reply;
  if (!describes_pair) return true;
  const bool is_pair = is_pair_kind(one.pair_kind) && one.mtu >= 1 && one.mtu <= kLastMtu &&
                       one.pair < 1U << 24 && one.first_packet < 1U << 24;
  const bool are_named = is_endpoint(one.from) && is_endpoint(one.to);
  return is_pair && (one.kind == MessageKind::reply || are_named);
}

}  // namespace

std::vector<std::uint8_t> encode(const ConnectionMessage& message) {
  const std::size_t length = std::min(message.data.size(), kMostPrivateData);
  Writer writer;
  writer.number(kMark);
  writer.number(static_cast<std::uint8_t>(message.kind));
  writer.number(std::uint8_t{0});
  writer.number(static_cast<std::uint16_t>(kFixedBytes + length));
  const auto data_length = static_cast<std::uint8_t>(length);
  go_through(writer, message, data_length);
  writer.all(std::span(message.data).first(length));
  return writer.bytes;
}

Result<std::optional<ConnectionMessage>> take_message(std::vector<std::uint8_t>& received) {
  const auto wrong = [] {
    return fail(Code::corrupt, "the other end is no connection manager of Diapause");
  };
  Writer mark;
  mark.number(kMark);
  const std::size_t begun = std::min(received.size(), mark.bytes.size());
  if (!std::equal(mark.bytes.begin(), mark.bytes.begin() + static_cast<std::ptrdiff_t>(begun),
                  received.begin()))
    return wrong();
  if (received.size() < kHeaderBytes) return std::nullopt;
  Reader header(std::span<const std::uint8_t>(received).subspan(mark.bytes.size()));
  std::uint8_t kind = 0, nothing = 0;
  std::uint16_t length = 0;
  header.number(kind);
  header.number(nothing);
  header.number(length);
  const bool is_known = kind >= static_cast<std::uint8_t>(MessageKind::hello) &&
                        kind <= static_cast<std::uint8_t>(MessageKind::goodbye) && nothing == 0;
  if (!is_known || length < kFixedBytes || length > kFixedBytes + kMostPrivateData) return wrong();
  if (received.size() < kHeaderBytes + length) return std::nullopt;
  Reader reader(std::span<const std::uint8_t>(received).subspan(kHeaderBytes, length));
  ConnectionMessage message;
  message.kind = static_cast<MessageKind>(kind);
  std::uint8_t data_length = 0;
  go_through(reader, message, data_length);
  if (reader.rest().size() != data_length || !is_sound(message)) return wrong();
  message.data.assign(reader.rest().begin(), reader.rest().end());
  received.erase(received.begin(),
                 received.begin() + static_cast<std::ptrdiff_t>(kHeaderBytes + length));
  return message;
}

std::uint16_t tcp_port_of(std::uint32_t space, std::uint16_t port) {
  constexpr std::uint32_t kFirst = 61'000, kCount = 65'536 - kFirst;
  return static_cast<std::uint16_t>(kFirst + (port + space % 2 * (kCount / 2)) % kCount);
}

}  // namespace diapause::fabric
