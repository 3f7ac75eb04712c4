// Reads processes and threads as /proc shows them, and their cap on utilisation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

std::int64_t thread_id();  // id of the calling thread in the whole system

// Returns the CPUs that the scheduler may give the calling thread, in order; empty if the kernel
// does not say.
std::vector<std::uint32_t> usable_cpus();

// Returns the threads of a running process, in order. Fails with Code::not_found if it has ended.
Result<std::vector<std::int64_t>> threads_of(Kernel& kernel, std::int64_t process);

// Returns the living children of a process, without zombies. The result is empty also if the
// process has ended, or if the kernel does not tell (it was built without CONFIG_PROC_CHILDREN).
std::vector<std::int64_t> living_children(Kernel& kernel, std::int64_t process);

// Returns the processor time that these processes and all that descend from them have used so far,
// in seconds. A process that has ended counts if its parent has waited for it. Fails with
// Code::not_found if one of `processes` has ended or cannot be seen, or if the kernel does not list
// children (it was built without CONFIG_PROC_CHILDREN).
Result<double> processor_s_of_families(Kernel& kernel, const std::vector<std::int64_t>& processes);

// Returns the name of the program that a process runs, of which the kernel keeps 15 characters. It
// is empty if the process has ended.
std::string program_name(Kernel& kernel, std::int64_t process);

// Returns when a process started, in clock ticks since boot. Together with its number this
// identifies the process. Fails with Code::not_found if it has ended.
Result<std::uint64_t> start_ticks(Kernel& kernel, std::int64_t process);

// Returns a text that differs after every boot.
Result<std::string> boot_id(Kernel& kernel);

// The utilisation cap (uclamp.max) is the highest utilisation that the scheduler assumes for the
// thread, in 1024ths of the largest CPU. It lasts as long as the thread. Fails with Code::io where
// the kernel has no such cap.
Result<std::uint32_t> utilisation_cap(std::int64_t thread);
Status cap_utilisation(std::int64_t thread, std::uint32_t most);

}  // namespace diapause::sys
