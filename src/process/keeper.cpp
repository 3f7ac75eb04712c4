#include "process/keeper.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "process/freeze.hpp"
#include "process/trace.hpp"
#include "sys/open_files.hpp"

namespace diapause::process {
namespace {

constexpr int kNoStart = 127;
constexpr int kLook_ms = 1000;  // between two looks whether a command is alone

struct Pipe {
  int read = -1, write = -1;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(os_error("making a pipe", errno));
  return Pipe{ends[0], ends[1]};
}

// These are the orders for process 1. It is forked from a process that may have threads, so it must
// not call anything that allocates memory or takes a lock.
struct Orders {
  // It gives the id of the command, and for a restored job once more when its processes exist.
  Pipe from_maker;
  Pipe report;                      // takes the errno of a failure
  char* const* command = nullptr;   // arguments of the command; null: the job is restored
  sigset_t mask{};                  // the signal mask of the command
  const char* host_name = nullptr;  // host name of the job's machine; null leaves it as it is
  std::size_t host_name_bytes = 0;
  JobGroup group = JobGroup::of_caller;
  bool only_serves = false;
  // Sockets of the maker. While process 1 had them, the maker's death would end no connection, and
  // who connected would wait for an answer.
  const int* sockets = nullptr;
  std::size_t socket_count = 0;
};

void report(const Orders& orders, int error) {
  (void)!::write(orders.report.write, &error, sizeof error);
}

// Begins a process group with a process that ends at once, and returns its id: the group is there
// until that process is waited for. The command becomes a member of that group and not its first
// process, because that could not begin a session.
pid_t begin_group() {
  const pid_t leader = ::vfork();  // a copy of this process's memory would take longer
  if (leader == 0) {
    ::setpgid(0, 0);
    ::_exit(0);
  }
  return leader;
}

void join_group(pid_t process, pid_t leader) {
  if (leader <= 0) return;
  ::setpgid(process, leader);  // fails if it has done so itself, and has begun the command
  ::waitpid(leader, nullptr, 0);
}

[[noreturn]] void run_command(const Orders& orders, pid_t group) {
  if (group > 0) ::setpgid(0, group);
  sys::restore_open_files();
  ::sigprocmask(SIG_SETMASK, &orders.mask, nullptr);
  ::execvp(orders.command[0], orders.command);
  report(orders, errno);
  ::_exit(kNoStart);
}

// Mounts a /proc that shows the processes of the job. If the machine forbids that, the /proc of the
// whole machine stays.
void mount_proc() {
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
  (void)::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
}

// Opens the message queues of POSIX that the job has, as a directory without a place. A dump finds
// it among the files of process 1 and looks into it: the kernel lists queues in no other way.
void open_queues() {
  constexpr unsigned kCreate = 6,
                     kCloseOnExec = 1;  // FSCONFIG_CMD_CREATE; FSOPEN_, FSMOUNT_CLOEXEC
  const auto queues = static_cast<int>(::syscall(SYS_fsopen, "mqueue", kCloseOnExec));
  if (queues < 0) return;
  if (::syscall(SYS_fsconfig, queues, kCreate, nullptr, nullptr, 0) == 0)
    (void)::syscall(SYS_fsmount, queues, kCloseOnExec, 0);
  ::close(queues);
}

// Replaces the standard streams of process 1 by /dev/null. They would keep pipes of the job's
// surroundings open.
void let_go_of_streams() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int stream = 0; stream < 3; ++stream) {
    if (null >= 0) ::dup2(null, stream);
  }
  if (null > 2) ::close(null);
}

// Buries those that have ended. Ends with the command, or when nobody is left.
void bury(pid_t command, int options) {
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, __WALL | options);
    if (ended == 0) return;
    if (ended < 0 && errno == ECHILD) ::_exit(kNoStart);
    if (ended == command)
      ::_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
  }
}

// Reads the ids of the children of a process, as /proc gives them, for as far as there is room.
template <std::size_t bytes>
bool read_children(const char* path, std::array<char, bytes>& text) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t got = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  if (got < 0) return false;
  text[static_cast<std::size_t>(got)] = '\0';
  return true;
}

