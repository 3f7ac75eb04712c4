// The vdso is code that the kernel gives to every process, and that libraries call instead of the
// kernel. Each kernel has its own, and changes it for the model of the processor.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause::process {

// Returns the vdso `known` with its functions changed: each goes on in that of the same name in the
// vdso `own`, which lies at `address`, or asks the kernel if `own` has none. Code::mismatch says
// what that is not possible for. `known` may be hostile.
Result<ByteVector> lead_over(ByteView known, ByteView own, std::uint64_t address);

// Returns whether a function of a vdso may make this system call, where it cannot do without.
bool is_made_by_vdso(std::int64_t call);

}  // namespace diapause::process
