#pragma once

namespace diapause::engine {

// Says which process or thread does the work behind a capture. The numbers equal those of
// diapause_worker.
enum class Worker { call = 0, thread = 1, thread_in_calls = 2, rank = 3 };

}  // namespace diapause::engine
