// The thread that does what the agent of the job asks for. It is there only during a pause:
// whenever there is nothing to do, it ends for the kernel alone. Its stack and what the C library
// knows of it stay, and the agent begins it there again.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/shim/shim.hpp"
#include "sys/futex.hpp"

namespace diapause::fabric {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} * 1024;
constexpr double kListenWait_s = 3600;
constexpr int kAgain_us = 1000;

std::string link_of(const std::string& path) {
  std::array<char, 256> text;
  const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
  return length < 0 ? "" : std::string(text.data(), static_cast<std::size_t>(length));
}

// Returns the paths of a directory's entries. It is closed by then: a checkpoint cannot have one of
// /proc that is open.
std::vector<std::string> entries_of(const std::string& directory) {
  std::vector<std::string> paths;
  DIR* const entries = ::opendir(directory.c_str());
  while (entries != nullptr) {
    const dirent* const entry = ::readdir(entries);
    if (entry == nullptr) break;
    paths.push_back(directory + "/" + entry->d_name);
  }
  if (entries != nullptr) ::closedir(entries);
  return paths;
}

// What a process shares with its agent.
struct Shared {
  bool is_stopped = false;
  std::vector<Record> records;  // what the agent gave it last
};

// Returns nothing if the file is something else.
std::optional<Shared> read_shared(const std::string& path) {
  const int memory = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (memory < 0) return std::nullopt;
  Shared shared;
  Page page;
  bool is_one = ::pread(memory, static_cast<void*>(&page), sizeof page, 0) == sizeof page &&
                page.magic == kMagic;
  if (is_one) {
    shared.is_stopped = page.is_stopped != 0;
    shared.records.resize(page.given);
    const std::size_t bytes = shared.records.size() * sizeof(Record);
    is_one = ::pread(memory, shared.records.data(), bytes, static_cast<off_t>(page.given_at)) ==
             static_cast<ssize_t>(bytes);
  }
  ::close(memory);
  return is_one ? std::optional(std::move(shared)) : std::nullopt;
}

// Signals are for the program's threads, but those that the C library sends to all.
sigset_t block_signals() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  return before;
}

}  // namespace

Gate& Gate::of_process() { return Shim::get().gate; }

Shim::Shim() : nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
  do {
    (void)!::getrandom(&receive_mark, sizeof receive_mark, 0);
  } while (receive_mark == 0);
  ::pthread_atfork(nullptr, nullptr, forget_in_child);
}

// A child has no such thread, and adapters are not inherited. Were it to answer the agent, it would
// answer for its parent.
void Shim::forget_in_child() {
  Shim& shim = get();
  if (shim.page_ == nullptr) return;
  shim.forget_all();
  ::munmap(shim.page_, kPageSize);
  ::close(shim.memory_);
  shim.page_ = nullptr;
  shim.memory_ = -1;
}

void Shim::forget_all() {
  contexts.forget_all();
  domains.forget_all();
  regions.forget_all();
  channels.forget_all();
  queues.forget_all();
  shared_queues.forget_all();
  pairs.forget_all();
  handles.forget_all();
  gate.open();
}

Status Shim::begin_to_listen() {
  const std::lock_guard lock(listening_);
  if (page_ != nullptr) return {};
  memory_ = ::memfd_create(kMemoryName.data(), MFD_CLOEXEC);
  if (memory_ < 0) return fail(os_error("making memory for the agent", errno));
  void* mapped = MAP_FAILED;
  if (::ftruncate(memory_, kPageSize) == 0) {
    mapped = ::mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
  }
  if (mapped == MAP_FAILED) return fail(os_error("mapping memory for the agent", errno));
  page_ = new (mapped) Page;
  page_->owner = static_cast<std::uint32_t>(::getpid());
  learn();
  const sigset_t before = block_signals();
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread{};
  const int error = ::pthread_create(&thread, &attributes, listen, this);
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return fail(os_error("starting the thread that waits for the agent", error));
  return {};
}

// A process that comes after a checkpoint hears of others by numbers that were real before it. Each
// of the others has had the same list since. If a checkpoint is under way that includes this
// process, it gets the list by that.
void Shim::learn() {
  const std::string own_space = link_of("/proc/self/ns/pid");
  const auto look = [&](const std::string& path) {
    if (!link_of(path).starts_with(kMemoryLink)) return false;
    std::optional<Shared> shared = read_shared(path);
    while (shared && shared->is_stopped && page_->request.load() == 0) {
      ::usleep(kAgain_us);
      shared = read_shared(path);
    }
    if (!shared || shared->is_stopped || shared->records.empty()) return false;
    directory = Directory(shared->records);
    return true;
  };
  for (const std::string& process : entries_of("/proc")) {
    if (link_of(process + "/ns/pid") != own_space) continue;
    for (const std::string& path : entries_of(process + "/fd")) {
      if (look(path)) return;
    }
  }
}

void* Shim::listen(void* shim) {
  Shim& self = *static_cast<Shim*>(shim);
  self.tell_where_to_begin(reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)));
  self.serve();
}

void Shim::listen_again() {
  block_signals();
  get().serve();
}

// What lies above `stack` stays as it is. The thread never ends if the kernel does not tell where
// the C library looks for its id.
void Shim::tell_where_to_begin(std::uint64_t stack) {
  Listener& listener = page_->listener;
  std::uint32_t* id = nullptr;
  if (::prctl(PR_GET_TID_ADDRESS, &id) != 0 || id == nullptr ||
      *id != static_cast<std::uint32_t>(::gettid()))
    return;
  listener.id_at = reinterpret_cast<std::uint64_t>(id);
  asm("mov %%fs:0, %0" : "=r"(listener.thread_area));
  listener.stack = (stack & ~std::uint64_t{15}) - sizeof(void*);
  listener.entry.store(reinterpret_cast<std::uint64_t>(&listen_again));
}

// A request that comes while the thread ends is found when it begins again.
void Shim::serve() {
  std::uint32_t done = page_->answer.load();
  for (;;) {
    const std::uint32_t request = page_->request.load();
    if (request != done) {
      perform(request);
      done = request;
    } else if (page_->listener.entry == 0 || page_->is_stopped != 0) {
      sys::wait_while(page_->request, done, kListenWait_s);
    } else {
      ::syscall(SYS_exit, 0);
    }
  }
}

void Shim::perform(std::uint32_t request) {
  const Status result = perform(static_cast<Step>(request & kStepMask));
  page_->code = result ? 0 : static_cast<std::uint32_t>(result.error().code);
  page_->problem[0] = '\0';
  if (!result) {
    const std::string& text = result.error().message;
    const std::size_t bytes = std::min(text.size(), sizeof page_->problem - 1);
    std::memcpy(page_->problem, text.data(), bytes);
    page_->problem[bytes] = '\0';
  }
  page_->answer.store(request);
  sys::wake_all(page_->answer);
}

Status Shim::perform(Step step) {
  switch (step) {
    case Step::stop:
      return stop();
    case Step::drain:
      return drain();
    case Step::close:
      return close();
    case Step::open:
      return open();
    case Step::connect:
      return connect();
    case Step::go_on:
      go_on();
      return {};
    case Step::none:
      break;
  }
  return fail(Code::internal, "the agent asked for a step that there is not");
}

}  // namespace diapause::fabric
