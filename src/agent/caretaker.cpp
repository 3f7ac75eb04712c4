#include "agent/caretaker.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <sstream>
#include <thread>

#include "agent/course.hpp"
#include "agent/images.hpp"
#include "process/begin_again.hpp"
#include "process/contents.hpp"
#include "sys/process.hpp"
#include "sys/signals.hpp"
#include "sys/text_file.hpp"

namespace diapause::agent {
namespace {

constexpr double kRequestLimit_s = 5;
constexpr int kTries =
    10;  // attempts at a checkpoint with an obstacle that may pass, over 5 s in all
constexpr std::chrono::milliseconds kFirstPause(10);
constexpr int kSelfContainedLevel =
    4;  // its versions need no file of the machine on which they are restarted
constexpr std::uint64_t kLeastForCopies = 4 * kMiB;
constexpr std::uint64_t kMostReadBefore =
    256 * kMiB;  // bytes that may be read into memory of this process
// These say how often the memory of a job is looked at whose allocation ends, and when its last
// checkpoint is as good as due.
constexpr double kLongestLook_s = 600, kSoon_s = 0.1;
constexpr double kLook_s = 0.5,
                 // Times of an agent that is alone: how often it looks, and when it ends.
    kIdle_s = 2;

// Returns whether the processes are to be forked and their memory read from the copies, instead of
// reading it while they stand still. Memory that they share with others is not forked, and must be
// read before they run on in both cases. A copy becomes a child of process 1 only if no other
// process asks for the orphans. Memory that is spared need not be read.
bool is_worth_copies(const process::Dump& dump, config::CaptureStrategy strategy,
                     const process::Spared& spared) {
  std::uint64_t forked = 0, other = 0;
  // What was read already can be copied into the image while the job runs, too.
  for (const process::Contents& one : dump.contents) {
    const bool can_wait = one.is_forked || !one.read.empty();
    (can_wait ? forked : other) += one.bytes;
  }
  const bool is_possible =
      other <= kMostReadBefore &&
      std::ranges::none_of(dump.job.processes,
                           [](const process::Process& one) { return one.subreaper != 0; });
  if (strategy == config::CaptureStrategy::copy) return false;
  if (strategy == config::CaptureStrategy::copy_on_write) return is_possible;
  for (const auto& [process, extents] : spared) {
    for (const process::Extent& one : extents) forked -= one.end - one.begin;
  }
  return is_possible && forked >= kLeastForCopies + other;
}

std::uint32_t order_for(Wish wish) {
  if (wish == Wish::last) return Order::last;
  return wish == Wish::check_only ? Order::check : Order::checkpoint;
}

Wish wish_of(const Order& order) {
  if (order.verb == Order::last) return Wish::last;
  return order.verb == Order::check ? Wish::check_only : Wish::checkpoint;
}

std::int32_t own_process() { return static_cast<std::int32_t>(sys::process_id()); }

}  // namespace

fabric::Gather gather_of(Team* team) {
  if (team == nullptr) return fabric::gather_alone;
  return [team](const Status& own, ByteView mine, fabric::Before before) {
    team->set_patience(before == fabric::Before::step ? Team::Patience::verbs
                                                      : Team::Patience::brief);
    return team->gather(own, mine);
  };
}

fabric::Wake wake_in(pid_t first, process::TimedCalls& timed) {
  return [first, &timed](std::span<const sys::EndedThread> threads) {
    return process::begin_again(first, timed, threads);
  };
}

void Caretaker::take_every(double interval_s, int level, Wish wish) {
  interval_s_ = interval_s;
  level_ = level;
  wish_ = wish;
  next_s_ = sys::monotonic_s() + interval_s;
}

int Caretaker::until_end() {
  const bool is_first = environment_.door != nullptr;
  // The first order may have come with the last message of the start, and does not knock then.
  if (!is_first) obey();
  for (;;) {
    // A checkpoint may have taken the signal that tells of the end.
    if (const auto status = environment_.keeper.exit_status()) return end_of_command(*status);
    const auto event = environment_.watch.wait(what_to_watch(), time_left());
    if (is_first) do_what_is_due();
    // The end of the job's command is handled before any request.
    if (const auto status = environment_.keeper.exit_status()) return end_of_command(*status);
    if (is_alone_ && is_abandoned()) environment_.keeper.end();
    if (!event) continue;
    if (event->signal != 0 && is_first) obey_signal(*event);
    if (event->has_knocked) is_first ? answer_door() : obey();
  }
}

int Caretaker::what_to_watch() const {
  if (environment_.door != nullptr) return environment_.door->fd();
  return is_alone_ || has_ended_ ? -1 : environment_.team->fd();
}

// The first agent lets the others end with the job.
int Caretaker::end_of_command(int status) {
  if (environment_.door == nullptr) return status;
  if (finishes_ && status == 0) finish();
  const bool has_failed = status != 0 && !has_stopped_ && !was_signalled_;
  if (has_failed && !environment_.keeper.was_killed()) put_last_version_in_doubt();
  if (environment_.team != nullptr) (void)environment_.team->give({Order::end, 0});
  environment_.store.note_end(has_stopped_ ? kStoppedInTime : status);
  return has_stopped_ ? kStoppedInTime : status;
}

void Caretaker::put_last_version_in_doubt() {
  const auto after_s = probation_.fails(sys::monotonic_s());
  if (!after_s) return;
  const auto version = environment_.store.doubt();
  environment_.request.log(
      Severity::warning,
      version
          ? fmt::format("the job failed {:.1f} s after version {}, which may hold a job that was "
                        "failing already: a restart takes the version before, if there is one",
                        *after_s, *version)
          : version.error().message);
}

void Caretaker::finish() {
  if (environment_.team != nullptr) (void)environment_.team->give({Order::finish, 0});
  if (const Status finished = environment_.store.finish(); !finished)
    environment_.request.log(Severity::warning, finished.error().message);
}

bool Caretaker::is_end_watched() const {
  return environment_.door != nullptr && wish_ != Wish::check_only && !has_stopped_;
}

// Returns how soon something may be due. When the last checkpoint has to begin depends on the
// memory that the job then has, so that is looked at again when half of the time has passed.
std::optional<double> Caretaker::time_left() const {
  if (is_alone_) return kLook_s;
  std::optional<double> left_s;
  if (interval_s_ > 0) left_s = std::max(0.0, next_s_ - sys::monotonic_s());
  if (!is_end_watched()) return left_s;
  const auto due_s = last_.due_in_s(environment_.keeper.process());
  if (!due_s) return left_s;
  const double look_s = std::clamp(*due_s / 2, 0.0, kLongestLook_s);
  return left_s ? std::min(*left_s, look_s) : look_s;
}

void Caretaker::do_what_is_due() {
  if (has_stopped_) return;
  if (interval_s_ > 0 && sys::monotonic_s() >= next_s_) take_due();
  if (!is_end_watched()) return;
  const auto due_s = last_.due_in_s(environment_.keeper.process());
  if (due_s && *due_s <= kSoon_s) stop(0);
}

// A signal of the terminal has reached the job already if that is in the foreground as well.
void Caretaker::obey_signal(const process::Event& event) {
  const std::string name = sys::signal_name(event.signal);
  was_signalled_ = was_signalled_ || (name != "SIGWINCH" && name != "SIGCONT");
  if (event.is_of_terminal) {
    if (!environment_.keeper.shares_group()) environment_.keeper.signal_command(event.signal);
    return;
  }
  const bool stops = is_end_watched() && last_.is_asked_for_by(event.signal);
  stops ? stop(event.signal) : environment_.keeper.signal_command(event.signal);
}

// Takes the last checkpoint and ends the job. If that fails, the job goes on, and gets the signal.
void Caretaker::stop(int signal) {
  const std::string why = signal == 0 ? "the allocation ends" : sys::signal_name(signal);
  const double left_s = last_.left_s(signal);
  const int level = last_.level(memory_of_job(environment_.keeper.process()), left_s);
  environment_.request.log(
      Severity::information,
      fmt::format("{}: stopping with a checkpoint at level {}; {:.0f} s are left", why, level,
                  left_s));
  const auto taken = checkpoint(Wish::last, level);
  if (taken) {
    has_stopped_ = true;
    note_stop(fmt::format("{}: version {} at level {}", why, taken->version, taken->level));
    return;
  }
  if (environment_.keeper.exit_status()) return;
  environment_.request.log(
      Severity::error, "the last checkpoint failed, and the job goes on: " + taken.error().message);
  if (signal == 0) last_.forget_end();
  if (signal != 0) environment_.keeper.signal_command(signal);
}

// Tells `diapause run` that the job has stopped, and why.
void Caretaker::note_stop(const std::string& text) const {
  environment_.request.log(Severity::warning, "the job was stopped in time: " + text);
  const std::string file =
      config::value_in(environment_.request.environment, "DIAPAUSE_RUN_STOP_FILE");
  if (file.empty()) return;
  const Status noted = sys::append_line(sys::real_kernel(), file, text);
  if (!noted) environment_.request.log(Severity::warning, noted.error().message);
}

void Caretaker::take_due() {
  const auto taken = checkpoint(wish_, level_);
  if (!taken && environment_.keeper.exit_status()) return;
  const std::string why = taken ? "" : taken.error().message;
  const bool is_check = wish_ == Wish::check_only;
  const bool is_known = is_check && why == last_refusal_;
  const char* const what = is_check ? "a checkpoint would fail: " : "a checkpoint failed: ";
  if (!taken && !is_known) environment_.request.log(Severity::warning, what + why);
  last_refusal_ = why;
  next_s_ = sys::monotonic_s() + interval_s_;
}

// Takes a checkpoint. If the obstacle may pass soon (bytes on their way, a connection that is being
// made, a process that is ending), tries again after a pause, in which the job runs on.
Result<Answer> Caretaker::checkpoint(Wish wish, int level) {
  auto pause = kFirstPause;
  for (int tries = 1;; ++tries, pause *= 2) {
    auto answer = try_checkpoint(wish, level);
    if (answer) return answer;
    if (environment_.keeper.exit_status()) {
      return fail(Code::not_found,
                  fmt::format("the job '{}' has ended", environment_.request.name));
    }
    const bool is_of_the_moment =
        answer.error().code == Code::again || answer.error().os_errno == ESRCH;
    if (!is_of_the_moment || tries == kTries) return answer;
    std::this_thread::sleep_for(pause);
  }
}

// Tries to take a checkpoint once, on all nodes.
Result<Answer> Caretaker::try_checkpoint(Wish wish, int level) {
  if (environment_.team != nullptr) {
    DIAPAUSE_TRY(environment_.team->give({order_for(wish), level}));
  }
  auto answer = take_part(wish, level);
  if (!answer && environment_.team != nullptr) environment_.team->give_up(answer.error());
  // After a failure, what other agents hold is not known here.
  if (verbs_.is_used() && (!answer || verbs_.holds())) {
    if (environment_.team != nullptr) (void)environment_.team->give({Order::go_on, 0});
    connect_again();
  }
  return answer;
}

Status Caretaker::wait_for_others() const {
  return environment_.team == nullptr ? Status{} : environment_.team->agree({});
}

// Does what may take long. An agent that is done waits for the others.
Status Caretaker::do_together(const std::function<Status()>& work) const {
  if (environment_.team == nullptr) return work();
  environment_.team->set_patience(Team::Patience::long_);
  return environment_.team->agree(work());
}

// If an agent gave up the round meanwhile, the catalogues of versions would differ.
Status Caretaker::give_up_older() {
  const bool is_doubtful = probation_.is_doubtful(sys::monotonic_s());
  return do_together([&] { return environment_.store.give_up_older(is_doubtful); });
}

// Returns when nothing of the job's memory is missing on any node.
Status Caretaker::wait_for_memory() {
  if (environment_.behind == nullptr || has_all_memory_) return {};
  Status filled = do_together([&] { return environment_.behind->wait(); });
  has_all_memory_ = filled.has_value();
  return filled;
}

// Reads what belongs to the job as far as it can be read before anything stands still, on any node.
Status Caretaker::look_at_files() {
  if (!files_.is_used()) return {};
  return do_together([&] { return files_.look(sys::unix_time_ns()); });
}

// Returns when nothing is refused on any node, with the files that others take down, although this
// node sees them.
Result<std::set<std::string>> Caretaker::files_of_others(const process::Job& job) const {
  std::set<std::string> files;
  if (!files_.is_used() || environment_.team == nullptr) {
    DIAPAUSE_TRY(wait_for_others());
    return files;
  }
  DIAPAUSE_TRY_ASSIGN(const auto all, environment_.team->gather_lists(files_.open_here(job)));
  for (const std::set<std::string>& one : all) files.insert(one.begin(), one.end());
  return files;
}

void Caretaker::tell_which_files_are_cut(const process::Job& job) {
  const auto is_cut = [](const process::SharedMemory& one) {
    return one.kind == process::SharedKind::job_file && !one.is_stored;
  };
  const auto first = std::ranges::find_if(job.memories, is_cut);
  if (first == job.memories.end() || std::exchange(has_told_of_files_, true)) return;
  environment_.request.log(
      Severity::warning,
      fmt::format("the checkpoint holds only the length of {} of the files that belong to the job, "
                  "such as {}: they are too large or cannot be read, and a restart cuts them",
                  std::ranges::count_if(job.memories, is_cut), first->path));
}

// Does what this agent does for a checkpoint. What a process holds that begins to use verbs
// meanwhile is refused, but not the next time. The job runs on after a failure, unless bytes that
// were taken out of one of its connections cannot be put back.
Result<Answer> Caretaker::take_part(Wish wish, int level) {
  // A node that is silent is noticed here. What comes before the job stands still may take long.
  if (environment_.team != nullptr) environment_.team->set_patience(Team::Patience::brief);
  DIAPAUSE_TRY(wait_for_others());
  DIAPAUSE_TRY(wait_for_memory());
  if (wish != Wish::check_only) DIAPAUSE_TRY(give_up_older());
  DIAPAUSE_TRY(look_at_files());
  DIAPAUSE_TRY_ASSIGN(const auto processes, process::processes_with(environment_.keeper.process()));
  DIAPAUSE_TRY(verbs_.begin(processes));
  auto answer = take_part_without_verbs(wish, level);
  if (answer || answer.error().code != Code::argument) return answer;
  const auto now = process::processes_with(environment_.keeper.process());
  if (now && verbs_.has_newcomer(*now)) answer.error().code = Code::again;
  return answer;
}

// Lets what a checkpoint that failed still holds go on. All agents call it in a round of their own.
void Caretaker::connect_again() {
  const Status connected = verbs_.end();
  if (connected || verbs_.abandon()) return;
  environment_.request.log(Severity::error, "the job cannot communicate any more, and waits: " +
                                                connected.error().message);
}

Result<Answer> Caretaker::take_part_without_verbs(Wish wish, int level) {
  Team* const team = environment_.team;
  Course course;
  environment_.store.mark();
  if (team != nullptr) team->set_patience(Team::Patience::brief);
  if (!processor_) processor_ = process::this_processor();
  DIAPAUSE_TRY_ASSIGN(process::FrozenJob frozen,
                      process::FrozenJob::freeze(environment_.keeper.process(), timed_, foresees_));
  // Nothing is looked at before everything stands still on all nodes.
  DIAPAUSE_TRY(wait_for_others());
  course.stopped_s = verbs_.since_s().value_or(frozen.since_s());
  course.frozen_s = sys::monotonic_s();
  increments_.changes().announce(frozen);
  DIAPAUSE_TRY_ASSIGN(
      process::Dump dump,
      process::dump(frozen, {own_process(), environment_.keeper.command(),
                             team == nullptr ? nullptr : &team->others(), environment_.relocation,
                             *processor_, empty_messages_}));
  Answer answer;
  const auto note_running = [&] {
    course.thawed_s = sys::monotonic_s();
    answer.stopped_s = *course.thawed_s - course.stopped_s;
    environment_.store.mark();
  };
  GoOn go_on;
  go_on.thaw = [&] {
    Status thawed = frozen.thaw();
    if (!verbs_.holds()) note_running();
    return thawed;
  };
  go_on.connect = [&] {
    if (!verbs_.holds()) return;
    (void)verbs_.end();  // after a failure it still holds, and is ended once more
    if (team != nullptr) team->set_patience(Team::Patience::long_);
    note_running();
  };
  // From here on, what a process sends to another node is not in the image.
  DIAPAUSE_TRY_ASSIGN(const std::set<std::string> elsewhere, files_of_others(dump.job));
  DIAPAUSE_TRY(files_.add_to(dump, elsewhere));
  course.connections_s = dump.connections_s;
  course.dumped_s = sys::monotonic_s();
  if (team != nullptr) team->set_patience(Team::Patience::long_);
  if (wish == Wish::check_only) {
    DIAPAUSE_TRY(go_on.thaw());
    go_on.connect();
    return answer;
  }
  const bool is_last = wish == Wish::last;
  auto captured = capture(frozen, dump, level, is_last ? nullptr : &go_on);
  if (!captured) return fail(std::move(captured.error()));
  tell_which_files_are_cut(dump.job);
  if (!is_last) go_on.connect();
  account_for(course, *captured);
  captured->blocked_s = [course] {
    return course.thawed_s.value_or(sys::monotonic_s()) - course.stopped_s;
  };
  const bool is_doubtful = probation_.lacks_processes(dump.job);
  DIAPAUSE_TRY(store(std::move(*captured), answer));
  probation_.stored(dump.job, is_doubtful, sys::monotonic_s());
  // The job still stands still, and nothing that it has done is lost.
  if (is_last) {
    has_ended_ = true;
    verbs_.forget();
    frozen.end();
    environment_.keeper.end();
  }
  return answer;
}

Status Caretaker::store(engine::Captures captures, Answer& answer) {
  const double begun_s = sys::monotonic_s();
  // The result that all ranks agree on does not tell an error of the kernel here from others.
  Status own = captures.result;
  const double capture_s = captures.capture_s;
  auto stored = environment_.store.store(std::move(captures));
  if (!stored) return fail(std::move(own ? stored.error() : own.error()));
  answer.version = stored->version;
  answer.level = stored->level;
  answer.bytes = stored->bytes;
  last_.learn(answer.level, answer.bytes, capture_s + sys::monotonic_s() - begun_s);
  return {};
}

// Captures the job's memory and lets the job run on as soon as that is possible; without `go_on`,
// it goes on standing still. Its verbs may have to wait until the caller connects them.
Result<engine::Captures> Caretaker::capture(process::FrozenJob& frozen, process::Dump& dump,
                                            int level, const GoOn* go_on) {
  const bool may_refer = level < kSelfContainedLevel;
  references_.forget_other_files(dump);
  if (is_incremental()) DIAPAUSE_TRY(increments_.begin(frozen, dump));
  if (may_refer) references_.apply(dump, process::References::Effort::look);
  process::Spared spared;
  if (is_incremental() && go_on != nullptr) spared = increments_.spare(dump);
  auto copies = go_on != nullptr ? copies_for(frozen, dump, spared) : std::nullopt;
  if (!copies) increments_.spare_nothing();
  // Copying the memory takes a while, in which the job must not depend on this process.
  DIAPAUSE_TRY(copies ? go_on->thaw() : frozen.put_back());
  if (go_on != nullptr && verbs_.holds()) {
    std::uint64_t standing = copies ? 0 : 1;  // here, and then anywhere
    if (environment_.team != nullptr) {
      DIAPAUSE_TRY_ASSIGN(standing, environment_.team->others().greatest(standing));
    }
    if (standing == 0) go_on->connect();
  }
  DIAPAUSE_TRY(confirm(frozen, copies));
  is_incremental() ? increments_.arrange(dump) : void(process::leave_out_zeros(dump));
  if (may_refer) references_.apply(dump, process::References::Effort::read);
  DumpSource source(dump, environment_.store.copying_threads());
  std::optional<JobStore::Incremental> incremental;
  if (is_incremental()) {
    incremental.emplace(JobStore::Incremental{increments_, dump});
  } else {
    tell_why_all_is_copied();
  }
  auto captured = environment_.store.capture(level, source.index(), source, incremental);
  if (go_on != nullptr && !copies) DIAPAUSE_TRY(go_on->thaw());
  return captured;
}

// Makes copies of the job's processes and lets `dump` lead to them, if the job then stands still
// for less time than it takes to copy its memory. Returns nothing if that is not so or if the
// copies fail.
std::optional<process::Copies> Caretaker::copies_for(process::FrozenJob& frozen,
                                                     process::Dump& dump,
                                                     const process::Spared& spared) const {
  if (!is_worth_copies(dump, environment_.store.strategy(), spared)) return std::nullopt;
  auto copies = process::Copies::make(frozen, spared);
  const Status read = copies ? process::read_what_is_not_forked(dump) : fail(copies.error());
  if (!read) {
    environment_.request.log(
        Severity::information,
        "the job stands still until its memory is copied: " + read.error().message);
    return std::nullopt;
  }
  copies->redirect(dump);
  return std::move(*copies);
}

// Confirms what was foreseen, by the copies or by the processes, which stand still then. If that
// fails, the next attempt foresees nothing.
Status Caretaker::confirm(const process::FrozenJob& frozen,
                          const std::optional<process::Copies>& copies) {
  Status confirmed = copies ? copies->confirm(frozen.foresight()) : frozen.confirm_foresight();
  foresees_ = confirmed.has_value();
  return confirmed;
}

bool Caretaker::is_incremental() const {
  return environment_.store.strategy() == config::CaptureStrategy::incremental &&
         increments_.changes().refusal().empty();
}

void Caretaker::tell_why_all_is_copied() {
  const std::string& why = increments_.changes().refusal();
  if (environment_.store.strategy() != config::CaptureStrategy::incremental || why == last_told_)
    return;
  environment_.request.log(
      Severity::warning,
      "what the job has written to is not known, so all of its memory is copied: " + why);
  last_told_ = why;
}

void Caretaker::answer_door() {
  auto visitor = environment_.door->accept();
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
  if (process::is_with(static_cast<pid_t>(visitor->peer()), environment_.keeper.process())) {
    (void)visitor->send(fmt::format(
        "error {} it was asked for by a process of the job '{}' itself, and a version cannot hold "
        "the one that waits for it: ask for checkpoints from outside of the job, or have 'diapause "
        "launch --interval' take them",
        static_cast<int>(Code::argument), environment_.request.name));
    return;
  }
  const auto answer = checkpoint(verb == "check" ? Wish::check_only : Wish::checkpoint, level);
  if (answer) {
    (void)visitor->send(fmt::format("done {} {} {} {:.6f}", answer->version, answer->level,
                                    answer->bytes, answer->stopped_s));
    return;
  }
  std::string text = answer.error().message;
  std::ranges::replace(text, '\n', '\t');  // an answer is one line
  (void)visitor->send(fmt::format("error {} {}", static_cast<int>(answer.error().code), text));
}

// Does what the first agent says.
void Caretaker::obey() {
  Team& team = *environment_.team;
  while (const auto order = team.receive()) {
    if (order->verb == Order::finish) {
      (void)environment_.store.finish();  // the first agent says why, if that fails
      is_finished_ = true;
      continue;
    }
    if (order->verb == Order::end) {
      has_ended_ = true;
      environment_.keeper.end();
      return;
    }
    if (order->verb == Order::go_on) {
      connect_again();
      continue;
    }
    const auto done = take_part(wish_of(*order), order->level);
    if (!done) team.give_up(done.error());
  }
  if (!team.lost() || is_alone_ || has_ended_) return;
  if (is_finished_) {  // the first agent has gone before its order to end was read
    has_ended_ = true;
    environment_.keeper.end();
    return;
  }
  is_alone_ = true;
  if (!verbs_.abandon()) {
    environment_.request.log(Severity::error,
                             team.own_name() + ": the job cannot communicate any more, and waits");
  }
  environment_.request.log(Severity::warning,
                           fmt::format("{}: {}; no more checkpoints of the job can be taken",
                                       team.own_name(), team.lost()->message));
}

// An agent that is alone stays as long as something of the job runs on its node, beside process 1
// and what starts commands.
bool Caretaker::is_abandoned() {
  constexpr std::size_t kOurs = 2;
  const auto members = process::processes_with(environment_.keeper.process());
  if (!members || members->size() > kOurs) idle_since_s_.reset();
  if (members && members->size() <= kOurs && !idle_since_s_) idle_since_s_ = sys::monotonic_s();
  return idle_since_s_ && sys::monotonic_s() - *idle_since_s_ > kIdle_s;
}

}  // namespace diapause::agent
