// Translates addresses for processes of a job that was restarted on machines with other addresses:
// they go on to name nodes by the addresses that they know, and the kernel knows those that the
// nodes have. A seccomp filter hands the calls in which addresses occur to a process of its own,
// the translator, which does them for its callers. All other calls are as fast as before.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "process/relocation.hpp"

namespace diapause::process {

// Returns the program of the filter, as seccomp(SECCOMP_SET_MODE_FILTER) takes it. It needs Linux
// 5.14.
ByteVector address_filter();

// Tells which node has which port, where several nodes of a job are on one machine: all of them
// have the file open. Any thread may use it.
class PortsOfNodes {
 public:
  static constexpr std::size_t kBytes = 65'536 * sizeof(std::uint32_t);  // of the file, 0 at first

  // Nothing is known, and nothing kept, if `path` is empty.
  explicit PortsOfNodes(const std::string& path);
  PortsOfNodes(const PortsOfNodes&) = delete;
  PortsOfNodes& operator=(const PortsOfNodes&) = delete;
  ~PortsOfNodes();

  bool is_open() const { return cells_ != nullptr; }
  void set(std::uint16_t port, std::uint32_t node);
  // Returns kNone for a port of nobody.
  std::uint32_t node_of(std::uint16_t port) const;

 private:
  std::atomic<std::uint32_t>* cells_ = nullptr;
};

// Is the translator. `listener` is what seccomp() has returned for the filter. Returns when no
// process has the filter any more.
void translate_addresses(int listener, const Relocation& relocation, PortsOfNodes& ports);

}  // namespace diapause::process
