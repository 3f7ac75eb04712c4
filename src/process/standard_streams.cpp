#include "process/standard_streams.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "process/file_access.hpp"

namespace diapause::process {
namespace {

std::string name_of(const Description& one) {
  return one.which == STDIN_FILENO ? "standard input" : fmt::format("descriptor {}", one.which);
}

// Returns whether a stream is a file that the job was reading.
bool is_read_file(const Description& one) {
  const bool is_output = one.which == STDOUT_FILENO || one.which == STDERR_FILENO;
  return !one.path.empty() && !is_output && (one.flags & O_ACCMODE) != O_WRONLY;
}

// Returns whether this process was started with the descriptor. What it has opened itself, which
// may be in the place of a closed one, is closed when it starts a program.
bool is_given(int number) {
  const int flags = ::fcntl(number, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

// Returns whether there is nothing to be read from a descriptor that was given on purpose.
bool is_nothing(int number, const struct stat& given) {
  const bool is_null = S_ISCHR(given.st_mode) && given.st_rdev == makedev(1, 3);
  return is_null || ::isatty(number) == 1;
}

Result<int> open_again(const Description& one) {
  const int file = open_as_owner(
      one.path, static_cast<int>(one.flags & ~static_cast<std::uint32_t>(O_CREAT | O_EXCL |
                                                                         O_TRUNC | O_NOCTTY)));
  if (file >= 0) return file;
  Error why = os_error(
      fmt::format("opening {}, which the job had as its {}", one.path, name_of(one)), errno);
  why.message += fmt::format(
      ". Put it back, or give this command what the job still has to read as its {}: it had read "
      "{} bytes",
      name_of(one), one.offset);
  return fail(std::move(why));
}

// Lets a file go on where the job was in it.
Status go_on(int file, const Description& one) {
  struct stat now {};
  if (::fstat(file, &now) != 0) return fail(os_error("looking at " + one.path, errno));
  if (S_ISREG(now.st_mode) && static_cast<std::uint64_t>(now.st_size) < one.offset) {
    return fail(Code::mismatch, fmt::format("{}, which is the {} of the job, has {} bytes, and the "
                                            "job had read {} of it already",
                                            one.path, name_of(one), now.st_size, one.offset));
  }
  if (::lseek(file, static_cast<off_t>(one.offset), SEEK_SET) >= 0) return {};
  return fail(os_error("going on in " + one.path, errno));
}

}  // namespace

Result<StandardStream> open_standard_stream(const Description& one, const LogSink& log) {
  const auto number = static_cast<int>(one.which);
  struct stat given {
  }, by_path{};
  const bool is_there = is_given(number) && ::fstat(number, &given) == 0;
  StandardStream stream;
  const bool is_opened_again = is_read_file(one) && (!is_there || is_nothing(number, given));
  stream.takes_place = is_opened_again && is_there;
  if (is_opened_again) {
    DIAPAUSE_TRY_ASSIGN(stream.file, open_again(one));
  } else {
    stream.file = is_there ? ::dup(number) : ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (stream.file < 0) return fail(os_error("opening the " + name_of(one), errno));
  }
  const bool is_same =
      is_opened_again || (S_ISREG(given.st_mode) && ::stat(one.path.c_str(), &by_path) == 0 &&
                          by_path.st_dev == given.st_dev && by_path.st_ino == given.st_ino);
  if (is_read_file(one) && is_same) {
    if (Status done = go_on(stream.file, one); !done) {
      ::close(stream.file);
      return fail(std::move(done.error()));
    }
  } else if (is_read_file(one) && one.offset > 0) {
    log(Severity::warning,
        fmt::format("the job had read {} bytes of {} as its {}, and goes on with what this restart "
                    "was given instead, from where that is now",
                    one.offset, one.path, name_of(one)));
  }
  return stream;
}

}  // namespace diapause::process
