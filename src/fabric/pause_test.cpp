#include "fabric/pause.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "sys/futex.hpp"

namespace diapause::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kMostDone = 32;

// What a process did, as the parent sees it. `when` counts the steps of all processes.
struct Diary {
  std::atomic<std::uint32_t> count{0};
  struct Entry {
    Step step = Step::none;
    std::uint32_t when = 0;
    std::uint64_t given = 0;  // records of the job that it had been given by then
  };
  std::array<Entry, kMostDone> entries;
};

struct SharedDiaries {
  std::atomic<std::uint32_t> clock{0};
  std::array<Diary, 4> of;
};

// Whether the thread that answers ends when there is nothing to do; here its process stops.
enum class Listening : bool { always, when_woken };

// A process of its own that answers its agent as one does that uses verbs.
class User {
 public:
  // It publishes one record with this number, and fails at `fails_at` with Code::again.
  User(SharedDiaries& all, Diary& diary, std::uint32_t number, Step fails_at = Step::none,
       Listening listening = Listening::always) {
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe(ready.data()), 0);
    process_ = ::fork();
    if (process_ == 0) live(all, diary, number, fails_at, listening, ready[1]);
    ::close(ready[1]);
    char word = 0;
    EXPECT_EQ(::read(ready[0], &word, 1), 1);
    ::close(ready[0]);
  }
  User(const User&) = delete;
  User& operator=(const User&) = delete;
  ~User() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  pid_t process() const { return process_; }
  void await_stop() const {
    siginfo_t stopped{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(process_), &stopped, WSTOPPED), 0);
  }

 private:
  [[noreturn]] static void live(SharedDiaries& all, Diary& diary, std::uint32_t number,
                                Step fails_at, Listening listening, int ready) {
    const int memory = ::memfd_create(kMemoryName.data(), 0);
    Record record;
    record.kind = RecordKind::pair;
    record.shown = number;
    if (::pwrite(memory, &record, sizeof record, kPageSize) != sizeof record) ::_exit(1);
    void* const mapped = ::mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    Page& page = *new (mapped) Page;
    page.owner = static_cast<std::uint32_t>(::getpid());
    page.published = 1;
    std::atomic<std::uint32_t> id{1};  // 0 stands for a thread that has ended
    page.listener.id_at = reinterpret_cast<std::uint64_t>(&id);
    page.listener.entry = listening == Listening::when_woken ? 1 : 0;
    if (::write(ready, "x", 1) != 1) ::_exit(1);
    for (std::uint32_t done = 0;;) {
      const std::uint32_t request = page.request.load();
      if (request == done) {
        if (listening == Listening::always || page.is_stopped != 0) {
          sys::wait_while(page.request, done, 1);
          continue;
        }
        id = 0;
        ::raise(SIGSTOP);
        id = 1;
        continue;
      }
      const Step step{request & kStepMask};
      diary.entries[diary.count++] = {step, ++all.clock, page.given};
      if (step == Step::stop) page.is_stopped = 1;
      if (step == Step::go_on) page.is_stopped = 0;
      page.code = step == fails_at ? static_cast<std::uint32_t>(Code::again) : 0;
      std::strcpy(page.problem, "this one fails");
      done = request;
      page.answer.store(done);
      sys::wake_all(page.answer);
    }
  }

  pid_t process_ = 0;
};

