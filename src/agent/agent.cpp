#include "agent/agent.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <sstream>
#include <thread>

#include "agent/images.hpp"
#include "process/contents.hpp"
#include "process/copies.hpp"
#include "process/freeze.hpp"
#include "process/keeper.hpp"
#include "process/references.hpp"
#include "process/restore.hpp"
#include "process/watch.hpp"
#include "sys/local_socket.hpp"
#include "sys/process.hpp"

namespace diapause::agent {
namespace {

constexpr double kRequestLimit_s = 5;
constexpr double kCheckInterval_s = 1;
constexpr int kTries = 10;  // attempts at a checkpoint with an obstacle that may pass, over 5 s in all
constexpr std::chrono::milliseconds kFirstPause(10);
constexpr double kAnswerLimit_s = 24 * 3600;  // long, because a checkpoint takes as long as it takes

constexpr int kSelfContainedLevel = 4;  // its versions need no file of the machine on which they are restarted

constexpr std::uint64_t kLeastForCopies = 4 * kMiB;
constexpr std::uint64_t kMostReadBefore = 256 * kMiB;  // bytes that may be read into memory of this process

// Returns whether the processes are to be forked and their memory read from the copies, instead of reading it while
// they stand still. Memory that they share with others is not forked, and must be read before they run on in both
// cases. A copy becomes a child of process 1 only if no other process asks for the orphans.
bool is_worth_copies(const process::Dump& dump, config::CaptureStrategy strategy) {
  std::uint64_t forked = 0, other = 0;
  for (const process::Contents& one : dump.contents) (one.is_forked ? forked : other) += one.bytes;
  const bool is_possible =
      other <= kMostReadBefore &&
      std::ranges::none_of(dump.job.processes, [](const process::Process& one) { return one.subreaper != 0; });
  if (strategy == config::CaptureStrategy::automatic) return is_possible && forked >= kLeastForCopies + other;
  return is_possible && strategy == config::CaptureStrategy::copy_on_write;
}

// Looks after a job that runs.
class Caretaker {
 public:
  Caretaker(const StoreRequest& request, JobStore& store, process::Keeper& keeper, process::Watch& watch,
            sys::LocalSocket& door)
      : request_(request),
        store_(store),
        keeper_(keeper),
        watch_(watch),
        door_(door),
        references_(store.referenced_files()) {}

  void take_every(double interval_s, int level, Wish wish) {
    interval_s_ = interval_s;
    level_ = level;
    wish_ = wish;
    next_s_ = sys::monotonic_s() + interval_s;
  }
  void goes_on(process::TimedCalls timed) { timed_ = std::move(timed); }

  int until_end() {
    for (;;) {
      // A checkpoint may have taken the signal that tells of the end.
      if (const auto status = keeper_.exit_status()) {
        store_.note_end(*status);
        return *status;
      }
      const auto event = watch_.wait(door_.fd(), time_left());
      if (!event) take_due();
      // The end of the job's command is handled before any request.
      if (const auto status = keeper_.exit_status()) {
        store_.note_end(*status);
        return *status;
      }
      if (!event) continue;
      if (event->signal != 0) keeper_.signal_command(event->signal);
      if (event->has_knocked) answer_door();
    }
  }

 private:
  std::optional<double> time_left() const {
    if (interval_s_ <= 0) return std::nullopt;
    return std::max(0.0, next_s_ - sys::monotonic_s());
  }

  void take_due() {
    const auto taken = checkpoint(wish_, level_);
    if (!taken && keeper_.exit_status()) return;
    const std::string why = taken ? "" : taken.error().message;
    const bool is_check = wish_ == Wish::check_only;
    const bool is_known = is_check && why == last_refusal_;
    const char* const what = is_check ? "a checkpoint would fail: " : "a checkpoint failed: ";
    if (!taken && !is_known) request_.log(Severity::warning, what + why);
    last_refusal_ = why;
    next_s_ = sys::monotonic_s() + interval_s_;
  }

  // Takes a checkpoint. If the obstacle may pass soon (bytes on their way, a connection that is being made, a
  // process that is ending), tries again after a pause, in which the job runs on.
  Result<Answer> checkpoint(Wish wish, int level) {
    auto pause = kFirstPause;
    for (int tries = 1;; ++tries, pause *= 2) {
      auto answer = try_checkpoint(wish, level);
      if (answer) return answer;
      if (keeper_.exit_status()) return fail(Code::not_found, fmt::format("the job '{}' has ended", request_.name));
      const bool is_of_the_moment = answer.error().code == Code::again || answer.error().os_errno == ESRCH;
      if (!is_of_the_moment || tries == kTries) return answer;
      std::this_thread::sleep_for(pause);
    }
  }

