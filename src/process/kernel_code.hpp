// Tells how a restart gives processes the code that the kernel has in every process. Processes know
// it by its addresses, and libraries remember those of its functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "process/proc.hpp"
#include "process/state.hpp"

namespace diapause::process {

// Returns whether the kernel's code or data are in a mapping.
bool is_of_kernel(const Mapping& mapping);
// Return whether it is the kernel's code, and not its data.
bool has_kernel_code(const Mapping& mapping);
bool has_kernel_code(const Area& area);

class KernelCode {
 public:
  // Looks at what this machine gives to processes. Code::mismatch says that those of the image
  // cannot do with it.
  static Result<KernelCode> for_job(const Job& job);

  // Returns whether it is the code that the processes know, and goes to where they know it.
  // Otherwise the code that they know is memory of their own from now on, and what they call there
  // leads to that of this machine, which goes to place_in().
  bool is_known() const { return is_known_; }
  // Returns where the lowest of the kernel's mappings goes, `bytes` of them in all: to a place that
  // a process and `taken` leave free, and that nothing grows to.
  static std::uint64_t place_in(const Process& process, std::uint64_t bytes, Extent taken);
  // Returns the code that the processes know, for a vdso of this machine at `address`.
  Result<ByteVector> known_leading_to(std::uint64_t address) const;

 private:
  bool is_known_ = true;
  ByteVector own_, known_;
};

}  // namespace diapause::process
