// Numbers in the files of /sys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sys/kernel.hpp"

namespace diapause::governor {

// none: the file cannot be read, or is not one number.
std::optional<double> number_at(sys::Kernel& kernel, const std::string& path);

// Separated by spaces; empty if the file cannot be read.
std::vector<double> read_numbers(sys::Kernel& kernel, const std::string& path);

// "0 1 2" as cpufreq lists processors, in order. Empty if the file cannot be read or is something else.
std::vector<std::uint32_t> read_cpus(sys::Kernel& kernel, const std::string& path);

// The number of "cpu12"; none for every other name.
std::optional<std::uint32_t> cpu_of(const std::string& name);

}  // namespace diapause::governor
