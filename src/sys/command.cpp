#include "sys/command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/bytes.hpp"

namespace diapause::sys {
namespace {

// Returns the arguments as exec and spawn expect them. The pointers refer to `command`.
std::vector<char*> pointers_to(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

// Returns 0, or the errno of the call that failed.
int spawn(const std::vector<std::string>& command, int output, pid_t& child) {
  const std::vector<char*> arguments = pointers_to(command);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  ::posix_spawnattr_init(&attributes);
  // The caller may have blocked some.
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  const int error =
      ::posix_spawnp(&child, arguments[0], &files, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  return error;
}

std::string read_to_end(int input) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t got = ::read(input, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || text.size() + static_cast<std::size_t>(got) > kMiB) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<std::string> output_of(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(os_error("cannot make a pipe", errno));
  pid_t child = 0;
  const int error = spawn(command, ends[1], child);
  ::close(ends[1]);
  std::string text = error == 0 ? read_to_end(ends[0]) : "";
  ::close(ends[0]);
  if (error != 0) return fail(os_error("cannot run " + command[0], error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) return fail(Code::io, fmt::format("{} failed", fmt::join(command, " ")));
  return text;
}

Error become(const std::vector<std::string>& command) {
  ::execvp(command[0].c_str(), pointers_to(command).data());
  return os_error("cannot run " + command[0], errno);
}

}  // namespace diapause::sys
