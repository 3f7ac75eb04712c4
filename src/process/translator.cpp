#include "process/translator.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "process/borrowed.hpp"
#include "process/make_socket.hpp"
#include "process/proc.hpp"
#include "process/sockets.hpp"
#include "process/trace.hpp"

namespace diapause::process {
namespace {

constexpr int kGlance_ms = 50;

// This is a call that its caller waits for. The id is the kernel's.
struct Request {
  std::uint64_t id = 0;
  pid_t caller = 0;  // the thread
  int call = 0;
  std::array<std::uint64_t, 6> arguments{};
};

ino_t inode_of(int file) {
  struct stat found {};
  return ::fstat(file, &found) == 0 ? found.st_ino : 0;
}

bool waits(int socket) { return (::fcntl(socket, F_GETFL) & O_NONBLOCK) == 0; }

bool is_of_internet(int socket) {
  int family = 0;
  socklen_t length = sizeof family;
  return ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 &&
         (family == AF_INET || family == AF_INET6);
}

class Translator {
 public:
  Translator(int listener, const Relocation& relocation, PortsOfNodes& ports)
      : listener_(listener), relocation_(relocation), ports_(ports) {}

  void run() {
    for (;;) {
      pollfd asked{listener_, POLLIN, 0};
      if (::poll(&asked, 1, -1) < 0 && errno != EINTR) return;
      if ((asked.revents & POLLIN) != 0) take_one();
      if ((asked.revents & POLLIN) == 0 && asked.revents != 0) return;
    }
  }

 private:
  void take_one() {
    seccomp_notif got{};
    if (::ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, &got) != 0) return;
    Request request;
    request.id = got.id;
    request.caller = static_cast<pid_t>(got.pid);
    request.call = got.data.nr;
    std::copy_n(got.data.args, request.arguments.size(), request.arguments.begin());
    auto socket =
        leader_of(request.caller) <= 0
            ? fail(Code::not_found, "it has ended")
            : Borrowed::of(leader_of(request.caller), static_cast<int>(request.arguments[0]));
    if (!socket || !is_of_internet(socket->number())) return leave_to_kernel(request);
    switch (request.call) {
      case SYS_connect:
        return connect(request, std::move(*socket));
      case SYS_bind:
        return bind(request, *socket);
      case SYS_getsockname:
        return tell_name(request, *socket, ::getsockname);
      case SYS_getpeername:
        return tell_name(request, *socket, ::getpeername);
      default:
        return accept(request, std::move(*socket));
    }
  }

  // The kernel tells the thread; a descriptor of its is had from the first thread of its process.
  static pid_t leader_of(pid_t thread) {
    const auto text = read_proc(fmt::format("/proc/{}/status", thread));
    return text ? static_cast<pid_t>(number_in(*text, "Tgid", 10).value_or(0)) : 0;
  }

  // ---- answers

  bool answer(const Request& request, std::int64_t value, int error,
              std::uint32_t flags = 0) const {
    seccomp_notif_resp response{};
    response.id = request.id;
    response.val = value;
    response.error = -error;
    response.flags = flags;
    return ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &response) == 0;
  }
  // Lets the caller do the call itself.
  void leave_to_kernel(const Request& request) const {
    answer(request, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
  }
  // Returns whether the caller still waits. A signal may have interrupted it; then it calls again.
  bool is_awaited(const Request& request) const {
    return ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_ID_VALID, &request.id) == 0;
  }

  // ---- memory of the caller

  ByteVector address_of_caller(const Request& request) const {
    const std::uint64_t length = request.arguments[2];
    ByteVector address(std::min<std::uint64_t>(length, sizeof(sockaddr_storage)));
    if (length > sizeof(sockaddr_storage) ||
        !read_memory(request.caller, request.arguments[1], address) || !is_awaited(request))
      return {};
    return address;
  }

