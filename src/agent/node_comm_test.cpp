#include "agent/node_comm.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "agent/handshake.hpp"

namespace diapause::agent {
namespace {

using ::testing::HasSubstr;

// These agents are threads of this process, with real connections between all of them.
class Agents {
 public:
  Agents(std::uint32_t count, std::uint32_t fan_out) {
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < count; ++i) names.push_back("node" + std::to_string(i));
    for (std::uint32_t i = 0; i < count; ++i) {
      mails_.push_back(std::make_unique<Mail>(Mail::open(i, names).value()));
      branches_.push_back({i, count, fan_out});
      mails_.back()->set_neighbours(branches_.back().neighbours());
      mails_.back()->begin_round(1);
      mails_.back()->set_limits({20, {}, 20});
    }
    auto listener = sys::Listener::open().value();
    for (std::uint32_t i = 0; i < count; ++i) {
      for (std::uint32_t k = 0; k < i; ++k) {
        auto one = sys::Stream::connect("127.0.0.1", listener.port(), 10).value();
        EXPECT_TRUE(mails_[k]->add_link(i, listener.accept(10).value()));
        EXPECT_TRUE(mails_[i]->add_link(k, std::move(one)));
      }
    }
  }

  Mail& mail(std::uint32_t agent) { return *mails_[agent]; }

  // Lets all agents do the same at once.
  void all(const std::function<void(comm::Comm&)>& work) {
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < mails_.size(); ++i) {
      threads.emplace_back([&, i] { work(*make_node_comm(*mails_[i], branches_[i], i)); });
    }
    for (std::thread& one : threads) one.join();
  }

 private:
  std::vector<std::unique_ptr<Mail>> mails_;
  std::vector<Branch> branches_;
};

class NodeComms : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(NodeComms, GatherWhatEachRankPassed) {
  Agents agents(7, GetParam());
  agents.all([](comm::Comm& comm) {
    const std::string mine(comm.rank(), 'x');
    const auto all = comm.all_gather(as_byte_view(std::string_view(mine)));
    ASSERT_TRUE(all) << all.error().message;
    for (std::uint32_t i = 0; i < comm.size(); ++i) EXPECT_EQ((*all)[i].size(), i);
  });
}

TEST_P(NodeComms, BroadcastFromEveryRank) {
  Agents agents(7, GetParam());
  agents.all([](comm::Comm& comm) {
    for (std::uint32_t root = 0; root < comm.size(); ++root) {
      std::uint64_t value = comm.rank() == root ? 100 + root : 0;
      ASSERT_TRUE(comm.broadcast(std::as_writable_bytes(std::span(&value, 1)), root));
      EXPECT_EQ(value, 100 + root);
    }
  });
}

TEST_P(NodeComms, FindTheLeastAndTheGreatest) {
  Agents agents(7, GetParam());
  agents.all([](comm::Comm& comm) {
    ASSERT_TRUE(comm.barrier());
    EXPECT_EQ(comm.all_min(comm.rank() + 5).value(), 5u);
    EXPECT_EQ(comm.all_max(comm.rank() + 5).value(), 11u);
  });
}

TEST_P(NodeComms, ExchangeMoreThanConnectionsHold) {
  Agents agents(4, GetParam());
  agents.all([](comm::Comm& comm) {
    const std::size_t kBytes = 12 << 20;
    ByteVector mine(kBytes, static_cast<std::byte>(comm.rank()));
    std::vector<ByteVector> theirs(comm.size(), ByteVector(kBytes));
    std::vector<comm::Send> sends;
    std::vector<comm::Receive> receives;
    for (std::uint32_t i = 0; i < comm.size(); ++i) {
      sends.push_back({i, mine});
      receives.push_back({i, theirs[i]});
    }
    const Status done = comm.exchange(sends, receives);
    ASSERT_TRUE(done) << done.error().message;
    for (std::uint32_t i = 0; i < comm.size(); ++i)
      EXPECT_EQ(theirs[i], ByteVector(kBytes, std::byte(i)));
  });
}

TEST_P(NodeComms, FailOnAllRanksForOneReasonAndGoOnInTheNextRound) {
  Agents agents(7, GetParam());
  agents.all([&](comm::Comm& comm) {
    Mail& mail = agents.mail(comm.rank());
    if (comm.rank() == 5) mail.give_up({Code::again, "node5: bytes are on their way"});
    const Status failed = comm.barrier();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Code::again);
    EXPECT_THAT(failed.error().message, HasSubstr("node5: bytes are on their way"));
    mail.begin_round(2);
    EXPECT_EQ(comm.all_max(comm.rank()).value(), 6u);
  });
}

INSTANTIATE_TEST_SUITE_P(OfTreesWithFanOut, NodeComms, ::testing::Values(1u, 2u, 16u));

// In trees with one child and with two for each rank: the last rank, one in the middle, the root.
class SilentRank : public ::testing::TestWithParam<std::pair<std::uint32_t, std::uint32_t>> {};

TEST_P(SilentRank, IsNamedOnAllOthers) {
  const auto [silent, fan_out] = GetParam();
  Agents agents(5, fan_out);
  agents.all([&](comm::Comm& comm) {
    if (comm.rank() == silent) return;
    agents.mail(comm.rank()).set_limits(limits_of({comm.rank(), 5, fan_out}, 0.3, 1));
    const Status failed = comm.barrier();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Code::timeout);
    EXPECT_THAT(failed.error().message, HasSubstr(fmt::format("node{} did not answer", silent)));
    agents.mail(comm.rank()).later_round_of(0);  // hands the news on, as agents do
  });
}

