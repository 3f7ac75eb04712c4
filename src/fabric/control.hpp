// A process that uses verbs and the agent of its job communicate by a page that both have mapped,
// and records behind it. The page is the beginning of a memfd of the process. Its layout is that of
// this machine and is never stored as such.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace diapause::fabric {

inline constexpr std::string_view kMemoryName = "diapause-verbs";
// The memfd that a restart makes has this link, too.
inline constexpr std::string_view kMemoryLink = "/memfd:diapause";
inline constexpr std::uint64_t kMagic = 0x31'73'62'72'65'76'2e'64;  // the bytes of "d.verbs1"
inline constexpr std::uint64_t kPageSize = 4096;

// The agent asks for these steps in this order. Every process has answered one step before any gets
// the next.
enum class Step : std::uint32_t {
  none = 0,
  stop,     // no thread goes on in a verb; records of all that others must know are published
  drain,    // all that was sent has arrived; gets the records of all
  close,    // all adapters are closed
  open,     // everything is made again, and published with its new numbers
  connect,  // queue pairs find their peers by the records of all
  go_on,    // threads go on
};

// Where the thread begins again that waits in a process for the agent. It ends whenever no pause is
// under way: a program that has one thread keeps to one, in whose calls the kernel has less to do.
// These are addresses in the process.
struct Listener {
  std::atomic<std::uint64_t> entry{0};  // a function that takes nothing; 0: the thread never ends
  std::uint64_t stack = 0;              // the place of that function's return address
  std::uint64_t thread_area = 0;        // thread-local storage
  std::uint64_t id_at = 0;              // the thread's id; 0 there says that it has ended
};

// The state of a process, by the last step that it has done, as far as the agent must know it after
// a restart.
struct Page {
  std::uint64_t magic = kMagic;
  std::uint32_t owner = 0;  // the process, as it knows itself; a child that was forked is another
  std::atomic<std::uint32_t> request{
      0};  // a number that changes with each request; its last three bits: the step
  std::atomic<std::uint32_t> answer{0};   // the last request that was dealt with
  std::uint32_t code = 0;                 // 0, or the Code of the failure
  std::uint32_t is_closed = 0;            // adapters are closed
  std::uint32_t is_stopped = 0;           // threads wait in verbs
  std::uint64_t published = 0;            // records from kPageSize on
  std::uint64_t given = 0, given_at = 0;  // records of all processes, and where they begin
  char problem[1024] = {};                // the text of the failure
  Listener listener;                      // all 0 in processes of older versions
};
static_assert(sizeof(Page) <= kPageSize);

inline constexpr std::uint32_t kStepMask = 7;

using Gid = std::array<std::uint8_t, 16>;

enum class RecordKind : std::uint32_t { port = 1, gid, pair, key };

// One thing that has a number. "Shown" is what the program knows, "real" what the adapter says now.
struct Record {
  RecordKind kind = RecordKind::port;
  std::uint32_t port = 0;   // the number of the port at its adapter
  std::uint64_t home = 0;   // an adapter as one process has opened it
  std::uint32_t shown = 0;  // LID, number of the queue pair, or remote key
  std::uint32_t real = 0;
  Gid shown_gid{};  // the identifier of a gid; for a connected pair, that of its peer as the
                    // program knows it
  Gid real_gid{};
  // The rest is of a queue pair.
  std::uint32_t peer = 0;          // number of its peer as the program knows it
  std::uint32_t peer_lid = 0;      // the peer's LID if it has no GID
  std::uint32_t is_by_gid = 0;     // the peer is known by its GID
  std::uint32_t is_reliable = 0;   // it is of the kind RC
  std::uint32_t is_connected = 0;  // it may receive from its peer
  std::uint32_t is_broken = 0;     // it is in an error state
  std::uint64_t sent = 0;  // messages that take a receive of the peer, since it was connected
};

}  // namespace diapause::fabric
