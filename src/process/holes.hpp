// Finds out which pages of shared memory and of files are there. The kernel gives a page to each
// place of shared memory that anybody reads, so that a look at all places could take more memory
// than the machine has. A file on a disk may have places that take no room there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "process/freeze.hpp"
#include "process/proc.hpp"

namespace diapause::process {

// Returns whether a path leads into a file system that has its files in memory.
bool lies_in_memory(const std::string& path);

// Returns the pages of a part of a file that may hold something, as offsets in rising order. All
// others are zero. Returns nothing if the file system is none that is known to tell, also of what
// programs have written through mappings and is not on the disk yet.
std::optional<std::vector<Extent>> pages_of_file(const std::string& path, const Extent& part);
// Does so for the file of a shared mapping, which `path` leads to, with addresses.
std::optional<std::vector<Extent>> pages_of_mapping(const std::string& path, const Mapping& mapping,
                                                    const Extent& range);
// Returns a path to the file of a mapping, whether it has a name or not. Only root may use it.
std::string path_of_mapping(pid_t process, const Mapping& mapping);
// Empties a part of a file that is open for reading and writing. Where it holds zeros already,
// nothing is done: room that was reserved for the file stays so. `what` says in an error what was
// done.
Status empty_part(int file, const Extent& part, const std::string& what);
// Returns whether the memory of a shared mapping is that of memfd_create, of MAP_ANONYMOUS or of a
// segment of System V, and has pages of the usual size.
bool is_of_no_file_system(const Mapping& mapping);
// Returns the same of a range of such a mapping, as addresses. The process does calls for us.
std::optional<std::vector<Extent>> pages_of_shared_memory(const FrozenProcess& frozen,
                                                          const Mapping& mapping,
                                                          const Extent& range);

}  // namespace diapause::process
