// Declares the steps of dump(). Each is implemented in the file that is named after it.
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "process/dump.hpp"
#include "process/other_nodes.hpp"
#include "process/proc.hpp"
#include "process/sockets.hpp"

namespace diapause::process {

// Collects what the steps find in all processes.
struct DumpWork {
  FrozenJob& frozen;
  pid_t standard;
  std::uint32_t filters;  // seccomp filters that are not the program's own
  EmptyMessages& empty_messages;
  Dump result = {};
  std::vector<std::string> refusals = {};
  bool is_of_the_moment = true;  // whether all of them may be gone once the job has run on a little
  // The keys are device and inode, and the values indexes.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> memories = {};
  // This has the same of pipes.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> channels = {};
  // The keys are device, inode and name of files, because some file systems use an inode number
  // twice. The values are indexes of their pages.
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::string>, std::uint32_t> files = {};
  struct Seen {  // a description and one descriptor that has it
    pid_t here;
    int number;
    std::string link;
  };
  // Orders descriptions as the kernel does (kcmp), so that one among many is found soon.
  struct IsBefore {
    bool operator()(const Seen& one, const Seen& other) const;
  };
  std::map<Seen, std::uint32_t, IsBefore> known = {};  // indexes in `seen`
  struct SeenSocket {
    pid_t here;
    int number;
    std::uint64_t inode;
    ProcStatus status;         // status of the process
    std::string place;         // "descriptor 5 (socket:[77])"
    std::uint32_t queued = 0;  // for a listening socket: connections that nobody has accepted yet
  };
  struct SeenTerminal {
    std::uint32_t number = 0;         // number in /dev/pts
    pid_t master_here = 0, here = 0;  // who has its ends; 0: nobody in the job
    int master_number = -1, descriptor = -1;
    ProcStatus status = {};
    std::string place = {};
  };
  struct SeenLock {
    std::uint32_t process;  // 0 if the lock belongs to the description
    std::uint32_t description;
    FileLock lock;  // the lock, without process and number
    bool operator==(const SeenLock&) const = default;
  };
  std::vector<SeenLock> locks = {};
  std::vector<SeenTerminal> terminals = {};  // parallel to result.job.terminals
  std::vector<SeenSocket> sockets = {};      // parallel to result.job.sockets
  // Sockets of the machine, once there is one.
  std::map<std::uint32_t, UnixSocket> unix_sockets = {};
  // This is what `contents` holds already of shared memories.
  std::map<std::uint32_t, std::vector<Extent>> stored = {};
  std::uint64_t file_bytes = 0;  // bytes of files by name that `contents` holds
  std::vector<Seen> seen = {};   // parallel to result.job.descriptions
  // These are files that are mapped to be read, shared. They are taken for memory of the process
  // alone as long as nobody writes to them.
  struct OnlyRead {
    std::uint32_t process;  // its id
    std::uint64_t begin, offset;
    std::pair<std::uint64_t, std::uint64_t> file;  // device and inode
  };
  std::vector<OnlyRead> only_read = {};
  // These are connected sockets whose other ends this node does not have.
  std::vector<std::uint32_t> unmatched = {};

  void refuse(const ProcStatus& process, const std::string& what) {
    refuse_for_now(process, what);
    is_of_the_moment = false;
  }
  void refuse_for_now(const ProcStatus& process, const std::string& what) {
    refusals.push_back("process " + std::to_string(process.id) + " (" + process.name + ") " + what);
  }
};

// This is one descriptor of a process, as /proc shows it.
struct Found {
  pid_t here = 0;
  int number = 0;
  std::string link;
  std::string details;  // text of /proc/<pid>/fdinfo/<number>
  struct stat stat {};
  std::uint64_t number_of(std::string_view key, int base) const {
    return number_in(details, key, base).value_or(0);
  }
};

Status dump_memory(DumpWork& work, FrozenProcess& frozen, Process& process);
// Makes mappings of a file shared again if another process of the job writes to the file. It is
// called when all processes are known.
void share_what_is_only_read(DumpWork& work);
// Checks whether epoll sets watch what their descriptors are. It is called when all processes are
// known and in order.
void look_at_sets(DumpWork& work);
Status dump_threads(DumpWork& work, FrozenProcess& frozen, Process& process);
Status dump_descriptors(DumpWork& work, FrozenProcess& frozen, Process& process);
// Takes down what pipes and sockets hold. It is called when all descriptors are known.
Status dump_channels(DumpWork& work);
// Takes down the segments of System V. It is called when all processes are known and can do calls
// for us.
Status look_at_segments(DumpWork& work);
// Takes down semaphores and message queues of System V. It is called at the same time.
Status dump_system_v(DumpWork& work);
// Refuses message queues of POSIX, whether a process has them open or not.
void refuse_posix_queues(DumpWork& work);
// Returns whether a path leads to such a queue, or to the directory that has them.
bool is_of_posix_queues(const std::string& path);
// These are called when a process can do calls for us.
Status dump_timers(DumpWork& work, const FrozenProcess& frozen);
Status dump_privileges(DumpWork& work, const FrozenProcess& frozen);
Status dump_signal_owners(DumpWork& work, const FrozenProcess& frozen, const Process& process);
// This is called when all processes can do calls for us.
Status dump_stops(DumpWork& work);
// Describes an eventfd, timerfd, signalfd, epoll set or inotify. Returns false if the descriptor is
// none of these, or cannot be restored.
Result<bool> describe_event_source(DumpWork& work, const FrozenProcess& frozen, const Found& found,
                                   Description& to);
Status describe_pidfd(DumpWork& work, const FrozenProcess& frozen, const Found& found,
                      Description& to);
// Takes down what an inotify watches. Its description is the next one of the job.
Status dump_watches(DumpWork& work, const FrozenProcess& frozen, const Found& found);
Status describe_socket(DumpWork& work, const DumpWork::SeenSocket& seen, Description& to);
// Finds out which sockets are each other's ends. It is called when all descriptors are known.
Status connect_sockets(DumpWork& work);
// Does the same for those that lead to other nodes.
Status find_far_ends(DumpWork& work, OtherNodes& others);
// Decides about connections whose other ends nobody in the job has: they wait to be accepted, or
// are refused. `others` is null if there are no other nodes.
Status refuse_outsiders(DumpWork& work, const OtherNodes* others);
// Returns all bytes that can be read from a stream, which stay there.
Result<ByteVector> peek_stream(const DumpWork::SeenSocket& seen, int socket);
// Sends bytes once more that were taken out of a connection. Returns whether all could be sent.
bool put_back(int writer, ByteView bytes);
// Takes down what is on its way between nodes. It is called when nothing is refused any more on any
// node.
Status take_down_far_sockets(DumpWork& work, OtherNodes& others);
// Takes down what waits in the sockets. It is called when nothing is refused any more.
Status take_down_sockets(DumpWork& work);
// Takes down the settings of the pseudo-terminals. It is called when all descriptors are known.
Status look_at_terminals(DumpWork& work);
// Takes down what waits in the pseudo-terminals. It is called when nothing is refused any more.
Status take_down_terminals(DumpWork& work);
// Returns the parts of a range of shared memory that are not in the contents yet. From then on they
// count as stored.
std::vector<Extent> take_unstored(DumpWork& work, std::uint32_t shared, Extent range);

}  // namespace diapause::process