  // Tries to take a checkpoint once. The job runs on after a failure, unless bytes that were taken out of one of its
  // connections cannot be put back.
  Result<Answer> try_checkpoint(Wish wish, int level) {
    DIAPAUSE_TRY_ASSIGN(process::FrozenJob frozen, process::FrozenJob::freeze(keeper_.process(), timed_));
    DIAPAUSE_TRY_ASSIGN(process::Dump dump, process::dump(frozen, own_process(), keeper_.command()));
    Answer answer;
    const auto thaw = [&] {
      const Status thawed = frozen.thaw();
      answer.stopped_s = sys::monotonic_s() - frozen.since_s();
      return thawed;
    };
    if (wish == Wish::check_only) {
      DIAPAUSE_TRY(thaw());
      return answer;
    }
    const bool may_refer = level < kSelfContainedLevel;
    references_.forget_other_files(dump);
    if (may_refer) references_.apply(dump, process::References::Effort::look);
    auto copies = copies_for(frozen, dump);
    // Copying the memory takes a while, in which the job must not depend on this process.
    DIAPAUSE_TRY(copies ? thaw() : frozen.put_back());
    if (may_refer) references_.apply(dump, process::References::Effort::read);
    DumpSource source(dump);
    auto captured = store_.capture(level, source.index(), source);
    if (!copies) DIAPAUSE_TRY(thaw());
    copies.reset();
    if (!captured) return fail(std::move(captured.error()));
    captured->blocked_s = [stopped_s = answer.stopped_s] { return stopped_s; };
    DIAPAUSE_TRY_ASSIGN(const Stored stored, store_.store(std::move(*captured)));
    answer.version = stored.version;
    answer.level = stored.level;
    answer.bytes = stored.bytes;
    return answer;
  }

  // Makes copies of the job's processes and lets `dump` lead to them, if the job then stands still for less time
  // than it takes to copy its memory. Returns nothing if that is not so or if the copies fail.
  std::optional<process::Copies> copies_for(process::FrozenJob& frozen, process::Dump& dump) const {
    if (!is_worth_copies(dump, store_.strategy())) return std::nullopt;
    auto copies = process::Copies::make(frozen);
    const Status read = copies ? process::read_what_is_not_forked(dump) : fail(copies.error());
    if (!read) {
      request_.log(Severity::information, "the job stands still until its memory is copied: " + read.error().message);
      return std::nullopt;
    }
    copies->redirect(dump);
    return std::move(*copies);
  }

  static std::int32_t own_process() { return static_cast<std::int32_t>(sys::process_id()); }

  void answer_door() {
    auto visitor = door_.accept();
    if (!visitor) return;
    const auto line = visitor->receive(kRequestLimit_s);
    if (!line) return;
    std::istringstream words(*line);
    std::string verb;
    int level = 0;
    words >> verb >> level;
    if (!words || (verb != "checkpoint" && verb != "check")) {
      (void)visitor->send("error -1 this agent knows no such request");
      return;
    }
    const auto answer = checkpoint(verb == "check" ? Wish::check_only : Wish::checkpoint, level);
    if (answer) {
      (void)visitor->send(
          fmt::format("done {} {} {} {:.6f}", answer->version, answer->level, answer->bytes, answer->stopped_s));
      return;
    }
    std::string text = answer.error().message;
    std::ranges::replace(text, '\n', '\t');  // an answer is one line
    (void)visitor->send(fmt::format("error {} {}", static_cast<int>(answer.error().code), text));
  }

