#include "sys/lifeline.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <utility>

#include "sys/tasks.hpp"

namespace diapause::sys {
namespace {

constexpr char kReady = 'r';

int to_poll_ms(double seconds) {
  constexpr double kLongest = 1e6;
  return seconds > kLongest ? -1 : static_cast<int>(std::ceil(std::max(seconds, 0.0) * 1e3));
}

// Returns 0, or the errno of the call that failed.
int spawn(const std::vector<std::string>& command, int input, pid_t& child) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawn_file_actions_init(&files);
  // The process gets none of the program's files, because a reader of the program's output must not
  // wait for this process too.
  ::posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  const int error =
      ::posix_spawnp(&child, arguments[0], &files, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  return error;
}

bool is_ready(int socket, double wait_s) {
  pollfd answer{socket, POLLIN, 0};
  char text = 0;
  int count = 0;
  do {
    count = ::poll(&answer, 1, to_poll_ms(wait_s));
  } while (count < 0 && errno == EINTR);
  return count == 1 && ::recv(socket, &text, 1, MSG_DONTWAIT) == 1 && text == kReady;
}

}  // namespace

Result<Lifeline> Lifeline::start(const std::vector<std::string>& command, double wait_s) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail(os_error("cannot make a pair of sockets", errno));
  }
  Lifeline lifeline(ends[0]);
  pid_t child = 0;
  const int error = spawn(command, ends[1], child);
  ::close(ends[1]);
  if (error != 0) return fail(os_error("cannot run " + command[0], error));
  const bool ready = is_ready(lifeline.socket_, wait_s);
  if (!ready) ::kill(child, SIGKILL);
  // The started process has passed the lifeline to a child of its own and ended. A program that
  // waits for any child may have reaped it already.
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!ready) return fail(Code::io, command[0] + " was started, but does not keep watch");
  return lifeline;
}

Lifeline::Lifeline(Lifeline&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}

Lifeline::~Lifeline() {
  if (socket_ >= 0) ::close(socket_);
}

Status Lifeline::tell(const std::string& line) {
  const std::string text = line + "\n";
  ssize_t put = 0;
  do {
    put = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (put < 0 && errno == EINTR);
  if (put == static_cast<ssize_t>(text.size())) return {};
  return fail(os_error("the process that keeps watch does not listen", put < 0 ? errno : EAGAIN));
}

Result<Attendance> Attendance::begin(std::int64_t watched_process, std::uint64_t its_start_ticks) {
  for (const int number :
       {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP, SIGXCPU}) {
    ::signal(number, SIG_IGN);
  }
  const pid_t child = ::fork();
  if (child < 0) return fail(os_error("cannot leave the process that started this one", errno));
  if (child > 0) ::_exit(0);
  (void)!::chdir("/");  // so that no file system stays busy because of us
  const int socket = ::dup(STDIN_FILENO);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (socket < 0 || null < 0) return fail(os_error("cannot keep the lifeline open", errno));
  ::dup2(null, STDIN_FILENO);
  ::close(null);
  // The descriptor is opened before the start time is compared, so that no other process can take
  // the number in between.
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, watched_process, 0));
  const auto started = start_ticks(real_kernel(), watched_process);
  Attendance attendance(socket, process);
  attendance.has_ended_ = !started || *started != its_start_ticks;
  (void)::send(socket, &kReady, 1, MSG_NOSIGNAL);
  return attendance;
}

Attendance::Attendance(Attendance&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      process_(std::exchange(other.process_, -1)),
      has_ended_(other.has_ended_) {}

Attendance::~Attendance() {
  if (socket_ >= 0) ::close(socket_);
  if (process_ >= 0) ::close(process_);
}

std::optional<Attendance::News> Attendance::wait(double timeout_s) {
  if (has_ended_) return News{true, ""};
  // Poll ignores a negative descriptor.
  std::array<pollfd, 2> ends{pollfd{socket_, POLLIN, 0}, pollfd{process_, POLLIN, 0}};
  int count = 0;
  do {
    count = ::poll(ends.data(), ends.size(), to_poll_ms(timeout_s));
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return std::nullopt;
  News news;
  std::array<char, 512> text{};
  const ssize_t got = ::recv(socket_, text.data(), text.size(), MSG_DONTWAIT);
  if (got > 0) news.lines.assign(text.data(), static_cast<std::size_t>(got));
  news.has_ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) ||
                   (ends[1].revents != 0 && got <= 0);
  return news;
}

}  // namespace diapause::sys