// The agents of some nodes, in threads, which gather what each gives.
class Nodes {
 public:
  explicit Nodes(std::size_t count) : given_(count), arrived_(count, 0), boards_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      boards_[i] = Board::make().value();
      pauses_.push_back(std::make_unique<Pause>(
          [this, i](const Status& own, ByteView mine, Before) { return gather(i, own, mine); },
          [this](std::span<const sys::EndedThread> sleepers) { return wake(sleepers); },
          boards_[i]));
    }
  }

  Pause& pause(std::size_t node) { return *pauses_[node]; }
  // What all get from here on, after a failure.
  void begin_round() {
    failed_round_ = kNone;
    std::ranges::fill(arrived_, 0);
  }
  void give_up(const Error& why) {
    const std::lock_guard lock(mutex_);
    note_failure(*std::ranges::max_element(arrived_), why);
    changed_.notify_all();
  }
  // No thread can be woken from here on.
  void sleep_for_good() { can_wake_ = false; }
  std::size_t woken() const { return woken_; }
  // This node hears of a failure in its next gathering but `after`. The others do not, and have
  // done their next step by then.
  void mislead(std::size_t node, int after) { misled_ = {node, after}; }

  std::vector<Status> all(const std::function<Status(std::size_t)>& work) {
    std::vector<Status> results(pauses_.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < pauses_.size(); ++i)
      threads.emplace_back([&, i] { results[i] = work(i); });
    for (std::thread& one : threads) one.join();
    return results;
  }

 private:
  void note_failure(int round, const Error& why) {
    if (failed_round_ != kNone) return;
    failed_round_ = round;
    failure_ = why;
  }

  Status wake(std::span<const sys::EndedThread> sleepers) {
    if (!can_wake_) return fail(Code::again, "a thread cannot be made");
    for (const sys::EndedThread& one : sleepers) ::kill(one.process, SIGCONT);
    woken_ += sleepers.size();
    return {};
  }

  Result<std::vector<ByteVector>> gather(std::size_t node, const Status& own, ByteView mine) {
    std::unique_lock lock(mutex_);
    const int round = ++arrived_[node];
    given_[node].resize(static_cast<std::size_t>(round));
    given_[node].back().assign(mine.begin(), mine.end());
    if (!own) note_failure(round, own.error());
    changed_.notify_all();
    changed_.wait(lock, [&] {
      return failed_round_ <= round ||
             std::ranges::all_of(arrived_, [&](int one) { return one >= round; });
    });
    if (failed_round_ <= round) return fail(*failure_);
    if (misled_ && misled_->first == node && misled_->second-- == 0) {
      changed_.wait(lock, [&] {
        return std::ranges::count_if(arrived_, [&](int one) { return one > round; }) ==
               static_cast<std::ptrdiff_t>(arrived_.size()) - 1;
      });
      return fail(Code::again, "this node was misled");
    }
    std::vector<ByteVector> texts;
    for (const auto& of_node : given_)
      texts.push_back(of_node[static_cast<std::size_t>(round) - 1]);
    return texts;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<ByteVector>> given_;
  std::vector<int> arrived_;
  static constexpr int kNone = 1 << 30;
  int failed_round_ = kNone;  // this gathering fails on all nodes, and so do those after it
  std::optional<Error> failure_;
  bool can_wake_ = true;
  std::atomic<std::size_t> woken_{0};
  std::optional<std::pair<std::size_t, int>> misled_;
  std::vector<Board> boards_;
  std::vector<std::unique_ptr<Pause>> pauses_;
};

class Pauses : public ::testing::Test {
 protected:
  Pauses() {
    void* const mapped = ::mmap(nullptr, sizeof(SharedDiaries), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    diaries_ = new (mapped) SharedDiaries;
  }
  ~Pauses() override { ::munmap(diaries_, sizeof(SharedDiaries)); }

  std::unique_ptr<User> make_user(std::size_t index, Step fails_at = Step::none,
                                  Listening listening = Listening::always) {
    return std::make_unique<User>(*diaries_, diaries_->of[index],
                                  static_cast<std::uint32_t>(100 + index), fails_at, listening);
  }
  std::vector<Step> steps_of(std::size_t user) const {
    std::vector<Step> steps;
    const Diary& diary = diaries_->of[user];
    for (std::uint32_t i = 0; i < diary.count; ++i) steps.push_back(diary.entries[i].step);
    return steps;
  }
  const Diary::Entry& entry(std::size_t user, std::size_t index) const {
    return diaries_->of[user].entries[index];
  }

  SharedDiaries* diaries_;
};

// What a newcomer reads, from the first descriptor of this process that leads to a board.
struct Shown {
  bool is_stopped = false;
  std::size_t records = 0;
};
Shown read_board() {
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string link = std::filesystem::read_symlink(one.path(), error).string();
    if (!link.starts_with(kMemoryLink)) continue;
    const int memory = std::stoi(one.path().filename().string());
    Page page;
    EXPECT_EQ(::pread(memory, static_cast<void*>(&page), sizeof page, 0), sizeof page);
    std::vector<Record> records(page.given);
    const std::size_t bytes = records.size() * sizeof(Record);
    EXPECT_EQ(::pread(memory, records.data(), bytes, static_cast<off_t>(page.given_at)), bytes);
    return {page.is_stopped != 0, records.size()};
  }
  ADD_FAILURE() << "there is no board";
  return {};
}

