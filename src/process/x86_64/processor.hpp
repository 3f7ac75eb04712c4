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

}  // namespace diapause::process
