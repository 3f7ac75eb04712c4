// Finds out which pages of shared memory are there. The kernel gives a page to each place of shared
// memory that anybody reads, so that a look at all places could take more memory than the machine
// has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "process/freeze.hpp"
#include "process/proc.hpp"

namespace diapause::process {

// Returns whether a path leads into a file system that has its files in memory.
bool lies_in_memory(const std::string& path);

// Each of the following returns the pages that may hold something, in rising order. All others are
// zero. It returns nothing if the kernel does not tell.

// Of a part of a file that lies in memory, these are offsets in the file.
std::optional<std::vector<Extent>> pages_of_file_in_memory(const std::string& path,
                                                           const Extent& part);
// Of shared memory that no file system has, these are addresses in the process, which does calls
// for us. `range` belongs to one mapping.
std::optional<std::vector<Extent>> pages_of_shared_memory(const FrozenProcess& frozen,
                                                          const Extent& range);
// Returns whether the memory of a mapping is that of memfd_create, MAP_SHARED | MAP_ANONYMOUS or a
// segment of System V, and has pages of the usual size.
bool is_of_no_file_system(const Mapping& mapping);

}  // namespace diapause::process
