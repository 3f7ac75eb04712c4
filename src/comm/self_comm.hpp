// The Comm of a program without MPI, which has one rank.
#pragma once

#include <memory>

#include "comm/comm.hpp"

namespace diapause::comm {

std::unique_ptr<Comm> make_self_comm();

}  // namespace diapause::comm