INSTANTIATE_TEST_SUITE_P(OfTrees, SilentRank,
                         ::testing::Values(std::pair(4, 1), std::pair(2, 1), std::pair(0, 1),
                                           std::pair(4, 2), std::pair(1, 2), std::pair(2, 2),
                                           std::pair(0, 2), std::pair(3, 16)));

// The first agent gives its last order and goes, before the others have looked.
TEST(NodeComm, ObeysTheLastOrderOfAnAgentThatHasGone) {
  Agents agents(3, 1);
  std::uint64_t order = 77;
  const auto data = std::as_writable_bytes(std::span(&order, 1));
  agents.mail(0).begin_round(2);
  ASSERT_TRUE(make_node_comm(agents.mail(0), {0, 3, 1}, 0)->broadcast(data, 0));
  agents.mail(0).close();
  for (const std::uint32_t agent : {1u, 2u}) {
    Mail& mail = agents.mail(agent);
    std::optional<std::uint32_t> round;
    while (!mail.lost() || !round) round = mail.later_round_of(agent - 1);
    mail.begin_round(*round);
    order = 0;
    const Status obeyed = make_node_comm(mail, {agent, 3, 1}, agent)->broadcast(data, 0);
    ASSERT_TRUE(obeyed) << agent << ": " << obeyed.error().message;
    EXPECT_EQ(order, 77u);
    const Post to_the_first{0, {}};
    EXPECT_FALSE(mail.transfer({&to_the_first, 1}, {}));
  }
}

// It has given what the others need of it, while another agent is slower.
TEST(NodeComm, FinishesWithoutAnAgentThatIsDoneAndLeaves) {
  Agents agents(3, 2);
  const std::string text = "all of it";
  const Post post{0, as_byte_view(std::string_view(text))};
  ASSERT_TRUE(agents.mail(2).transfer({&post, 1}, {}));
  agents.mail(2).close();
  std::thread slow([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_TRUE(agents.mail(1).transfer({&post, 1}, {}));
  });
  constexpr std::uint32_t kBoth[] = {1, 2};
  const auto messages = agents.mail(0).transfer({}, kBoth);
  slow.join();
  ASSERT_TRUE(messages) << messages.error().message;
  EXPECT_EQ((*messages)[1].size(), text.size());
  const Post answer{1, as_byte_view(std::string_view(text))};
  EXPECT_TRUE(agents.mail(0).transfer({&answer, 1}, {}));
  constexpr std::uint32_t kFirst = 0;
  EXPECT_TRUE(agents.mail(1).transfer({}, {&kFirst, 1}));
}

TEST(NodeComm, NamesTheAgentThatLeavesAndIsNeeded) {
  Agents agents(3, 2);
  agents.mail(2).close();
  constexpr std::uint32_t kBoth[] = {1, 2};
  for (int tries = 0; tries < 2; ++tries) {
    const auto messages = agents.mail(0).transfer({}, kBoth);
    ASSERT_FALSE(messages);
    EXPECT_EQ(messages.error().message, "node2 cannot be reached: its agent has ended");
  }
  const Post post{2, {}};
  EXPECT_FALSE(agents.mail(0).transfer({&post, 1}, {}));
}

TEST(Branch, HasAParentAndChildrenOnOtherLevels) {
  EXPECT_THAT((Branch{0, 10, 3}.children()), ::testing::ElementsAre(1, 2, 3));
  EXPECT_THAT((Branch{2, 10, 3}.children()), ::testing::ElementsAre(7, 8, 9));
  EXPECT_THAT((Branch{9, 10, 3}.children()), ::testing::IsEmpty());
  EXPECT_EQ((Branch{7, 10, 3}.parent()), 2u);
  EXPECT_EQ((Branch{0, 10, 3}.height()), 2u);
  EXPECT_EQ((Branch{3, 10, 3}.height()), 0u);
  EXPECT_EQ((Branch{0, 1, 3}.height()), 0u);
}

struct Ends {
  sys::Stream one, other;
};

Ends make_ends() {
  auto listener = sys::Listener::open().value();
  auto one = sys::Stream::connect("127.0.0.1", listener.port(), 10).value();
  return {std::move(one), listener.accept(10).value()};
}

TEST(Handshake, TellsWhoConnectsToWhomThatKnowsTheSecret) {
  const Secret secret = Secret::draw().value();
  Ends ends = make_ends();
  Status greeted;
  std::thread other([&] { greeted = greet(ends.one, secret, {3, 77}, 10); });
  const auto hello = welcome(ends.other, secret, 10);
  other.join();
  ASSERT_TRUE(hello) << hello.error().message;
  EXPECT_TRUE(greeted);
  EXPECT_EQ(hello->who, 3u);
  EXPECT_EQ(hello->number, 77u);
}

TEST(Handshake, RefusesWhoDoesNotKnowTheSecret) {
  const Secret secret = Secret::draw().value(), guessed = Secret::draw().value();
  Ends ends = make_ends();
  Status greeted;
  // The end that does not know it cannot tell whether the other one does, so it gives up first.
  std::thread other([&] {
    greeted = greet(ends.one, guessed, {3, 0}, 10);
    sys::Stream closed = std::move(ends.one);
  });
  const auto hello = welcome(ends.other, secret, 10);
  other.join();
  EXPECT_FALSE(hello);
  ASSERT_FALSE(greeted);
  EXPECT_EQ(greeted.error().code, Code::denied);
}

TEST(Secret, ComesBackFromItsText) {
  const Secret secret = Secret::draw().value();
  EXPECT_EQ(Secret::parse(secret.text()).value().bytes, secret.bytes);
  EXPECT_FALSE(Secret::parse("12"));
  EXPECT_FALSE(Secret::parse(std::string(64, 'g')));
  EXPECT_NE(secret.derive("commands").bytes, secret.bytes);
}

}  // namespace
}  // namespace diapause::agent
