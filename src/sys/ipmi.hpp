// The machine's management controller, through the kernel's device. Requests take milliseconds to seconds: they are
// sent, and the answer is asked for later.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::sys {

class IpmiDevice {
 public:
  static Result<IpmiDevice> open(Kernel& kernel, const std::string& path);

  // One command to the controller itself. `id` comes back with the answer.
  Status send(std::uint8_t function, std::uint8_t command, std::span<const std::uint8_t> data, long id) const;

  struct Answer {
    long id;
    std::vector<std::uint8_t> data;  // the completion code first
  };
  // The next answer that has come, if one has.
  Result<std::optional<Answer>> receive() const;

 private:
  explicit IpmiDevice(File file) : file_(std::move(file)) {}
  File file_;
};

}  // namespace diapause::sys
