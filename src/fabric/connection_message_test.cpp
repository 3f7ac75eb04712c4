#include "fabric/connection_message.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace diapause::fabric {
namespace {

using Bytes = std::vector<std::uint8_t>;

ConnectionMessage request() {
  ConnectionMessage made;
  made.kind = MessageKind::request;
  made.pair = 0xabcdef;
  made.pair_key = 0x01234567;
  made.first_packet = 0x123456;
  made.pair_kind = 2;
  made.mtu = 3;
  made.lid = 77;
  made.gid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  made.responder_resources = 1;
  made.initiator_depth = 2;
  made.flow_control = 1;
  made.retry_count = 7;
  made.rnr_retry_count = 6;
  made.has_shared_queue = 1;
  made.from = {4, {10, 77, 0, 1}, 4711};
  made.to = {6, {0xfe, 0x80}, 7471};
  made.data = {42, 0, 255};
  return made;
}

TEST(ConnectionMessage, ComesAsItWasSent) {
  ConnectionMessage hello;
  hello.space = 0x0106;
  hello.port = 7471;
  ConnectionMessage full = request();
  full.data.assign(kMostPrivateData, 9);
  Bytes received;
  for (const ConnectionMessage& sent : {hello, request(), full}) {
    const Bytes bytes = encode(sent);
    received.insert(received.end(), bytes.begin(), bytes.end());
  }
  for (const ConnectionMessage& sent : {hello, request(), full}) {
    const auto message = take_message(received);
    ASSERT_TRUE(message);
    ASSERT_TRUE(message->has_value());
    EXPECT_EQ(**message, sent);
  }
  EXPECT_TRUE(received.empty());
}

TEST(ConnectionMessage, CutsDataThatAreTooLong) {
  ConnectionMessage long_one = request();
  long_one.data.assign(300, 1);
  Bytes bytes = encode(long_one);
  EXPECT_EQ((*take_message(bytes))->data.size(), kMostPrivateData);
}

TEST(ConnectionMessage, WaitsForTheRestOfOneThatHasBegun) {
  const Bytes whole = encode(request());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const auto message = take_message(part);
    ASSERT_TRUE(message) << length;
    EXPECT_FALSE(message->has_value()) << length;
    EXPECT_EQ(part.size(), length);
  }
}

TEST(ConnectionMessage, RefusesWhatIsNone) {
  const auto changed = [](std::size_t at, std::uint8_t value) {
    Bytes bytes = encode(request());
    bytes[at] = value;
    return bytes;
  };
  constexpr std::size_t kKind = 4, kNothing = 5, kLength = 6, kPairKind = 30, kMtu = 31,
                        kDataLength = 56, kFamily = 57;
  for (Bytes bytes :
       {Bytes{'S', 'S', 'H', '-'}, Bytes{'G'}, changed(0, 0), changed(kKind, 0), changed(kKind, 7),
        changed(kNothing, 1), changed(kLength, 1), changed(kLength + 1, 2), changed(kPairKind, 9),
        changed(kMtu, 0), changed(kMtu, 6), changed(kDataLength, 2), changed(kDataLength, 255),
        changed(kFamily, 5)}) {
    const auto message = take_message(bytes);
    ASSERT_FALSE(message);
    EXPECT_EQ(message.error().code, Code::corrupt);
  }
  ConnectionMessage wrong = request();
  wrong.pair = 1U << 24;
  Bytes bytes = encode(wrong);
  EXPECT_FALSE(take_message(bytes));
}

// Whatever comes, it ends, and reads nothing beyond what there is.
TEST(ConnectionMessage, SurvivesWhateverComes) {
  std::mt19937 random(1);
  std::size_t taken = 0;
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = encode(request());
    for (std::uint32_t changes = random() % 4; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    bytes.resize(random() % 2 == 0 ? bytes.size() : random() % 400);
    while (!bytes.empty()) {
      const auto message = take_message(bytes);
      if (!message || !message->has_value()) break;
      ++taken;
    }
  }
  EXPECT_GT(taken, 1000U);
}

TEST(TcpPort, IsAboveThoseOfTheKernelAndAnotherForEachSpace) {
  std::set<std::uint16_t> ports;
  for (std::uint16_t port = 7000; port < 9000; ++port) {
    for (const std::uint32_t space : {0x0106U, 0x0111U}) {
      const std::uint16_t tcp = tcp_port_of(space, port);
      EXPECT_GE(tcp, 61'000);
      ports.insert(tcp);
    }
  }
  EXPECT_EQ(ports.size(), 4000U);
  EXPECT_EQ(tcp_port_of(0x0106, 0), 61'000);
  EXPECT_GE(tcp_port_of(0x0111, 65'535), 61'000);
}

}  // namespace
}  // namespace diapause::fabric
