#include "sys/process.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace diapause::sys {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

Result<std::string> current_directory() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::current_path(error);
  if (!error) return path.string();
  if (error.value() == ENOENT) {
    return fail(Code::not_found,
                "the working directory has been removed: change into a directory that exists");
  }
  return fail(Code::io, "cannot tell the working directory: " + error.message());
}

Result<std::string> absolute_path(const std::string& path) {
  if (path.starts_with('/')) return path;
  DIAPAUSE_TRY_ASSIGN(const std::string here, current_directory());
  return here + "/" + path;
}

std::uint64_t file_size_limit() {
  rlimit limit;
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur
                                                                                   : UINT64_MAX;
}

std::string own_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

std::uint32_t user_id() { return geteuid(); }

std::int64_t process_id() { return getpid(); }

std::uint64_t unix_time_ns() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count());
}

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) == 1; }

bool is_deserted(std::FILE* stream) {
  pollfd one{::fileno(stream), POLLOUT, 0};
  return ::poll(&one, 1, 0) == 1 && (one.revents & (POLLERR | POLLHUP)) != 0;
}

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double processor_s() {
  timespec had{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &had) != 0) return 0;
  return static_cast<double>(had.tv_sec) + 1e-9 * static_cast<double>(had.tv_nsec);
}

double ticks_per_second() { return static_cast<double>(sysconf(_SC_CLK_TCK)); }

Result<double> processor_s_of(std::int64_t process) {
  clockid_t clock{};
  timespec had{};
  const bool is_known =
      process > 0 && clock_getcpuclockid(static_cast<pid_t>(process), &clock) == 0;
  if (!is_known || clock_gettime(clock, &had) != 0) {
    return fail(Code::not_found, "process " + std::to_string(process) + " cannot be seen");
  }
  return static_cast<double>(had.tv_sec) + 1e-9 * static_cast<double>(had.tv_nsec);
}

ProcessorTime processor_time() {
  ProcessorTime time;
  time.had_s = processor_s();
  // The fields are run time, waiting time and number of turns, in nanoseconds. The run time there
  // is only as recent as the last tick.
  std::FILE* const file = std::fopen("/proc/thread-self/schedstat", "re");
  if (file == nullptr) return time;
  std::array<char, 80> line{};
  const std::size_t length = std::fread(line.data(), 1, line.size(), file);
  (void)std::fclose(file);
  const auto* const second = std::find(line.begin(), line.begin() + length, ' ');
  std::uint64_t waited_ns = 0;
  if (second != line.begin() + length)
    std::from_chars(second + 1, line.begin() + length, waited_ns);
  time.waited_s = 1e-9 * static_cast<double>(waited_ns);
  return time;
}

Status random_bytes(MutableBytes out) {
  while (!out.empty()) {
    const ssize_t got = getrandom(out.data(), out.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(os_error("getrandom", errno));
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> environment() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != text.npos)
      variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

void put_first_in_list(const std::string& variable, const std::string& word) {
  const char* const before = std::getenv(variable.c_str());
  const bool is_empty = before == nullptr || *before == '\0';
  ::setenv(variable.c_str(), (is_empty ? word : word + ':' + before).c_str(), 1);
}

}  // namespace diapause::sys