// Returns whether this process has one child, and that has none.
bool has_one_descendant() {
  std::array<char, 64> children{};
  std::array<char, 160> path{};
  if (!read_children("/proc/thread-self/children", children)) return false;
  char* const space = std::strchr(children.data(), ' ');
  if (space == nullptr || space[1] != '\0') return false;
  *space = '\0';
  // Process 1 may allocate nothing: another thread of its maker may have held the allocator.
  std::snprintf(path.data(), path.size(), "/proc/%s/task/%s/children", children.data(),
                children.data());
  return read_children(path.data(), children) && children[0] == '\0';
}

int socket_option(int descriptor, int name) {
  int value = 0;
  socklen_t bytes = sizeof value;
  return ::getsockopt(descriptor, SOL_SOCKET, name, &value, &bytes) == 0 ? value : 0;
}

// Returns whether a descriptor may be a socket by which its owner is known to live.
bool is_socket_of_maker(int descriptor) {
  const int domain = socket_option(descriptor, SO_DOMAIN);
  return domain == AF_INET || domain == AF_INET6 ||
         (domain == AF_UNIX && socket_option(descriptor, SO_ACCEPTCONN) != 0);
}

// What has the number of such a socket may be another file by now.
void close_sockets_of_maker(const Orders& orders) {
  for (std::size_t i = 0; i < orders.socket_count; ++i) {
    if (is_socket_of_maker(orders.sockets[i])) ::close(orders.sockets[i]);
  }
}

Result<std::vector<int>> own_sockets() {
  DIAPAUSE_TRY_ASSIGN(const auto descriptors, numbers_in("/proc/self/fd"));
  std::vector<int> found;
  for (const auto one : descriptors) {
    if (is_socket_of_maker(static_cast<int>(one))) found.push_back(static_cast<int>(one));
  }
  return found;
}

// Buries those that have ended. Ends with the command, which only serves, or when the process at
// the other end of `maker` is gone and the command has been alone at two looks: both end then.
[[noreturn]] void bury_until_left_alone(pid_t command, int maker) {
  sigset_t of_children{};
  ::sigaddset(&of_children, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &of_children, nullptr);
  std::array<pollfd, 2> events{};
  events[0] = {::signalfd(-1, &of_children, SFD_CLOEXEC | SFD_NONBLOCK), POLLIN, 0};
  events[1] = {maker, 0, 0};
  int looks = 0;
  for (;;) {
    bury(command, WNOHANG);
    const bool is_maker_gone = events[1].fd < 0;
    looks = is_maker_gone && has_one_descendant() ? looks + 1 : 0;
    if (looks > 1) ::_exit(kNoStart);
    // Who gets no word of its children looks for them.
    const bool looks_again = is_maker_gone || events[0].fd < 0;
    ::poll(events.data(), events.size(), looks_again ? kLook_ms : -1);
    signalfd_siginfo of_child{};
    while (events[0].fd >= 0 && ::read(events[0].fd, &of_child, sizeof of_child) > 0) continue;
    if (events[1].revents != 0) events[1] = {-1, 0, 0};
  }
}

pid_t make_process(pid_t id) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<std::uint64_t>(&id);
  arguments.set_tid_size = 1;
  return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
}

[[noreturn]] void be_process_1(const Orders& orders) {
  ::close(orders.from_maker.write);
  ::close(orders.report.read);
  std::uint32_t word = 0;
  if (::read(orders.from_maker.read, &word, sizeof word) != sizeof word) ::_exit(kNoStart);
  mount_proc();
  open_queues();
  if (orders.host_name != nullptr) (void)!::sethostname(orders.host_name, orders.host_name_bytes);
  if (orders.command != nullptr) {
    const pid_t group = orders.group == JobGroup::own ? begin_group() : 0;
    const auto child = make_process(static_cast<pid_t>(word));
    if (child == 0) run_command(orders, group);
    if (child < 0) report(orders, errno);
    join_group(child, group);
    ::close(orders.report.write);
    word = static_cast<std::uint32_t>(child);
  } else {
    // Processes that were in the group of an agent are now in that of process 1.
    if (orders.group == JobGroup::own) ::setpgid(0, 0);
    ::close(orders.report.write);
    // Meanwhile the process that forked this one makes the job's processes from outside.
    if (::read(orders.from_maker.read, &word, sizeof word) != sizeof word) ::_exit(kNoStart);
  }
  let_go_of_streams();
  close_sockets_of_maker(orders);
  const auto command = static_cast<pid_t>(word);
  if (orders.only_serves) bury_until_left_alone(command, orders.from_maker.read);
  bury(command, 0);
  ::_exit(kNoStart);
}

