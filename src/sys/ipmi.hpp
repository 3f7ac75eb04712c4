// Gives access to the machine's management controller through the kernel's device. A request takes
// milliseconds to seconds, so it is sent first and its answer is received later.
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

  // Sends one command to the controller itself. The answer carries the same `id`.
  Status send(std::uint8_t function, std::uint8_t command, std::span<const std::uint8_t> data,
              long id) const;

  struct Answer {
    long id;
    std::vector<std::uint8_t> data;  // begins with the completion code
  };
  // Returns the next answer if one has arrived.
  Result<std::optional<Answer>> receive() const;

 private:
  explicit IpmiDevice(File file) : file_(std::move(file)) {}
  File file_;
};

}  // namespace diapause::sys
