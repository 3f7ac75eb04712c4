// Finds hardware and kernel modules that write to memory bypassing the page tables of the process
// that owns it.
#pragma once

#include <string>

namespace diapause::sys {

// Returns the path of a device file under `root`/dev through which memory may be written without a
// page fault of this process: RDMA network adapters, GPUs, XPMEM and KNEM. Returns an empty text if
// there is none. Its presence is sufficient, because MPI libraries use the devices that they find.
std::string device_that_writes_memory(const std::string& root);

}  // namespace diapause::sys