// Maps the effective user and group of this process to themselves, so that the process keeps its
// ids.
Status map_ids(pid_t process) {
  const std::string directory = fmt::format("/proc/{}", process);
  DIAPAUSE_TRY(
      write_proc(directory + "/uid_map", fmt::format("{} {} 1\n", ::geteuid(), ::geteuid())));
  DIAPAUSE_TRY(write_proc(directory + "/setgroups", "deny"));
  return write_proc(directory + "/gid_map", fmt::format("{} {} 1\n", ::getegid(), ::getegid()));
}

// Returns whether this process can do without a user namespace. Root with its usual capabilities
// needs none, and would lose rights in one.
bool may_without_user_namespace() {
  constexpr std::uint64_t kAdmin = 21, kTrace = 19;  // CAP_SYS_ADMIN, CAP_SYS_PTRACE
  const auto own = status_of("/proc/self");
  return ::geteuid() == 0 && own && (own->effective >> kAdmin & 1) != 0 &&
         (own->effective >> kTrace & 1) != 0;
}

// Returns what the administrator of the machine has to set so that users may have namespaces.
std::string way_to_allow_namespaces() {
  struct Switch {
    const char *name, *forbids, *allows;
  };
  constexpr Switch kSwitches[] = {
      {"user/max_user_namespaces", "0", "user.max_user_namespaces=10000"},
      {"kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"},
      {"kernel/apparmor_restrict_unprivileged_userns", "1",
       "kernel.apparmor_restrict_unprivileged_userns=0"}};
  std::string settings;
  for (const Switch& one : kSwitches) {
    const auto value = read_proc(fmt::format("/proc/sys/{}", one.name));
    if (value && *value == fmt::format("{}\n", one.forbids))
      settings += fmt::format(" {}", one.allows);
  }
  if (settings.empty()) return "a container or a security module forbids it: start it with leave";
  return "its administrator can allow it: sysctl -w" + settings;
}

Error namespace_error(int error) {
  Error made = os_error("making namespaces for the job", error);
  if (error == EPERM || error == ENOSPC || error == EUSERS) {
    made.code = Code::denied;
    made.message +=
        ": this machine allows users no namespaces of their own, and " + way_to_allow_namespaces();
  }
  return made;
}

int namespaces_to_make() {
  return CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS |
         (may_without_user_namespace() ? 0 : CLONE_NEWUSER);
}

}  // namespace

bool has_terminal() {
  const int terminal = ::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (terminal >= 0) ::close(terminal);
  return terminal >= 0;
}

