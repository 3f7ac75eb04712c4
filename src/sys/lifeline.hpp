// A process that looks at the end of another one, and stays when that one goes, by whatever signal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

// The end that a program holds. It is never forked, only spawned: an MPI program must not be copied. The other process
// has a session of its own, none of the program's files, and is no child of the program once start() has returned, so
// that no wait() of the program can meet it.
class Lifeline {
 public:
  // Starts the command (looked up in PATH), which has to call Attendance::begin; waits for that, at most `wait_s`.
  static Result<Lifeline> start(const std::vector<std::string>& command, double wait_s);
  Lifeline(Lifeline&& other) noexcept;
  Lifeline& operator=(Lifeline&&) = delete;
  ~Lifeline();  // the other process sees the end

  // Sends a line, without waiting; fails if the other process is gone.
  Status tell(const std::string& line);

 private:
  explicit Lifeline(int socket) : socket_(socket) {}
  int socket_;
};

// The other end. Changes what the whole process does with signals and files: for a process that does nothing else.
class Attendance {
 public:
  // Leaves the starter, closes its files, ignores the signals that ask programs to end, and says that it is ready.
  // To be called in the process that Lifeline::start started, before there are threads.
  static Result<Attendance> begin(std::int64_t watched_process, std::uint64_t its_start_ticks);
  Attendance(Attendance&& other) noexcept;
  Attendance& operator=(Attendance&&) = delete;
  ~Attendance();

  struct News {
    bool has_ended = false;  // the process, or its end of the lifeline is closed
    std::string lines;       // what it told
  };
  // Sleeps until there is something; nullopt when `timeout_s` (may be infinite) is over. Children of the program that
  // hold its files do not keep its end from being seen.
  std::optional<News> wait(double timeout_s);

 private:
  Attendance(int socket, int process) : socket_(socket), process_(process) {}
  int socket_, process_;    // the lifeline, and a descriptor of the process; -1 where the kernel gives none
  bool has_ended_ = false;  // before we looked
};

}  // namespace diapause::sys