TEST_F(Pauses, DoEachStepOnAllNodesBeforeTheNext) {
  const auto first = make_user(0), second = make_user(1);
  Nodes nodes(3);
  const std::vector<std::vector<pid_t>> processes{{first->process()}, {}, {second->process()}};
  for (const Status& one :
       nodes.all([&](std::size_t node) { return nodes.pause(node).begin(processes[node]); }))
    EXPECT_TRUE(one) << one.error().message;
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(nodes.pause(i).holds());
  EXPECT_TRUE(read_board().is_stopped);
  EXPECT_EQ(read_board().records, 2u);
  for (const Status& one : nodes.all([&](std::size_t node) { return nodes.pause(node).end(); }))
    EXPECT_TRUE(one) << one.error().message;
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(nodes.pause(i).holds());
  EXPECT_FALSE(read_board().is_stopped);
  for (const std::size_t user : {0u, 1u}) {
    EXPECT_THAT(steps_of(user), ElementsAre(Step::stop, Step::drain, Step::close, Step::open,
                                            Step::connect, Step::go_on));
    EXPECT_EQ(entry(user, 1).given, 2u);
    EXPECT_EQ(entry(user, 4).given, 2u);
  }
  for (std::size_t step = 1; step < 6; ++step) {
    EXPECT_GT(entry(0, step).when, entry(1, step - 1).when);
    EXPECT_GT(entry(1, step).when, entry(0, step - 1).when);
  }
}

// In every other round, the thread may end just as it is asked. When it ends after the last step,
// nobody wakes it.
TEST_F(Pauses, WakeThreadsThatHaveEnded) {
  const auto first = make_user(0, Step::none, Listening::when_woken), second = make_user(1);
  Nodes nodes(1);
  const std::array<pid_t, 2> processes{first->process(), second->process()};
  for (int round = 1; round <= 50; ++round) {
    diaries_->of[0].count = diaries_->of[1].count = 0;
    const bool has_ended = round % 2 == 0;
    if (has_ended) first->await_stop();
    const std::size_t before = nodes.woken();
    EXPECT_TRUE(nodes.pause(0).begin(processes));
    const std::size_t woken = nodes.woken();
    if (has_ended) {
      EXPECT_GT(woken, before);
    }
    EXPECT_TRUE(nodes.pause(0).end());
    EXPECT_EQ(nodes.woken(), woken);
    EXPECT_EQ(steps_of(0), steps_of(1));
    EXPECT_THAT(steps_of(0), ElementsAre(Step::stop, Step::drain, Step::close, Step::open,
                                         Step::connect, Step::go_on));
  }
}

TEST_F(Pauses, SayThatAThreadCannotBeWokenAndDoNotWaitForIt) {
  const auto first = make_user(0, Step::none, Listening::when_woken), second = make_user(1);
  Nodes nodes(1);
  nodes.sleep_for_good();
  first->await_stop();
  const std::array<pid_t, 2> processes{first->process(), second->process()};
  const auto begun = std::chrono::steady_clock::now();
  const Status result = nodes.pause(0).begin(processes);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "a thread cannot be made");
  nodes.begin_round();
  EXPECT_TRUE(nodes.pause(0).end());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
}