  // Gives an address as calls do that return one: no more bytes than there is room for, and the
  // length that it has. Returns the error of the call.
  static int give_address(const Request& request, const ByteVector& address) {
    socklen_t room = 0;
    if (!read_memory(request.caller, request.arguments[2],
                     std::as_writable_bytes(std::span(&room, 1))))
      return EFAULT;
    if (static_cast<int>(room) < 0) return EINVAL;
    const auto length = static_cast<socklen_t>(address.size());
    const ByteView shown = ByteView(address).first(std::min<std::size_t>(room, length));
    if (!write_memory(request.caller, request.arguments[1], shown) ||
        !write_memory(request.caller, request.arguments[2], as_byte_view(length)))
      return EFAULT;
    return 0;
  }

  ByteVector known(const ByteVector& address, std::uint32_t node) const {
    return node == kNone ? address : relocation_.known(address, node);
  }

  // Several nodes may have the address of this machine.
  std::uint32_t node_of_peer(const ByteVector& address) const {
    const std::uint32_t by_port = ports_.node_of(port_of(address));
    const std::uint32_t by_host = relocation_.node_of(address);
    return by_host == relocation_.own() && by_port != kNone ? by_port : by_host;
  }

  // ---- calls

  // A connection that waits until it is made must not keep other callers waiting.
  void connect(const Request& request, Borrowed socket) {
    const ByteVector named = address_of_caller(request);
    const ByteVector to = relocation_.present(named);
    const bool is_marked = ports_.is_open() && relocation_.node_of(to) != kNone;
    if (named.empty() || (to == named && !is_marked)) return leave_to_kernel(request);
    if (is_marked) mark(socket.number());
    if (!waits(socket.number())) return finish_connect(request, socket, to);
    std::thread([this, request, to, held = std::move(socket)] {
      finish_connect(request, held, to);
    }).detach();
  }

  // The node at the other end learns from the port whose connection it is.
  void mark(int socket) {
    ByteVector local = address_by(socket, ::getsockname);
    if (port_of(local) == 0) {
      if (::bind(socket, address_in(local), length_of(local)) != 0) return;
      local = address_by(socket, ::getsockname);
    }
    ports_.set(port_of(local), relocation_.own());
  }

  // A caller that was interrupted when its connection had been made does not know of that yet.
  void finish_connect(const Request& request, const Borrowed& socket, const ByteVector& to) {
    const bool is_done = ::connect(socket.number(), address_in(to), length_of(to)) == 0;
    int error = is_done ? 0 : errno;
    const std::lock_guard lock(mutex_);
    const ino_t inode = inode_of(socket.number());
    if (error == EISCONN && made_.erase(inode) > 0) error = 0;
    if (!answer(request, 0, error) && error == 0) made_.insert(inode);
  }

  void bind(const Request& request, const Borrowed& socket) {
    const ByteVector named = address_of_caller(request);
    const ByteVector to = relocation_.present_host(named);
    if (named.empty() || to == named) return leave_to_kernel(request);
    const bool is_done = ::bind(socket.number(), address_in(to), length_of(to)) == 0;
    answer(request, 0, is_done ? 0 : errno);
  }

  void tell_name(const Request& request, const Borrowed& socket, AskAddress& ask) {
    const ByteVector address = address_by(socket.number(), ask);
    const std::uint32_t node =
        request.call == SYS_getsockname ? relocation_.own() : node_of_peer(address);
    const ByteVector told = known(address, node);
    if (told == address) return leave_to_kernel(request);
    if (is_awaited(request)) answer(request, 0, give_address(request, told));
  }

  void accept(const Request& request, Borrowed door) {
    if (!waits(door.number())) return void(try_to_accept(request, door));
    std::thread([this, request, held = std::move(door)] {
      while (is_awaited(request) && !try_to_accept(request, held)) {
        pollfd asked{held.number(), POLLIN, 0};
        ::poll(&asked, 1, kGlance_ms);
      }
    }).detach();
  }

