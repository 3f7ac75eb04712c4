#include "agent/team.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

#include "fabric/pause.hpp"
#include "sys/child.hpp"
#include "sys/process.hpp"

namespace diapause::agent {
namespace {

constexpr double kLong_s = 24 * 3600;  // copying to a slow file system takes as long as it takes
constexpr double kMoreForEachGeneration_s = 2;  // of limits_of()

constexpr double kFarewell_s = 10;  // for the other agents to give back what they hold
constexpr std::chrono::milliseconds kPause(5);

}  // namespace

Result<std::unique_ptr<Team>> Team::form(Company company, const Secret& secret,
                                         const std::string& directory) {
  std::unique_ptr<Team> team(new Team(std::move(company)));
  team->set_patience(Patience::long_);
  DIAPAUSE_TRY_ASSIGN(team->peers_, Peers::open(team->company_, *team->comm_));
  team->path_ = directory;
  team->secret_ = secret;
  return team;
}

Ranks Team::ranks() const {
  Ranks ranks{company_.comm(), {}};
  if (company_.nodes.are_emulated) ranks.emulated_nodes = company_.nodes.hosts;
  return ranks;
}

Status Team::share_ports(std::uint16_t own_port, const std::string& known) {
  const std::string mine = fmt::format(
      "{} {}", own_port, known.empty() ? company_.doors->addresses[company_.branch.own] : known);
  DIAPAUSE_TRY_ASSIGN(const std::vector<std::string> all, gather_texts(mine));
  std::vector<Door> doors;
  for (const std::string& one : all) {
    Door door;
    std::istringstream(one) >> door.port >> door.address;
    door.host = company_.nodes.hosts[doors.size()];
    doors.push_back(std::move(door));
  }
  Status written;
  if (comm_->node_leader() == comm_->rank()) {
    auto directory = RemoteDirectory::make(path_);
    written = directory ? directory->write(doors, secret_) : fail(directory.error());
    if (directory) directory_.emplace(std::move(*directory));
  }
  DIAPAUSE_TRY(agree(written));
  RemoteDirectory::announce(path_, company_.nodes);
  return {};
}

Result<std::vector<ByteVector>> Team::gather(const Status& own, ByteView mine) {
  if (!own) give_up(own.error());
  return comm_->all_gather(mine);
}

Result<std::vector<std::string>> Team::gather_texts(const std::string& mine) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all,
                      comm_->all_gather(as_byte_view(std::string_view(mine))));
  std::vector<std::string> texts;
  for (const ByteVector& one : all)
    texts.emplace_back(reinterpret_cast<const char*>(one.data()), one.size());
  return texts;
}

Result<std::vector<std::set<std::string>>> Team::gather_lists(const std::set<std::string>& mine) {
  std::string joined;
  for (const std::string& one : mine) joined.append(one).push_back('\0');
  DIAPAUSE_TRY_ASSIGN(const std::vector<std::string> all, gather_texts(joined));
  std::vector<std::set<std::string>> lists(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::istringstream items(all[i]);
    for (std::string item; std::getline(items, item, '\0');) lists[i].insert(item);
  }
  return lists;
}

Result<process::Relocation> Team::locate(const std::vector<std::string>& known) {
  std::vector<std::string> present = sys::own_addresses();
  std::ranges::stable_partition(present, [&](const std::string& one) {
    return one == company_.doors->addresses[company_.branch.own];
  });
  DIAPAUSE_TRY_ASSIGN(
      const std::vector<std::string> all,
      gather_texts(fmt::format("{} , {}", fmt::join(known, " "), fmt::join(present, " "))));
  std::vector<process::NodeAddresses> nodes;
  for (const std::string& one : all) {
    process::NodeAddresses& node = nodes.emplace_back();
    std::istringstream words(one);
    bool is_known = true;
    for (std::string word; words >> word;) {
      if (word == ",") {
        is_known = false;
      } else {
        (is_known ? node.known : node.present).push_back(word);
      }
    }
  }
  return process::Relocation(std::move(nodes), company_.branch.own);
}

