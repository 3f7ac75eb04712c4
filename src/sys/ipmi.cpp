#include "sys/ipmi.hpp"

#include <fcntl.h>
#include <linux/ipmi.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>

#include "sys/robust.hpp"

namespace diapause::sys {

Result<IpmiDevice> IpmiDevice::open(Kernel& kernel, const std::string& path) {
  const int fd = uninterrupted(
      [&] { return kernel.openat(AT_FDCWD, path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK, 0); });
  if (fd < 0) return fail(path_error("open", path, fd));
  return IpmiDevice(File(kernel, fd, path));
}

Status IpmiDevice::send(std::uint8_t function, std::uint8_t command,
                        std::span<const std::uint8_t> data, long id) const {
  ipmi_system_interface_addr address{};
  address.addr_type = IPMI_SYSTEM_INTERFACE_ADDR_TYPE;
  address.channel = IPMI_BMC_CHANNEL;
  std::vector<std::uint8_t> bytes(data.begin(), data.end());
  ipmi_req request{};
  request.addr = reinterpret_cast<unsigned char*>(&address);
  request.addr_len = sizeof address;
  request.msgid = id;
  request.msg.netfn = function;
  request.msg.cmd = command;
  request.msg.data = bytes.data();
  request.msg.data_len = static_cast<unsigned short>(bytes.size());
  const int result = uninterrupted(
      [&] { return file_.kernel().ioctl(file_.fd(), IPMICTL_SEND_COMMAND, &request); });
  if (result < 0) return fail(path_error("send to", file_.path(), result));
  return {};
}

Result<std::optional<IpmiDevice::Answer>> IpmiDevice::receive() const {
  ipmi_addr address{};
  std::array<std::uint8_t, IPMI_MAX_MSG_LENGTH> bytes{};
  ipmi_recv received{};
  received.addr = reinterpret_cast<unsigned char*>(&address);
  received.addr_len = sizeof address;
  received.msg.data = bytes.data();
  received.msg.data_len = static_cast<unsigned short>(bytes.size());
  const int result = uninterrupted(
      [&] { return file_.kernel().ioctl(file_.fd(), IPMICTL_RECEIVE_MSG_TRUNC, &received); });
  if (result == -EAGAIN) return std::optional<Answer>();
  if (result < 0) return fail(path_error("receive from", file_.path(), result));
  const std::size_t size = std::min<std::size_t>(received.msg.data_len, bytes.size());
  return Answer{received.msgid,
                std::vector<std::uint8_t>(bytes.begin(), bytes.begin() + static_cast<long>(size))};
}

}  // namespace diapause::sys
