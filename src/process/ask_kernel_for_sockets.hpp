// Asks questions about all sockets of the machine that only the kernel can answer
// (NETLINK_SOCK_DIAG).
#pragma once

#include <linux/netlink.h>

#include <functional>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause::process {

// Sends the request of one socket family, such as unix_diag_req, and calls `take` for each socket
// of the answer. `what` names the sockets in the error.
Status ask_kernel_for_sockets(ByteView request, const std::string& what,
                              const std::function<void(const nlmsghdr& answer)>& take);

}  // namespace diapause::process
