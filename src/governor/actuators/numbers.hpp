// Reads numbers from files of /sys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sys/kernel.hpp"

namespace diapause::governor {

// Returns nullopt if the file cannot be read or is not a single number.
std::optional<double> number_at(sys::Kernel& kernel, const std::string& path);

// Returns numbers separated by spaces; empty if the file cannot be read.
std::vector<double> read_numbers(sys::Kernel& kernel, const std::string& path);

// Returns processors as cpufreq lists them, such as "0 1 2", in ascending order; empty if the file
// cannot be read or has another content.
std::vector<std::uint32_t> read_cpus(sys::Kernel& kernel, const std::string& path);

// Returns the number in "cpu12"; nullopt for every other name.
std::optional<std::uint32_t> cpu_of(const std::string& name);

}  // namespace diapause::governor