Result<Keeper> Keeper::make(const std::vector<std::string>* command, const Watch& watch,
                            const Place& place) {
  std::vector<char*> arguments;
  if (command != nullptr) {
    for (const std::string& word : *command) arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  Orders orders;
  DIAPAUSE_TRY_ASSIGN(orders.from_maker, make_pipe());
  DIAPAUSE_TRY_ASSIGN(orders.report, make_pipe());
  if (command != nullptr) orders.command = arguments.data();
  orders.mask = watch.mask_before();
  if (!place.host_name.empty()) orders.host_name = place.host_name.c_str();
  orders.host_name_bytes = place.host_name.size();
  orders.group = place.group;
  orders.only_serves = place.only_serves;
  DIAPAUSE_TRY_ASSIGN(const std::vector<int> sockets, own_sockets());
  orders.sockets = sockets.data();
  orders.socket_count = sockets.size();
  const int flags = namespaces_to_make() | (place.host_name.empty() ? 0 : CLONE_NEWUTS);
  const bool is_user_space_new = (flags & CLONE_NEWUSER) != 0;
  const auto process = static_cast<pid_t>(::syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0));
  if (process == 0) be_process_1(orders);
  const int error = errno;
  ::close(orders.from_maker.read);
  ::close(orders.report.write);
  Keeper keeper(process, orders.from_maker.write);
  const auto give_up = [&](Error why) -> Result<Keeper> {
    ::close(orders.report.read);
    if (process > 0) {
      keeper.end();
      ::waitpid(process, nullptr, 0);
    }
    return fail(std::move(why));
  };
  if (process < 0) return give_up(namespace_error(error));
  if (is_user_space_new) {
    if (Status mapped = map_ids(process); !mapped)
      return give_up(namespace_error(mapped.error().os_errno));
  }
  // The command gets the id that process 1 has outside of the job. Programs name files in /tmp and
  // /dev/shm by process ids, and no two running jobs have the same id in this way.
  keeper.command_ = static_cast<std::uint32_t>(process);
  (void)!::write(keeper.orders_, &keeper.command_, sizeof keeper.command_);
  int reported = 0;
  const bool has_failed = ::read(orders.report.read, &reported, sizeof reported) == sizeof reported;
  if (!has_failed) {
    ::close(orders.report.read);
    return keeper;
  }
  Error why = os_error("cannot run " + (command != nullptr ? command->front() : ""), reported);
  if (reported == ENOENT) why.code = Code::not_found;
  return give_up(std::move(why));
}

Status Keeper::check() {
  if (may_without_user_namespace()) return {};
  const auto process =
      static_cast<pid_t>(::syscall(SYS_clone, namespaces_to_make() | SIGCHLD, 0, 0, 0, 0));
  if (process == 0) ::_exit(0);
  if (process < 0) return fail(namespace_error(errno));
  ::waitpid(process, nullptr, 0);
  return {};
}

Result<Keeper> Keeper::launch(const std::vector<std::string>& command, const Watch& watch,
                              const Place& place) {
  return make(&command, watch, place);
}
Result<Keeper> Keeper::wait_for_processes(const Watch& watch, const Place& place) {
  return make(nullptr, watch, place);
}

Keeper::Keeper(Keeper&& other) noexcept
    : process_(std::exchange(other.process_, 0)),
      orders_(std::exchange(other.orders_, -1)),
      command_(other.command_) {}

Keeper::~Keeper() {
  if (orders_ >= 0) ::close(orders_);
}

// If process 1 has ended already, whoever waits for it learns why.
Status Keeper::begin(std::uint32_t command) {
  command_ = command;
  sigset_t broken_pipe, before;
  ::sigemptyset(&broken_pipe);
  ::sigaddset(&broken_pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  const ssize_t written = ::write(orders_, &command, sizeof command);
  const int error = written < 0 ? errno : EIO;
  const timespec at_once{};
  if (written < 0 && error == EPIPE) ::sigtimedwait(&broken_pipe, nullptr, &at_once);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (written == sizeof command || error == EPIPE) return {};
  return fail(os_error("telling process 1 of the job to go on", error));
}

void Keeper::end() const {
  if (process_ > 0) ::kill(process_, SIGKILL);
}

pid_t Keeper::command_here() const {
  for (const pid_t one : processes_with(process_).value_or(std::vector<pid_t>{})) {
    const auto status = status_of(fmt::format("/proc/{}", one));
    if (status && status->id == command_) return one;
  }
  return 0;
}

void Keeper::signal_command(int number) const {
  if (const pid_t command = command_here(); command > 0) ::kill(command, number);
}

bool Keeper::shares_group() const {
  const pid_t command = command_here();
  return command > 0 && ::getpgid(command) == ::getpgrp();
}

std::optional<int> Keeper::exit_status() {
  // When a traced process is killed, its tracer must wait for it before its parent can. Therefore
  // every process that has ended is waited for here.
  while (!exit_status_) {
    const auto ended = next_end();
    if (!ended) break;
    if (ended->si_pid != process_) continue;
    was_killed_ = ended->si_code != CLD_EXITED;
    exit_status_ = was_killed_ ? 128 + ended->si_status : ended->si_status;
    process_ = 0;
  }
  return exit_status_;
}

}  // namespace diapause::process
