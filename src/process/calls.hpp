// Makes a stopped process do system calls for us. A page of code and some room for arguments are
// mapped in it, and taken away again. The process runs none of its own code meanwhile, and signals
// wait.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "process/trace.hpp"

namespace diapause::process {

// This is a thread by all the names it has.
struct ThreadName {
  pid_t here = 0;             // its id in the namespace of this process
  std::uint32_t process = 0;  // its own id, as it knows itself
  std::uint32_t thread = 0;
};

class Calls {
 public:
  static constexpr std::uint64_t kCodeBytes = kPageBytes;
  static constexpr std::uint64_t kRoomBytes = std::uint64_t{64} * 1024;
  static constexpr std::uint64_t kBytes = kCodeBytes + kRoomBytes;

  // Maps code and room in the process of the stopped thread, at `address`, where nothing must be.
  // `instruction` is the address of an instruction for system calls in its memory.
  static Result<Calls> plant(const ThreadName& thread, std::uint64_t address,
                             std::uint64_t instruction);
  // Returns the same for a process that inherited the code when it was forked.
  static Calls inherited(std::uint64_t address) { return Calls(address); }

  // Does the calls in their order, and stops at the first that fails, unless it may fail. Puts the
  // results into `calls`, and the threads and processes that the calls made into `made`. The
  // thread's registers and mask are lost.
  Status run(const ThreadName& thread, std::vector<Call>& calls,
             std::vector<pid_t>* made = nullptr) const;
  // Lets the thread do the calls with that signal mask, and lets go of it: it must end by them.
  Status run_away(const ThreadName& thread, std::span<Call> calls, std::uint64_t mask) const;
  // Does one call, which must make a thread or a process, and returns that by its id here and its
  // own one. It is stopped.
  struct Birth {
    pid_t here = 0;
    std::uint32_t id = 0;
  };
  Result<Birth> birth(const ThreadName& parent, const Call& call) const;
  // Does one call, which must succeed, and returns its result.
  Result<std::uint64_t> one(const ThreadName& thread, const Call& call,
                            std::vector<pid_t>* made = nullptr) const;

  // Returns the address of the room for arguments in the memory of the process. The next run()
  // overwrites it.
  std::uint64_t room() const { return address_ + kCodeBytes + kTableBytes; }
  static constexpr std::uint64_t room_bytes() { return kRoomBytes - kTableBytes; }
  std::uint64_t address() const { return address_; }

  // Unmaps code and room. `instruction` is that of plant().
  Status remove(const ThreadName& thread, std::uint64_t instruction) const;

 private:
  static constexpr std::uint64_t kTableBytes = std::uint64_t{32} * 1024;
  static constexpr std::size_t kMostCalls = kTableBytes / sizeof(Call);

  explicit Calls(std::uint64_t address) : address_(address) {}
  Status make_ready(const ThreadName& thread, std::span<Call> calls, std::uint64_t mask) const;
  Status run_part(const ThreadName& thread, std::span<Call> calls, std::vector<pid_t>* made) const;

  std::uint64_t address_;
};

// Returns where an instruction for system calls lies in the memory of a process, as its mappings
// tell.
Result<std::uint64_t> find_call_instruction_of(pid_t process);

}  // namespace diapause::process
