#include "sys/remote_command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

namespace diapause::sys {
namespace {

constexpr std::size_t kMostFrameBytes = 64 * 1024;
constexpr double kPatience_s = 1e9;  // the connection ends with its other end

enum class Kind : std::uint32_t { command = 1, input, end_of_input, output, errors, status };

struct Head {
  std::uint32_t kind = 0, bytes = 0;
};

Status send_frame(Stream& stream, Kind kind, ByteView data) {
  const Head head{static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(data.size())};
  DIAPAUSE_TRY(stream.send_all(as_byte_view(head), kPatience_s));
  return stream.send_all(data, kPatience_s);
}

struct Frame {
  Kind kind = Kind::command;
  ByteVector data;
};

Result<Frame> receive_frame(Stream& stream) {
  Head head;
  DIAPAUSE_TRY(stream.receive_all(std::as_writable_bytes(std::span(&head, 1)), kPatience_s));
  if (head.bytes > kMostFrameBytes) return fail(Code::corrupt, "the other end sends nonsense");
  Frame frame{static_cast<Kind>(head.kind), ByteVector(head.bytes)};
  DIAPAUSE_TRY(stream.receive_all(frame.data, kPatience_s));
  return frame;
}

// Reads what is there and sends it on. Returns false at the end.
Result<bool> forward(int from, Stream& to, Kind kind) {
  std::array<std::byte, kMostFrameBytes> room;
  const ssize_t got = ::read(from, room.data(), room.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) return false;
  DIAPAUSE_TRY(send_frame(to, kind, ByteView(room).first(static_cast<std::size_t>(got))));
  return true;
}

void write_all(int to, ByteView data) {
  while (!data.empty()) {
    const ssize_t written = ::write(to, data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // whoever read it has gone
    data = data.subspan(static_cast<std::size_t>(written));
  }
}

struct Pipes {
  std::array<int, 2> input{-1, -1}, output{-1, -1}, errors{-1, -1};
};

[[noreturn]] void become_shell(const Pipes& pipes, const std::string& command) {
  ::setsid();
  ::dup2(pipes.input[0], STDIN_FILENO);
  ::dup2(pipes.output[1], STDOUT_FILENO);
  ::dup2(pipes.errors[1], STDERR_FILENO);
  ::signal(SIGPIPE, SIG_DFL);
  ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  constexpr int kNoStart = 127;
  ::_exit(kNoStart);
}

class Served {
 public:
  Served(Stream& stream, pid_t process, const Pipes& pipes)
      : stream_(stream),
        process_(process),
        input_(pipes.input[1]),
        output_(pipes.output[0]),
        errors_(pipes.errors[0]) {}

  Status run() {
    while (output_ >= 0 || errors_ >= 0) {
      std::array<pollfd, 3> asked = {pollfd{stream_.fd(), POLLIN, 0}, pollfd{output_, POLLIN, 0},
                                     pollfd{errors_, POLLIN, 0}};
      if (::poll(asked.data(), asked.size(), -1) < 0) continue;
      if (asked[1].revents != 0) DIAPAUSE_TRY(forward_one(output_, Kind::output));
      if (asked[2].revents != 0) DIAPAUSE_TRY(forward_one(errors_, Kind::errors));
      if (asked[0].revents != 0) DIAPAUSE_TRY(take_input());
    }
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
    const std::int32_t ended = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return send_frame(stream_, Kind::status, as_byte_view(ended));
  }

 private:
  Status forward_one(int& from, Kind kind) {
    DIAPAUSE_TRY_ASSIGN(const bool goes_on, forward(from, stream_, kind));
    if (!goes_on) ::close(std::exchange(from, -1));
    return {};
  }

  Status take_input() {
    DIAPAUSE_TRY_ASSIGN(const Frame frame, receive_frame(stream_));
    if (frame.kind == Kind::input && input_ >= 0) write_all(input_, frame.data);
    if (frame.kind == Kind::end_of_input && input_ >= 0) ::close(std::exchange(input_, -1));
    return {};
  }

  Stream& stream_;
  pid_t process_;
  int input_, output_, errors_;
};

}  // namespace

Result<int> run_remotely(Stream& stream, const std::string& command) {
  DIAPAUSE_TRY(send_frame(stream, Kind::command, as_byte_view(std::string_view(command))));
  bool has_input = true;
  for (;;) {
    std::array<pollfd, 2> asked = {pollfd{stream.fd(), POLLIN, 0},
                                   pollfd{has_input ? STDIN_FILENO : -1, POLLIN, 0}};
    if (::poll(asked.data(), asked.size(), -1) < 0) continue;
    if (has_input && asked[1].revents != 0) {
      DIAPAUSE_TRY_ASSIGN(has_input, forward(STDIN_FILENO, stream, Kind::input));
      if (!has_input) DIAPAUSE_TRY(send_frame(stream, Kind::end_of_input, {}));
    }
    if (asked[0].revents == 0) continue;
    DIAPAUSE_TRY_ASSIGN(const Frame frame, receive_frame(stream));
    if (frame.kind == Kind::output) write_all(STDOUT_FILENO, frame.data);
    if (frame.kind == Kind::errors) write_all(STDERR_FILENO, frame.data);
    if (frame.kind == Kind::status) {
      std::int32_t status = 0;
      if (frame.data.size() == sizeof status)
        std::memcpy(&status, frame.data.data(), sizeof status);
      return status;
    }
  }
}

Status run_for_another(Stream& stream) {
  DIAPAUSE_TRY_ASSIGN(const Frame frame, receive_frame(stream));
  if (frame.kind != Kind::command) return fail(Code::corrupt, "the other end sends nonsense");
  const std::string command(reinterpret_cast<const char*>(frame.data.data()), frame.data.size());
  Pipes pipes;
  for (auto* pipe : {&pipes.input, &pipes.output, &pipes.errors}) {
    if (::pipe2(pipe->data(), O_CLOEXEC) != 0) return fail(os_error("making a pipe", errno));
  }
  ::signal(SIGCHLD, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  const pid_t process = ::fork();
  if (process == 0) become_shell(pipes, command);
  if (process < 0) return fail(os_error("starting a command", errno));
  ::close(pipes.input[0]);
  ::close(pipes.output[1]);
  ::close(pipes.errors[1]);
  return Served(stream, process, pipes).run();
}

void serve_forever(int listener, const std::function<void(Stream)>& serve) {
  ::signal(SIGCHLD, SIG_IGN);  // nobody waits for those that serve
  ::fcntl(listener, F_SETFD, FD_CLOEXEC);
  Listener door = Listener::adopt(listener);
  for (;;) {
    auto stream = door.accept(kPatience_s);
    if (!stream) continue;
    if (::fork() != 0) continue;
    ::close(listener);
    serve(std::move(*stream));
    ::_exit(0);
  }
}

void let_inherit(int fd) { ::fcntl(fd, F_SETFD, 0); }

}  // namespace diapause::sys
