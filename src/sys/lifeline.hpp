// Lets a process watch for the end of another one and survive it, whatever signal ends that one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

// This is the program's end of the lifeline. The other process is spawned and never forked, because
// an MPI program must not be copied. It has a session of its own and none of the program's files.
// Once start() has returned it is no child of the program, so that no wait() of the program can
// return it.
class Lifeline {
 public:
  // Starts the command (looked up in PATH), which has to call Attendance::begin(), and waits for
  // that for at most `wait_s` seconds.
  static Result<Lifeline> start(const std::vector<std::string>& command, double wait_s);
  Lifeline(Lifeline&& other) noexcept;
  Lifeline& operator=(Lifeline&&) = delete;
  ~Lifeline();  // the other process notices the end

  // Sends a line without waiting. Fails if the other process has ended.
  Status tell(const std::string& line);

 private:
  explicit Lifeline(int socket) : socket_(socket) {}
  int socket_;
};

// This is the other process's end. It changes the signals and files of the whole process, which
// must do nothing else.
class Attendance {
 public:
  // Detaches from the starter, closes its files, ignores the signals that ask programs to end, and
  // reports that it is ready. Must be called in the process that Lifeline::start() started, before
  // any thread is made.
  static Result<Attendance> begin(std::int64_t watched_process, std::uint64_t its_start_ticks);
  Attendance(Attendance&& other) noexcept;
  Attendance& operator=(Attendance&&) = delete;
  ~Attendance();

  struct News {
    bool has_ended = false;  // the process has ended, or its end of the lifeline is closed
    std::string lines;       // lines that it sent
  };
  // Sleeps until there is news. Returns nullopt when `timeout_s` (may be infinite) is over. The end
  // of the program is noticed even if children of it hold its files.
  std::optional<News> wait(double timeout_s);

 private:
  Attendance(int socket, int process) : socket_(socket), process_(process) {}
  // These are the lifeline, and a descriptor of the process, which is -1 where the kernel gives
  // none.
  int socket_, process_;
  bool has_ended_ = false;  // before begin()
};

}  // namespace diapause::sys
