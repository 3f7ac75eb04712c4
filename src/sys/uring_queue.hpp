// Makes queues of reads and writes in flight through io_uring.
#pragma once

#include <memory>

#include "sys/kernel.hpp"

namespace diapause::sys {

// These return nullptr where the machine refuses io_uring. A queue's destructor waits for all
// transfers in flight.
std::unique_ptr<WriteQueue> make_uring_queue(unsigned depth);
std::unique_ptr<ReadQueue> make_uring_read_queue(unsigned depth);

}  // namespace diapause::sys