Status Team::share_moved_ports(process::Relocation& relocation) {
  std::string mine;
  for (const process::MovedPort& one : relocation.moved_ports())
    mine += fmt::format("{} {} {} {} ", one.node, one.family, one.known, one.present);
  DIAPAUSE_TRY_ASSIGN(const std::vector<std::string> all, gather_texts(mine));
  for (const std::string& text : all) {
    std::istringstream words(text);
    process::MovedPort one;
    while (words >> one.node >> one.family >> one.known >> one.present) relocation.move_port(one);
  }
  return {};
}

// Only nodes that are on the machine of an agent can need its port. While it looks for another one,
// it keeps those that it has had, so that the kernel does not choose them again.
Status Team::make_room(const std::set<std::uint16_t>& ports) {
  Doors& doors = *company_.doors;
  const std::uint32_t own = company_.branch.own;
  std::vector<std::shared_ptr<sys::Listener>> left;
  while (true) {
    std::string wanted;
    for (std::uint32_t i = 0; i < doors.ports.size(); ++i) {
      const bool is_here = doors.addresses[i] == doors.addresses[own];
      if (is_here && ports.contains(doors.ports[i])) wanted += fmt::format("{} ", i);
    }
    DIAPAUSE_TRY_ASSIGN(const std::vector<std::string> all, gather_texts(wanted));
    std::set<std::uint32_t> movers;
    for (const std::string& one : all) {
      std::istringstream words(one);
      for (std::uint32_t number = 0; words >> number;) movers.insert(number);
    }
    if (movers.empty()) return {};
    if (movers.contains(own)) {
      left.push_back(doors.listener);
      auto next = sys::Listener::open();
      DIAPAUSE_TRY(agree(next ? Status{} : fail(next.error())));
      doors.listener = std::make_shared<sys::Listener>(std::move(*next));
    } else {
      DIAPAUSE_TRY(agree({}));
    }
    DIAPAUSE_TRY_ASSIGN(const std::vector<std::string> now,
                        gather_texts(std::to_string(doors.listener->port())));
    for (std::uint32_t i = 0; i < doors.ports.size(); ++i)
      std::istringstream(now[i]) >> doors.ports[i];
  }
}

Status Team::agree(const Status& own) {
  if (!own) give_up(own.error());
  return comm_->barrier();
}

void Team::set_patience(Patience patience) {
  const double most_s = patience == Patience::long_ ? kLong_s
                        : patience == Patience::verbs
                            ? company_.nodes.limit_s + fabric::kLongestStep_s
                            : company_.nodes.limit_s;
  company_.mail->set_limits(limits_of(company_.branch, most_s, kMoreForEachGeneration_s));
}

Status Team::give(const Order& order) {
  company_.mail->begin_round(company_.mail->round() + 1);
  Order sent = order;
  return comm_->broadcast(std::as_writable_bytes(std::span(&sent, 1)), 0);
}

std::optional<Order> Team::receive() {
  while (const auto round = company_.mail->later_round_of(company_.branch.parent())) {
    company_.mail->begin_round(*round);
    Order order;
    // It fails if the round was given up before this agent heard of it.
    if (comm_->broadcast(std::as_writable_bytes(std::span(&order, 1)), 0)) return order;
  }
  return std::nullopt;
}

void Team::give_up(const Error& why) {
  company_.mail->give_up({why.code, own_name() + ": " + why.message, why.os_errno});
}

void Team::leave() const {
  // Where an order to end has not come, because a node is lost, its agent sees by this that the
  // first one has gone.
  company_.mail->close();
  const double end_s = sys::monotonic_s() + kFarewell_s;
  for (const std::int64_t one : company_.started) {
    while (!sys::status_if_ended(one) && sys::monotonic_s() < end_s)
      std::this_thread::sleep_for(kPause);
  }
  if (directory_) directory_->remove();
}

}  // namespace diapause::agent
