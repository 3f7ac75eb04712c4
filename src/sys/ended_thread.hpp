// A thread that has ended for the kernel alone: its stack and its thread-local storage are still
// there, so that it can be begun again.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstdint>

namespace diapause::sys {

// All but the first are addresses in the memory of the process.
struct EndedThread {
  pid_t process = 0;              // its id here
  std::uint64_t entry = 0;        // of a function that takes nothing and does not return
  std::uint64_t stack = 0;        // where that function has its return address, as if it was called
  std::uint64_t thread_area = 0;  // the thread-local storage
  std::uint64_t id_at = 0;  // where the C library keeps its id, and the kernel puts 0 at its end
};

// As pthread_create() calls clone().
inline constexpr int kFlagsOfThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                      CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                                      CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

}  // namespace diapause::sys