  const StoreRequest& request_;
  JobStore& store_;
  process::Keeper& keeper_;
  process::Watch& watch_;
  sys::LocalSocket& door_;
  process::References references_;
  process::TimedCalls timed_;
  double interval_s_ = 0, next_s_ = 0;
  int level_ = 1;
  Wish wish_ = Wish::checkpoint;
  std::string last_refusal_;
};

Result<sys::LocalSocket> open_door(const StoreRequest& request) {
  DIAPAUSE_TRY_ASSIGN(const config::Settings settings, read_settings(request.config_path, request.environment));
  DIAPAUSE_TRY_ASSIGN(const sys::Directory directory,
                      sys::Directory::make_private(sys::real_kernel(), door_directory(settings)));
  return sys::LocalSocket::listen(directory, door_name(request.name, settings));
}

}  // namespace

Result<int> launch(const LaunchRequest& request) {
  DIAPAUSE_TRY_ASSIGN(process::Watch watch, process::Watch::begin());
  DIAPAUSE_TRY_ASSIGN(const std::unique_ptr<JobStore> store, JobStore::open(request.store));
  DIAPAUSE_TRY_ASSIGN(sys::LocalSocket door, open_door(request.store));
  if (store->newest_version() != 0) {
    request.store.log(Severity::information,
                      fmt::format("'{0}' has checkpoints of an earlier start, the newest is version {1}: this start "
                                  "begins anew, and 'diapause restart {0}' would go on from there",
                                  request.store.name, store->newest_version()));
  }
  DIAPAUSE_TRY_ASSIGN(process::Keeper keeper, process::Keeper::launch(request.command, watch));
  Caretaker caretaker(request.store, *store, keeper, watch, door);
  const bool is_check = request.wish == Wish::check_only;
  const double interval_s = is_check && request.interval_s <= 0 ? kCheckInterval_s : request.interval_s;
  if (interval_s > 0) caretaker.take_every(interval_s, request.level, request.wish);
  return caretaker.until_end();
}

Result<int> restart(const RestartRequest& request) {
  const double started_s = sys::monotonic_s();
  DIAPAUSE_TRY_ASSIGN(process::Watch watch, process::Watch::begin());
  DIAPAUSE_TRY_ASSIGN(const std::unique_ptr<JobStore> store, JobStore::open(request.store));
  StoredJob stored;
  const auto can_run_here = [&](store::ImageReader& image) -> Status {
    DIAPAUSE_TRY_ASSIGN(stored, read_job(image));
    DIAPAUSE_TRY(process::check_machine(stored.job));
    return process::check_files(stored.job);
  };
  DIAPAUSE_TRY_ASSIGN(engine::FetchedVersion fetched, store->fetch(request.version, can_run_here));
  DIAPAUSE_TRY_ASSIGN(sys::LocalSocket door, open_door(request.store));
  const process::ReadContents read = [&](const process::StoredContents& one, const process::TakePiece& take) {
    return read_contents(fetched.image, one, take);
  };
  DIAPAUSE_TRY_ASSIGN(process::Openings openings,
                      process::Openings::open(stored.job, stored.contents, read, request.store.log));
  DIAPAUSE_TRY_ASSIGN(process::Keeper keeper, process::Keeper::wait_for_processes(watch));
  auto restored = process::restore(stored.job, openings, stored.contents, read, keeper.process(), request.store.log);
  Status begun = restored ? keeper.begin(stored.job.command) : fail(restored.error());
  if (!begun) {
    keeper.end();
    return fail(std::move(begun.error()));
  }
  openings.close_all();
  store->note_restart(fetched, sys::monotonic_s() - started_s);
  Caretaker caretaker(request.store, *store, keeper, watch, door);
  caretaker.goes_on(std::move(*restored));
  if (request.interval_s > 0) caretaker.take_every(request.interval_s, request.level, Wish::checkpoint);
  return caretaker.until_end();
}

Result<Answer> ask(const StoreRequest& job, Wish wish, int level) {
  DIAPAUSE_TRY_ASSIGN(const config::Settings settings, read_settings(job.config_path, job.environment));
  const auto nobody = [&] {
    return fail(Code::not_found, fmt::format("no job '{}' of yours runs on this machine", job.name));
  };
  auto directory = sys::Directory::open_private(sys::real_kernel(), door_directory(settings));
  if (!directory && directory.error().code == Code::not_found) return nobody();
  if (!directory) return fail(std::move(directory.error()));
  auto door = sys::connect_local(*directory, door_name(job.name, settings));
  if (!door && door.error().code == Code::not_found) return nobody();
  if (!door) return fail(std::move(door.error()));
  DIAPAUSE_TRY(door->send(fmt::format("{} {}", wish == Wish::check_only ? "check" : "checkpoint", level)));
  const auto line = door->receive(kAnswerLimit_s);
  if (!line && line.error().code == Code::io) {
    return fail(Code::not_found,
                fmt::format("the job '{}' ended, or its agent was killed, before it answered", job.name));
  }
  if (!line) return fail(line.error());
  std::istringstream words(*line);
  std::string verb;
  words >> verb;
  Answer answer;
  if (verb == "done") {
    words >> answer.version >> answer.level >> answer.bytes >> answer.stopped_s;
    return answer;
  }
  int code = static_cast<int>(Code::internal);
  words >> code;
  std::string text;
  std::getline(words >> std::ws, text);
  std::ranges::replace(text, '\t', '\n');
  return fail(static_cast<Code>(code), text);
}

}  // namespace diapause::agent
