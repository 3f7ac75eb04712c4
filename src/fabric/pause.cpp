#include "fabric/pause.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "fabric/foreign.hpp"
#include "sys/futex.hpp"
#include "sys/process.hpp"

namespace diapause::fabric {
namespace {

constexpr double kShortStep_s = 10;

// What a process has open that matters here.
struct Open {
  // The paths of what may be the memory that it shares with its agent; none if it uses no verbs.
  std::vector<std::string> memories;
  std::vector<std::string> devices;
};

Open open_files_of(pid_t process) {
  Open open;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process), error)) {
    const std::string link = std::filesystem::read_symlink(entry.path(), error).string();
    if (link.starts_with(kMemoryLink)) open.memories.push_back(entry.path().string());
    if (link.starts_with("/dev/")) open.devices.push_back(link);
  }
  return open;
}

// The memory of `path`, if it is what the library of verbs made.
Page* map_page(int memory) {
  std::uint64_t magic = 0;
  if (::pread(memory, &magic, sizeof magic, 0) != sizeof magic || magic != kMagic) return nullptr;
  void* const mapped = ::mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<Page*>(mapped);
}

// The id of a process as it knows itself.
std::uint32_t own_id_of(pid_t process) {
  std::FILE* const file = std::fopen(fmt::format("/proc/{}/status", process).c_str(), "re");
  if (file == nullptr) return 0;
  char line[256];
  std::uint32_t id = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, "NSpid:", 6) != 0) continue;
    const char* const last = std::strrchr(line, '\t');
    if (last != nullptr) id = static_cast<std::uint32_t>(std::strtoul(last, nullptr, 10));
  }
  std::fclose(file);
  return id;
}

