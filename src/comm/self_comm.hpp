// The ranks of a program without MPI: one.
#pragma once

#include <memory>

#include "comm/comm.hpp"

namespace diapause::comm {

std::unique_ptr<Comm> make_self_comm();

}  // namespace diapause::comm