  // Returns whether the caller has its answer.
  bool try_to_accept(const Request& request, const Borrowed& door) {
    const std::lock_guard lock(mutex_);
    const ino_t inode = inode_of(door.number());
    std::deque<Owned>& kept = accepted_[inode];
    pollfd asked{door.number(), POLLIN, 0};
    if (kept.empty() && ::poll(&asked, 1, 0) <= 0) {
      if (!waits(door.number())) answer(request, 0, EAGAIN);
      return !waits(door.number());
    }
    if (kept.empty()) {
      Owned accepted(::accept4(door.number(), nullptr, nullptr, SOCK_CLOEXEC));
      if (accepted.number() < 0) return answer(request, 0, errno);
      kept.push_back(std::move(accepted));
    }
    if (!is_awaited(request)) return true;
    give_accepted(request, kept);
    return true;
  }

  // A connection that was accepted for a caller that was interrupted is for the next one.
  void give_accepted(const Request& request, std::deque<Owned>& kept) {
    const Owned& accepted = kept.front();
    const ByteVector peer = address_by(accepted.number(), ::getpeername);
    const auto flags = request.call == SYS_accept4 ? static_cast<int>(request.arguments[3]) : 0;
    if (const int error = give_address(request, known(peer, node_of_peer(peer))); error != 0) {
      answer(request, 0, error);
      return;
    }
    if ((flags & SOCK_NONBLOCK) != 0) ::fcntl(accepted.number(), F_SETFL, O_RDWR | O_NONBLOCK);
    seccomp_notif_addfd given{};
    given.id = request.id;
    given.flags = SECCOMP_ADDFD_FLAG_SEND;
    given.srcfd = static_cast<std::uint32_t>(accepted.number());
    given.newfd_flags = (flags & SOCK_CLOEXEC) != 0 ? O_CLOEXEC : 0;
    const bool is_given = ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_ADDFD, &given) >= 0;
    const int error = errno;
    if (is_given) kept.pop_front();
    if (!is_given && error != ENOENT && error != EINPROGRESS) answer(request, 0, error);
  }

  int listener_;
  const Relocation& relocation_;
  PortsOfNodes& ports_;
  std::mutex mutex_;  // guards what follows
  std::set<ino_t> made_;
  std::map<ino_t, std::deque<Owned>> accepted_;  // by the listening socket
};

}  // namespace

ByteVector address_filter() {
  constexpr std::uint32_t kArchitecture = offsetof(seccomp_data, arch),
                          kCall = offsetof(seccomp_data, nr),
                          kAddress = offsetof(seccomp_data, args[1]);
  // Distances of jumps are counted from the next instruction.
  const sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kArchitecture),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 11),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kCall),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 10, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bind, 9, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockname, 8, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpeername, 7, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_accept, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_accept4, 0, 4),
      // Who accepts a connection without asking from whom needs no translation.
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kAddress),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kAddress + sizeof(std::uint32_t)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
  };
  const ByteView bytes = std::as_bytes(std::span(program));
  return {bytes.begin(), bytes.end()};
}

PortsOfNodes::PortsOfNodes(const std::string& path) {
  const int file = path.empty() ? -1 : ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void* const at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at != MAP_FAILED) cells_ = static_cast<std::atomic<std::uint32_t>*>(at);
  ::close(file);
}

PortsOfNodes::~PortsOfNodes() {
  if (is_open()) ::munmap(cells_, kBytes);
}

void PortsOfNodes::set(std::uint16_t port, std::uint32_t node) {
  if (is_open()) cells_[port].store(node + 1, std::memory_order_relaxed);
}

std::uint32_t PortsOfNodes::node_of(std::uint16_t port) const {
  const std::uint32_t value = is_open() ? cells_[port].load(std::memory_order_relaxed) : 0;
  return value == 0 ? kNone : value - 1;
}

void translate_addresses(int listener, const Relocation& relocation, PortsOfNodes& ports) {
  Translator(listener, relocation, ports).run();
}

}  // namespace diapause::process