bool has_ended(int handle) {
  pollfd one{handle, POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

}  // namespace

Result<std::vector<ByteVector>> gather_alone(const Status& own, ByteView mine, Before) {
  if (!own) return fail(own.error());
  return std::vector<ByteVector>{ByteVector(mine.begin(), mine.end())};
}

void Pause::let_go(const Member& member) {
  ::munmap(member.page, kPageSize);
  ::close(member.memory);
  if (member.handle >= 0) ::close(member.handle);
}

void Pause::let_go_of_all() {
  for (const Member& one : members_) let_go(one);
  members_.clear();
}

// Returns the process as a member if that is its memory. One that was forked from one that uses
// verbs has inherited the descriptor.
std::optional<Pause::Member> Pause::member_at(const std::string& path, pid_t process) {
  Member member;
  member.process = process;
  member.memory = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (member.memory < 0) return std::nullopt;
  member.page = map_page(member.memory);
  if (member.page == nullptr) {
    ::close(member.memory);
    return std::nullopt;
  }
  if (member.page->owner == own_id_of(process))
    member.handle = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (member.handle >= 0) return member;
  let_go(member);
  return std::nullopt;
}

bool Pause::has_newcomer(std::span<const pid_t> processes) const {
  return std::ranges::any_of(processes, [&](pid_t process) {
    if (std::ranges::find(members_, process, &Member::process) != members_.end()) return false;
    return std::ranges::any_of(open_files_of(process).memories, [&](const std::string& path) {
      const std::optional<Member> member = member_at(path, process);
      if (member) let_go(*member);
      return member.has_value();
    });
  });
}

Status Pause::find(std::span<const pid_t> processes) {
  let_go_of_all();
  std::string troubles;
  for (const pid_t process : processes) {
    const Open open = open_files_of(process);
    const std::size_t before = members_.size();
    for (const std::string& path : open.memories) {
      if (const auto member = member_at(path, process)) members_.push_back(*member);
    }
    const Way way = members_.size() > before ? Way::by_our_library : Way::otherwise;
    for (const std::string& device : open.devices) {
      const std::string trouble = trouble_with_device(device, way);
      if (!trouble.empty())
        troubles +=
            fmt::format("\n  process {} has {} open: {}", own_id_of(process), device, trouble);
    }
  }
  if (troubles.empty()) return {};
  return fail(
      Code::argument,
      "the job holds what cannot be restored, and runs on without a checkpoint:" + troubles);
}

void Pause::ask(Member& member, Step step) {
  const std::uint32_t serial = (member.page->request.load() >> 3) + 1;
  member.page->request.store(serial << 3 | static_cast<std::uint32_t>(step));
  sys::wake_all(member.page->request);
}

// Returns whether the thread of a member has ended and left a request unanswered. One that has
// answered may end at any time.
bool Pause::sleeps(const Member& member) {
  const Listener& listener = member.page->listener;
  if (listener.entry.load() == 0) return false;
  std::uint32_t id = 1;
  iovec here{&id, sizeof id}, there{reinterpret_cast<void*>(listener.id_at), sizeof id};
  if (::process_vm_readv(member.process, &here, 1, &there, 1, 0) != sizeof id || id != 0)
    return false;
  return member.page->answer.load() != member.page->request.load();
}

Status Pause::wake(std::span<const Member> members) {
  std::vector<sys::EndedThread> sleepers;
  for (const Member& one : members) {
    const Listener& listener = one.page->listener;
    if (!sleeps(one)) continue;
    sleepers.push_back(
        {one.process, listener.entry.load(), listener.stack, listener.thread_area, listener.id_at});
  }
  return sleepers.empty() ? Status{} : wake_(sleepers);
}

// A thread that was just about to end when it was asked has ended by the next look. Nobody who
// sleeps has something to let go on.
Status Pause::answer_of(Member& member, Step step, double end_s) {
  for (;;) {
    const std::uint32_t answer = member.page->answer.load();
    if (answer == member.page->request.load()) break;
    if (has_ended(member.handle)) return {};
    if (sys::monotonic_s() > end_s) {
      return fail(Code::again, fmt::format("process {} does not answer about its use of verbs",
                                           member.page->owner));
    }
    sys::wait_while(member.page->answer, answer, 0.1);
    if (step != Step::go_on) {
      DIAPAUSE_TRY(wake(std::span(&member, 1)));
    } else if (sleeps(member)) {
      return {};
    }
  }
  if (member.page->code == 0) return {};
  const std::string problem(member.page->problem,
                            ::strnlen(member.page->problem, sizeof member.page->problem));
  return fail(static_cast<Code>(static_cast<int>(member.page->code)),
              fmt::format("process {}: {}", member.page->owner, problem));
}

// All do the step at the same time, because none may be able to finish without the others.
Status Pause::ask_all(Step step, double at_most_s) {
  Status result;
  for (Member& one : members_) ask(one, step);
  if (step != Step::go_on) DIAPAUSE_TRY(wake(members_));
  const double end_s = sys::monotonic_s() + at_most_s;
  for (Member& one : members_) {
    Status answered = answer_of(one, step, end_s);
    if (result && !answered) result = std::move(answered);
  }
  return result;
}

Result<std::vector<Record>> Pause::own_records() const {
  std::vector<Record> all;
  for (const Member& one : members_) {
    const std::size_t before = all.size();
    all.resize(before + one.page->published);
    const std::size_t bytes = one.page->published * sizeof(Record);
    if (::pread(one.memory, all.data() + before, bytes, kPageSize) != static_cast<ssize_t>(bytes)) {
      return fail(Code::io, fmt::format("what process {} tells of its verbs cannot be read",
                                        one.page->owner));
    }
  }
  return all;
}

// Gives the records of all nodes to the processes of this one.
Status Pause::give_directory(const Status& own) {
  auto mine = own ? own_records() : Result<std::vector<Record>>(fail(own.error()));
  const Status read = mine ? Status{} : fail(mine.error());
  const std::span<const Record> records =
      mine ? std::span<const Record>(*mine) : std::span<const Record>();
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> texts,
                      gather_(read, std::as_bytes(records), Before::step));
  std::vector<Record> all;
  for (const ByteVector& one : texts) {
    if (one.size() % sizeof(Record) != 0)
      return fail(Code::comm, "an agent sends half a record of what verbs its node uses");
    const std::size_t before = all.size();
    all.resize(before + one.size() / sizeof(Record));
    std::memcpy(all.data() + before, one.data(), one.size());
  }
  for (const Member& one : members_) {
    if (!give(one.memory, *one.page, all)) {
      return fail(os_error(
          fmt::format("telling process {} of the verbs of the job", one.page->owner), errno));
    }
  }
  return board_.show(all);
}

