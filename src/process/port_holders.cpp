#include "process/port_holders.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <linux/inet_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <map>
#include <set>

#include "process/ask_kernel_for_sockets.hpp"
#include "process/proc.hpp"

namespace diapause::process {
namespace {

using UserOfSocket = std::map<std::string, std::uint32_t>;  // by the name of the socket in /proc

UserOfSocket sockets_at(std::uint16_t port) {
  UserOfSocket found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const int protocol : {IPPROTO_TCP, IPPROTO_UDP}) {
      inet_diag_req_v2 request{};
      request.sdiag_family = static_cast<std::uint8_t>(family);
      request.sdiag_protocol = static_cast<std::uint8_t>(protocol);
      request.idiag_states = ~(1u << TCP_TIME_WAIT);
      (void)ask_kernel_for_sockets(
          as_byte_view(request), "sockets at a port", [&](const nlmsghdr& answer) {
            const auto& one = *static_cast<const inet_diag_msg*>(NLMSG_DATA(&answer));
            if (one.id.idiag_sport != htons(port) || one.idiag_inode == 0) return;
            found[fmt::format("socket:[{}]", one.idiag_inode)] = one.idiag_uid;
          });
    }
  }
  return found;
}

bool has_one_of(pid_t process, const UserOfSocket& sockets, std::set<std::string>& seen) {
  bool has = false;
  const std::string directory = fmt::format("/proc/{}/fd", process);
  for (const pid_t number : numbers_in(directory).value_or(std::vector<pid_t>{})) {
    const auto link = read_link(fmt::format("{}/{}", directory, number));
    if (!link || !sockets.contains(*link)) continue;
    seen.insert(*link);
    has = true;
  }
  return has;
}

}  // namespace

std::string holders_of_port(std::uint16_t port) {
  const UserOfSocket sockets = sockets_at(port);
  if (sockets.empty()) return "";
  std::set<std::string> seen;
  std::vector<std::string> holders;
  for (const pid_t process : numbers_in("/proc").value_or(std::vector<pid_t>{})) {
    if (!has_one_of(process, sockets, seen)) continue;
    const auto status = status_of(fmt::format("/proc/{}", process));
    holders.push_back(fmt::format("process {} ({})", process, status ? status->name : "?"));
  }
  std::set<std::uint32_t> others;
  for (const auto& [name, user] : sockets) {
    if (!seen.contains(name)) others.insert(user);
  }
  for (const std::uint32_t user : others)
    holders.push_back(fmt::format("a process of user {}", user));
  return fmt::format("{}", fmt::join(holders, ", "));
}

}  // namespace diapause::process
