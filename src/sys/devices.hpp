// Hardware and kernel modules that reach memory past the page tables of the process that owns it.
#pragma once

#include <string>

namespace diapause::sys {

// A device file under `root`/dev through which memory may be written without a page fault of this process: RDMA network
// adapters, GPUs, XPMEM and KNEM. Empty if there is none. That it is there says enough: MPI libraries use what they
// find.
std::string device_that_writes_memory(const std::string& root);

}  // namespace diapause::sys
