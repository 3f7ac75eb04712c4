// Processes and threads as /proc shows them, and their cap on utilisation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

std::int64_t thread_id();  // of the calling thread, in the whole system

// The CPUs that the scheduler may give the calling thread, in order. Empty if the kernel does not say.
std::vector<std::uint32_t> usable_cpus();

// Threads of a process that runs, in order. Code::not_found if it has ended.
Result<std::vector<std::int64_t>> threads_of(Kernel& kernel, std::int64_t process);

// Living children of a process, without those that have ended and that nobody has waited for yet. Empty also if the
// process has ended, or if the kernel does not tell (it was built without CONFIG_PROC_CHILDREN).
std::vector<std::int64_t> living_children(Kernel& kernel, std::int64_t process);

// Name of the program that a process runs, of which the kernel keeps 15 characters. Empty if the process has ended.
std::string program_name(Kernel& kernel, std::int64_t process);

// When a process started, in clock ticks since boot: with its number, what tells it from any other.
// Code::not_found if it has ended.
Result<std::uint64_t> start_ticks(Kernel& kernel, std::int64_t process);

// A text that is another one after every boot.
Result<std::string> boot_id(Kernel& kernel);

// The share of the largest CPU, in 1024ths, that the scheduler takes the thread to need at most (uclamp.max); it lasts
// as long as the thread. Code::io where the kernel has no such cap.
Result<std::uint32_t> utilisation_cap(std::int64_t thread);
Status cap_utilisation(std::int64_t thread, std::uint32_t most);

}  // namespace diapause::sys