Status Pause::agree(const Status& own) {
  return gather_(own, {}, Before::step).map([](const auto&) {});
}

Result<std::vector<Pause::Standing>> Pause::compare(const Status& own) {
  const Standing mine{state_, static_cast<std::uint32_t>(members_.size())};
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> texts,
                      gather_(own, as_byte_view(mine), Before::nothing));
  std::vector<Standing> all(texts.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (texts[i].size() != sizeof(Standing))
      return fail(Code::comm, "an agent does not say how far its processes are with their verbs");
    std::memcpy(&all[i], texts[i].data(), sizeof(Standing));
  }
  return all;
}

Status Pause::begin(std::span<const pid_t> processes) {
  is_used_ = false;
  DIAPAUSE_TRY_ASSIGN(const std::vector<Standing> all, compare(find(processes)));
  is_used_ = std::ranges::any_of(all, [](const Standing& one) { return one.members > 0; });
  if (!is_used_) return {};
  since_s_ = sys::monotonic_s();
  state_ = State::stopped;
  board_.set_held(true);
  DIAPAUSE_TRY(give_directory(ask_all(Step::stop, kShortStep_s)));
  DIAPAUSE_TRY(agree(ask_all(Step::drain, kShortStep_s)));
  state_ = State::closed;
  return agree(ask_all(Step::close, kLongestStep_s));
}

// A process that had just begun to use verbs at the checkpoint was not stopped. It has no adapter
// yet, and waits until the others go on.
Status Pause::take_over(std::span<const pid_t> processes) {
  DIAPAUSE_TRY(agree(find(processes)));
  std::erase_if(members_, [](const Member& one) {
    if (one.page->is_stopped != 0) return false;
    let_go(one);
    return true;
  });
  board_.set_held(true);
  since_s_ = sys::monotonic_s();
  state_ = State::closed;
  return {};
}

// An agent that heard of a failure where others did not may be a step behind them.
Status Pause::end() {
  DIAPAUSE_TRY_ASSIGN(const std::vector<Standing> all, compare(broken_));
  const bool are_there_members =
      std::ranges::any_of(all, [](const Standing& one) { return one.members > 0; });
  const bool are_all_open =
      std::ranges::all_of(all, [](const Standing& one) { return one.state <= State::stopped; });
  if (are_all_open || !are_there_members) {
    abandon();
    return {};
  }
  Status own;
  if (state_ < State::closed) own = ask_all(Step::close, kLongestStep_s);
  if (own && state_ < State::opened) own = ask_all(Step::open, kLongestStep_s);
  state_ = std::max(state_, State::opened);
  if (!own) broken_ = own;
  DIAPAUSE_TRY(give_directory(own));
  if (state_ < State::connected) own = ask_all(Step::connect, kLongestStep_s);
  state_ = State::connected;
  if (!own) broken_ = own;
  DIAPAUSE_TRY(agree(own));
  abandon();
  return {};
}

bool Pause::abandon() {
  const bool are_open =
      state_ <= State::stopped || (state_ == State::connected && broken_.has_value());
  if (are_open && holds()) (void)ask_all(Step::go_on, kShortStep_s);
  forget();
  return are_open;
}

void Pause::forget() {
  if (holds()) board_.set_held(false);
  state_ = State::idle;
  broken_ = {};
  let_go_of_all();
}

std::string library_folder(const std::string& program) {
  // A restart has to set the capabilities of other users' threads, and gives each credentials of
  // its own by that. Adapters that are reached by write(2) take calls only from threads with the
  // credentials of whoever has opened them.
  if (sys::user_id() != 0) return "";
  std::error_code error;
  if (std::filesystem::is_empty("/sys/class/infiniband", error) || error) return "";
  const auto folder = (std::filesystem::path(program).parent_path() / DIAPAUSE_VERBS_FROM_PROGRAM)
                          .lexically_normal();
  return std::filesystem::exists(folder / "libibverbs.so.1", error) ? folder.string() : "";
}

}  // namespace diapause::fabric
