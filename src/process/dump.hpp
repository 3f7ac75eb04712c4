// Takes down everything about a frozen job except the contents of its memory, and says where these
// are.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "process/freeze.hpp"
#include "process/other_nodes.hpp"
#include "process/relocation.hpp"
#include "process/state.hpp"
#include "process/x86_64/processor.hpp"

namespace diapause::process {

// This is a piece of memory that belongs into the image.
struct Contents {
  pid_t here = 0;           // process to read it from
  std::uint64_t begin = 0;  // address there
  std::uint64_t bytes = 0;
  std::uint32_t process = 0;     // id of the process that has it alone; 0 for a shared memory
  std::uint32_t shared = kNone;  // index of the shared memory
  std::uint64_t offset = 0;      // where it belongs: address, or offset in the shared memory
  // It is true if the memory must be read as a debugger does, because the process itself may not
  // read it.
  bool is_forced = false;
  // It is a descriptor of the process to read it from instead, from `begin` on. -1 says to read its
  // memory.
  int descriptor = -1;
  bool is_forked = false;     // a process forked from it has the same
  bool begins_empty = false;  // what an image does not hold of it is zero after a restart
  ByteVector read = {};       // its contents, if they were read already
};

// Files with a name are in an image up to these limits: of one file, and of all together.
inline constexpr std::uint64_t kMostOfAFile = 64 * kMiB, kMostOfFiles = 256 * kMiB;

struct Dump {
  Job job;
  std::vector<Contents> contents;
  // When it began to take down what waits in connections, in seconds of sys::monotonic_s().
  double connections_s = 0;
};

// Sockets, by their inodes, in which messages without bytes wait, or have waited when they were
// looked at. The kernel shows such a message once only, unless it is the first.
using EmptyMessages = std::set<std::uint64_t>;

// These are what the dump of a job must know of it beforehand.
struct Surroundings {
  // A process that has the descriptors that the job was started with, under their numbers.
  pid_t standard = 0;
  std::uint32_t command = 0;      // the process whose end is the job's
  OtherNodes* others = nullptr;   // the job's other nodes, which stand still, too; null: none
  const Relocation& relocation;   // where the job's nodes are
  const Processor& processor;     // of this machine
  EmptyMessages& empty_messages;  // what earlier dumps of the job have seen
};

// If something cannot be taken down, the error has a line for each thing, with its process and the
// reason. Its code is Code::again if all of it may be gone once the job has run on a little, and
// Code::argument otherwise. The job must be thawed in any case. Addresses in the result are those
// that the job's processes know.
Result<Dump> dump(FrozenJob& frozen, const Surroundings& surroundings);

}  // namespace diapause::process
