// Writes in flight through io_uring.
#pragma once

#include <memory>

#include "sys/kernel.hpp"

namespace diapause::sys {

// nullptr where the machine refuses io_uring. The queue's destructor waits for every write still in flight.
std::unique_ptr<WriteQueue> make_uring_queue(unsigned depth);

}  // namespace diapause::sys
