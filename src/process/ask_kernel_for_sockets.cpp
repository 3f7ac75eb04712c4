#include "process/ask_kernel_for_sockets.hpp"

#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "process/make_socket.hpp"

namespace diapause::process {

Status ask_kernel_for_sockets(ByteView request, const std::string& what,
                              const std::function<void(const nlmsghdr& answer)>& take) {
  const auto failed = [&](int error) {
    return fail(os_error("asking the kernel for its " + what, error));
  };
  const Owned netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (netlink.number() < 0) return failed(errno);
  ByteVector message(NLMSG_SPACE(request.size()));
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(request.size()));
  header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  std::memcpy(message.data(), &header, sizeof header);
  std::memcpy(message.data() + NLMSG_HDRLEN, request.data(), request.size());
  if (::send(netlink.number(), message.data(), message.size(), 0) < 0) return failed(errno);
  alignas(nlmsghdr) std::array<char, 32768> part{};
  for (;;) {
    const ssize_t got = ::recv(netlink.number(), part.data(), part.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return failed(errno);
    auto left = static_cast<unsigned>(got);
    for (const auto* answer = reinterpret_cast<const nlmsghdr*>(part.data());
         NLMSG_OK(answer, left); answer = NLMSG_NEXT(answer, left)) {
      if (answer->nlmsg_type == NLMSG_DONE) return {};
      if (answer->nlmsg_type == NLMSG_ERROR) {
        return failed(-static_cast<const nlmsgerr*>(NLMSG_DATA(answer))->error);
      }
      take(*answer);
    }
  }
}

}  // namespace diapause::process
