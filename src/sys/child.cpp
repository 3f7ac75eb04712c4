#include "sys/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "sys/open_files.hpp"

namespace diapause::sys {
namespace {

// A pipe holds this much for sure, so that nobody waits for the command to read.
constexpr int kPipeBytes = 1 << 20;

[[noreturn]] void become(std::vector<char*>& arguments, int input) {
  restore_open_files();
  ::setsid();
  ::dup2(input, STDIN_FILENO);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvp(arguments[0], arguments.data());
  constexpr int kNoStart = 127;
  ::_exit(kNoStart);
}

}  // namespace

Result<std::int64_t> start_with_input(const std::vector<std::string>& words,
                                      const std::string& input) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return fail(os_error("making a pipe", errno));
  ::fcntl(pipe[1], F_SETPIPE_SZ, kPipeBytes);
  ::fcntl(pipe[1], F_SETFL, O_NONBLOCK);
  const ssize_t written = ::write(pipe[1], input.data(), input.size());
  ::close(pipe[1]);
  const pid_t child = written == static_cast<ssize_t>(input.size()) ? ::fork() : -1;
  const int error = errno;
  if (child == 0) become(arguments, pipe[0]);
  ::close(pipe[0]);
  if (child < 0) return fail(os_error("starting " + words.front(), error));
  return child;
}

std::optional<int> status_if_ended(std::int64_t process) {
  int status = 0;
  const pid_t ended = ::waitpid(static_cast<pid_t>(process), &status, WNOHANG);
  if (ended < 0 && errno == ECHILD) return 0;
  if (ended <= 0) return std::nullopt;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void kill_child(std::int64_t process) { ::kill(static_cast<pid_t>(process), SIGKILL); }

Result<std::string> take_standard_input(std::size_t most_bytes) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(os_error("reading standard input", errno));
    if (got == 0) break;
    text.append(part.data(), static_cast<std::size_t>(got));
    if (text.size() > most_bytes) return fail(Code::corrupt, "standard input is too long");
  }
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || ::dup2(null, STDIN_FILENO) < 0) return fail(os_error("opening /dev/null", errno));
  ::close(null);
  return text;
}

Status make_link(const std::string& target, const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return fail(os_error("replacing " + path, errno));
  if (::symlink(target.c_str(), path.c_str()) == 0 || errno == EEXIST) return {};
  return fail(os_error("making the link " + path, errno));
}

Status replace_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  return fail(os_error(fmt::format("renaming {} to {}", from, to), errno));
}

void remove_directory(const std::string& path) { ::rmdir(path.c_str()); }

Status change_directory(const std::string& path) {
  if (::chdir(path.c_str()) == 0) return {};
  return fail(os_error("going to the directory " + path, errno));
}

void set_environment(const std::string& name, const std::string& value) {
  ::setenv(name.c_str(), value.c_str(), 1);
}

}  // namespace diapause::sys
