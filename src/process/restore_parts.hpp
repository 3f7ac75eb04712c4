// Declares the steps of restore(). Each is implemented in the file that is named after it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "process/calls.hpp"
#include "process/kernel_code.hpp"
#include "process/restore.hpp"
#include "process/schedule.hpp"
#include "process/x86_64/processor.hpp"

namespace diapause::process {

// This is a process that is being restored.
struct Made {
  const Process* stored = nullptr;
  std::vector<ThreadName> threads;  // parallel to stored->threads
  std::uint64_t instruction = 0;    // for system calls, in the kernel's code at its final place
  std::uint64_t code_place = 0;     // of the kernel's code; 0: the process has none

  const ThreadName& leader() const { return threads.front(); }
};

struct RestoreWork {
  const Job& job;
  const Openings& openings;
  const std::vector<StoredContents>& contents;
  const ReadContents& read;
  Schedule given;  // the schedule with which the job is restarted
  Calls calls;     // at the same address in all processes
  const LogSink& log;
  KernelCode kernel_code;
  Processor processor;
  FillBehind* behind = nullptr;  // null: all memory is filled at once
  std::vector<Made> made = {};
  TimedCalls timed = {};
  // This says what of the threads could not be restored, and why.
  std::map<std::string, std::vector<std::uint32_t>> lost = {};
  // This says beside job.memories which segments of System V have their contents.
  std::vector<bool> filled = {};
};

// Does a call that has a text or a structure among its arguments, which is put at room().
Result<std::uint64_t> call_with(const RestoreWork& work, const ThreadName& thread,
                                ByteView argument, const Call& call);

// Makes a process or thread with an id of our choice, by clone3 in `parent`. It stands still. When
// it ends, its parent gets the signal `end_signal`, and none if that is 0, as for all threads.
Result<pid_t> make_task(const RestoreWork& work, const ThreadName& parent, std::uint64_t flags,
                        std::uint32_t id, std::uint32_t end_signal);

// Returns what is stored of a shared memory.
ContentsList contents_of_memory(const RestoreWork& work, std::uint32_t index);

// Process 1 makes the segments of System V, which are empty at first. In the end it removes those
// that no process has, if they were to end with the last process that has them.
Status make_segments(const RestoreWork& work, const ThreadName& keeper);
Status forget_segments(RestoreWork& work, const ThreadName& keeper);
// Tells the kernel which id the next object of System V is to have. `file` is in /proc/sys/kernel.
struct NextId {
  const char* file;
  std::uint32_t id;
};
Status write_next_id(const RestoreWork& work, const ThreadName& keeper, const NextId& next);
// Lets process 1 make the semaphores and message queues of System V.
Status make_system_v(const RestoreWork& work, const ThreadName& keeper);
Status restore_timers(const RestoreWork& work, const Made& made);
Status restore_signal_owners(const RestoreWork& work, const Made& made);
Status restore_barriers(const RestoreWork& work, const Made& made);
// The first is called before the capabilities themselves are restored, and the second after that.
Status restore_limits_of_capabilities(RestoreWork& work, const Made& made);
Status restore_ambient_capabilities(RestoreWork& work, const Made& made);
// Takes the SIGCHLD that a process is just getting.
Status take_child_signal(const RestoreWork& work, const ThreadName& thread);
// Stops processes that were stopped. They are made by then, and `work` does not have them any more
// afterwards.
Status restore_stops(RestoreWork& work);

Status restore_memory(RestoreWork& work, Made& made);
Status restore_descriptors(RestoreWork& work, Made& made);
// Opens the files of /proc that a process had open. All processes and threads exist by then.
Status restore_files_of_proc(RestoreWork& work, Made& made);
// Restores what belongs to the whole process, except its memory and its threads.
Status restore_attributes(RestoreWork& work, Made& made);
// Makes the other threads, and restores everything of all threads except their registers.
Status restore_threads(RestoreWork& work, Made& made);
// Unmaps our code and sets the registers. After that the process only has to be let go.
Status finish_threads(RestoreWork& work, Made& made);

}  // namespace diapause::process