TEST_F(Pauses, SeeWhoHasBegunToUseVerbsSince) {
  const auto first = make_user(0);
  Nodes nodes(1);
  std::vector<pid_t> processes{first->process(), ::getpid()};
  ASSERT_TRUE(nodes.pause(0).begin(processes));
  EXPECT_FALSE(nodes.pause(0).has_newcomer(processes));
  const auto second = make_user(1);
  processes.push_back(second->process());
  EXPECT_TRUE(nodes.pause(0).has_newcomer(processes));
  EXPECT_TRUE(nodes.pause(0).end());
}

// A restored process that was not stopped would use its adapters while they are opened.
TEST_F(Pauses, TakeOverOnlyWhoWasStopped) {
  const auto first = make_user(0), second = make_user(1);
  Nodes nodes(1);
  const std::array<pid_t, 1> stopped{first->process()};
  ASSERT_TRUE(nodes.pause(0).begin(stopped));
  const std::array<pid_t, 2> restored{first->process(), second->process()};
  ASSERT_TRUE(nodes.pause(0).take_over(restored));
  EXPECT_TRUE(read_board().is_stopped);
  EXPECT_TRUE(nodes.pause(0).end());
  EXPECT_FALSE(read_board().is_stopped);
  EXPECT_THAT(steps_of(0), ElementsAre(Step::stop, Step::drain, Step::close, Step::open,
                                       Step::connect, Step::go_on));
  EXPECT_THAT(steps_of(1), ElementsAre());
}

TEST_F(Pauses, HoldNothingWhereNobodyUsesVerbs) {
  Nodes nodes(2);
  for (const Status& one : nodes.all([&](std::size_t node) { return nodes.pause(node).begin({}); }))
    EXPECT_TRUE(one);
  EXPECT_FALSE(nodes.pause(0).holds());
}

TEST_F(Pauses, LetAllGoOnIfOneCannotDrain) {
  const auto first = make_user(0), second = make_user(1, Step::drain);
  Nodes nodes(2);
  const std::array<pid_t, 2> processes{first->process(), second->process()};
  for (const Status& one : nodes.all([&](std::size_t node) {
         return nodes.pause(node).begin({&processes[node], 1});
       })) {
    ASSERT_FALSE(one);
    EXPECT_EQ(one.error().code, Code::again);
    EXPECT_THAT(one.error().message, HasSubstr("this one fails"));
  }
  nodes.begin_round();
  for (const Status& one : nodes.all([&](std::size_t node) { return nodes.pause(node).end(); }))
    EXPECT_TRUE(one) << one.error().message;
  for (const std::size_t user : {0u, 1u})
    EXPECT_THAT(steps_of(user), ElementsAre(Step::stop, Step::drain, Step::go_on));
}

TEST_F(Pauses, ConnectEvenWhatIsAStepBehind) {
  const auto first = make_user(0), second = make_user(1);
  Nodes nodes(2);
  const std::array<pid_t, 2> processes{first->process(), second->process()};
  nodes.mislead(0, 2);  // when all have drained
  for (const Status& one : nodes.all([&](std::size_t node) {
         Status result = nodes.pause(node).begin({&processes[node], 1});
         if (!result) nodes.give_up(result.error());
         return result;
       }))
    EXPECT_FALSE(one);
  nodes.begin_round();
  for (const Status& one : nodes.all([&](std::size_t node) { return nodes.pause(node).end(); }))
    EXPECT_TRUE(one) << one.error().message;
  EXPECT_EQ(steps_of(0), steps_of(1));
  EXPECT_THAT(steps_of(1), ElementsAre(Step::stop, Step::drain, Step::close, Step::open,
                                       Step::connect, Step::go_on));
  EXPECT_GT(entry(0, 2).when, entry(1, 2).when) << "the first should be a step behind";
  EXPECT_EQ(entry(0, 4).given, 2u);
}

}  // namespace
}  // namespace diapause::fabric
