// Tells what programs may have come to depend on of the processor: its instructions, and how it
// saves its vector registers.
#pragma once

#include <string>
#include <vector>

#include "process/state.hpp"

namespace diapause::process {

struct Processor {
  std::vector<std::string> instructions;  // sets of them, by the kernel's names
  std::vector<RegisterPart> parts;        // of the saved registers, by rising number
  std::uint64_t bytes = 0;                // length of the saved registers
};

Processor this_processor();

// Returns registers that were saved by a processor with the parts `from` as `here` saves them. An
// empty `from` stands for the same parts. Code::mismatch names what is in use and not here, and
// Code::corrupt says that the registers cannot be.
Result<ByteVector> fit_registers(ByteView saved, const std::vector<RegisterPart>& from,
                                 const Processor& here);

// Makes signal frames in `stack` such that this processor can return from them. The kernel has
// saved the registers of an interrupted program there as the processor did that had the parts
// `from` and `bytes` in all. Returns how many it has changed; dead ones that were left there may be
// among them. `stack` begins at a multiple of 64.
std::size_t fit_signal_frames(MutableBytes stack, const std::vector<RegisterPart>& from,
                              std::uint64_t bytes, const Processor& here);

}  // namespace diapause::process
