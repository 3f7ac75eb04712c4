#include "process/relocation.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "process/sockets.hpp"

namespace diapause::process {
namespace {

using testing::HasSubstr;

ByteVector four(const char* host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, host, &address.sin_addr);
  const ByteView bytes = as_byte_view(address);
  return {bytes.begin(), bytes.end()};
}

ByteVector six(const char* host, std::uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  ::inet_pton(AF_INET6, host, &address.sin6_addr);
  const ByteView bytes = as_byte_view(address);
  return {bytes.begin(), bytes.end()};
}

// Two nodes that have changed places, and a third that has come elsewhere.
Relocation exchanged() {
  return Relocation({{{"192.0.2.1"}, {"192.0.2.2"}},
                     {{"192.0.2.2"}, {"192.0.2.1"}},
                     {{"192.0.2.3", "2001:db8::3"}, {"192.0.2.9", "2001:db8::9"}}},
                    0);
}

// Two nodes that are on one machine now.
Relocation together(std::uint32_t own) {
  Relocation made({{{"192.0.2.1"}, {"192.0.2.9"}}, {{"192.0.2.2"}, {"192.0.2.9"}}}, own);
  made.move_port({1, AF_INET, 1024, 40'001});
  return made;
}

TEST(Relocation, IsNotNeededWhereNodesHaveTheirAddresses) {
  EXPECT_FALSE(Relocation().is_needed());
  const Relocation same({{{"192.0.2.1"}, {"198.51.100.1", "192.0.2.1"}}}, 0);
  EXPECT_FALSE(same.is_needed());
  EXPECT_EQ(same.present(four("192.0.2.1", 80)), four("192.0.2.1", 80));
  EXPECT_EQ(same.known(four("192.0.2.1", 80), 0), four("192.0.2.1", 80));
}

TEST(Relocation, LeadsToWhereANodeIsNow) {
  const Relocation relocation = exchanged();
  EXPECT_TRUE(relocation.is_needed());
  EXPECT_EQ(relocation.present(four("192.0.2.1", 80)), four("192.0.2.2", 80));
  EXPECT_EQ(relocation.present(four("192.0.2.2", 80)), four("192.0.2.1", 80));
  EXPECT_EQ(relocation.present(six("::ffff:192.0.2.3", 80)), six("::ffff:192.0.2.9", 80));
  EXPECT_EQ(relocation.present(six("2001:db8::3", 80)), six("2001:db8::9", 80));
}

TEST(Relocation, TellsTheAddressThatIsKnown) {
  const Relocation relocation = exchanged();
  EXPECT_EQ(relocation.node_of(four("192.0.2.1", 80)), 1u);
  EXPECT_EQ(relocation.known(four("192.0.2.1", 80), 1), four("192.0.2.2", 80));
  EXPECT_EQ(relocation.known(six("2001:db8::9", 80), 2), six("2001:db8::3", 80));
}

TEST(Relocation, LeavesOtherAddressesAlone) {
  const Relocation relocation = exchanged();
  for (const ByteVector& one : {four("198.51.100.7", 80), four("127.0.0.1", 80),
                                four("0.0.0.0", 80), six("::1", 80), ByteVector()}) {
    EXPECT_EQ(relocation.present(one), one);
    EXPECT_EQ(relocation.known(one, 0), one);
  }
  EXPECT_EQ(relocation.node_of(four("198.51.100.7", 80)), kNone);
}

TEST(Relocation, TranslatesAPortThatHasChangedOnANode) {
  EXPECT_EQ(together(0).present(four("192.0.2.1", 1024)), four("192.0.2.9", 1024));
  EXPECT_EQ(together(0).present(four("192.0.2.2", 1024)), four("192.0.2.9", 40'001));
  EXPECT_EQ(together(1).present(four("127.0.0.1", 1024)), four("127.0.0.1", 40'001));
  EXPECT_EQ(together(0).present(four("127.0.0.1", 1024)), four("127.0.0.1", 1024));
  EXPECT_EQ(together(0).known(four("192.0.2.9", 40'001), 1), four("192.0.2.2", 1024));
  EXPECT_EQ(together(1).known(four("0.0.0.0", 40'001), 1), four("0.0.0.0", 1024));
  EXPECT_EQ(together(0).present_host(four("192.0.2.2", 1024)), four("192.0.2.9", 1024));
}

TEST(Relocation, SaysWhetherNodesShareAMachine) {
  EXPECT_TRUE(together(0).shares_machine());
  EXPECT_FALSE(exchanged().shares_machine());
}

TEST(Relocation, ChangesTheAddressesOfAJobAndChangesThemBack) {
  Job job;
  Socket own, far;
  own.local = four("192.0.2.1", 80);
  own.remote = four("192.0.2.1", 4000);
  far.local = four("192.0.2.1", 81);
  far.remote = four("192.0.2.2", 5000);
  job.sockets = {own, far};
  job.far_ends = {{1, 1, 0}};
  // The two nodes have the same address now, and the node of a far end is known.
  Relocation relocation({{{"192.0.2.1"}, {"192.0.2.9"}}, {{"192.0.2.2"}, {"192.0.2.9"}}}, 0);
  relocation.to_present(job);
  EXPECT_EQ(job.sockets[0].remote, four("192.0.2.9", 4000));
  EXPECT_EQ(job.sockets[1].remote, four("192.0.2.9", 5000));
  relocation.to_known(job);
  EXPECT_EQ(job.sockets[0].remote, own.remote);
  EXPECT_EQ(job.sockets[1].local, far.local);
  EXPECT_EQ(job.sockets[1].remote, far.remote);
}

TEST(Relocation, RefusesAJobWithASocketOfAKindOfAddressThatItsNodeHasNotNow) {
  const Relocation relocation({{{"192.0.2.1", "2001:db8::1"}, {"192.0.2.9"}}}, 0);
  Job job;
  job.sockets.emplace_back().local = four("192.0.2.1", 80);
  EXPECT_TRUE(relocation.check(job));
  job.sockets.emplace_back().remote = six("2001:db8::1", 80);
  const Status checked = relocation.check(job);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::mismatch);
  EXPECT_THAT(checked.error().message, HasSubstr("2001:db8::1"));
}

TEST(Relocation, IsNotNeededForAKindOfAddressThatNoNodeHasNow) {
  const Relocation relocation({{{"192.0.2.1", "2001:db8::1"}, {"192.0.2.1"}}}, 0);
  EXPECT_FALSE(relocation.is_needed());
  EXPECT_EQ(relocation.present(six("2001:db8::1", 80)), six("2001:db8::1", 80));
}

TEST(Relocation, IsReadAsItWasWritten) {
  const auto read = Relocation::parse(together(1).text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->text(), together(1).text());
  EXPECT_EQ(read->present(four("192.0.2.2", 1024)), four("192.0.2.9", 40'001));
  for (const char* text :
       {"", "own 0\n", "own x\nend\n", "known 99999999 a\nend\n", "other 1\nend\n"})
    EXPECT_FALSE(Relocation::parse(text)) << text;
}

TEST(Relocation, TakesTheAddressesOfConnectionsOfAnOlderImage) {
  Job job;
  Socket& end = job.sockets.emplace_back();
  end.state = SocketState::connected;
  end.local = four("192.0.2.1", 80);
  job.sockets.emplace_back().local = four("0.0.0.0", 80);
  EXPECT_THAT(known_addresses(job), testing::ElementsAre("192.0.2.1"));
  job.addresses = {"192.0.2.2"};
  EXPECT_THAT(known_addresses(job), testing::ElementsAre("192.0.2.2"));
}

}  // namespace
}  // namespace diapause::process
