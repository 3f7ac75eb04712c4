// The checkpoint as the calling rank sees it: agree, capture, hand over.
#include <fmt/core.h>

#include <algorithm>

#include "library/engine.hpp"
#include "sys/process.hpp"

namespace diapause::library {
namespace {

std::uint64_t bytes_of(const std::vector<format::Region>& files) {
  std::uint64_t bytes = 0;
  for (const format::Region& file : files) bytes += file.stored_bytes;
  return bytes;
}

}  // namespace

Status Engine::usable() const {
  if (off_) return fail(Code::off, "this instance turned itself off: " + off_->message);
  if (host_->other_rank_count() != 0) {
    return fail(Code::mismatch,
                fmt::format("the checkpoints of '{}' were written by {} ranks and this run has {}: "
                            "run with as many, open it "
                            "under another name, or remove them with 'diapause prune {} --all'",
                            context_->job, host_->other_rank_count(), context_->rank_count(),
                            context_->job_key()));
  }
  return {};
}

// Decides on the next version. Rank 0 determines whether it is skipped, and waits for room if it is
// not. Collective.
Result<engine::Decision> Engine::begin(CaptureFollows follows, CheckpointInfo& info) {
  engine::DecisionRequest request{info.version, info.level_asked, lossy_restarts_};
  if (context_->rank() == 0) {
    request.suspect = flights_->take_suspicion();
    const double now_s = sys::monotonic_s();
    request.ends_period = now_s - period_from_s_ >= kPeriod_s;
    if (request.ends_period) period_from_s_ = now_s;
    request.skip = !make_room_in_flight(info.bytes, info);
  }
  request.is_prepared = follows == CaptureFollows::at_once && !request.skip && !request.suspect &&
                        prepare_capture(info);
  auto decision = decider_.decide(*context_, request);
  if (!decision || decision->skip != 0) {
    capture_->forget_prepared();
    is_slot_ready_ = false;
  }
  return decision;
}

// Prepares the capture as far as this rank can alone, and returns whether nothing is left to
// prepare. Versions in flight will give their slots back: another is not taken beside them, but
// when rank 0 has waited. What the program is yet asked about is prepared after that.
bool Engine::prepare_capture(const CheckpointInfo& info) {
  const int level = info.level_asked;
  if (level < 1 || level > 4 || on_capture_ || (level == 4 && !invariants_.is_empty()))
    return false;
  if (!capture_->is_done() || flights_->is_full(info.bytes)) return false;
  return regions_.check_readable() && capture_->prepare(regions_.index(), level);
}

// Captures the subject and hands it over. Collective.
Status Engine::checkpoint_from(Subject subject, const engine::Decision& decision,
                               CheckpointInfo& info) {
  DIAPAUSE_TRY_ASSIGN(const Taken taken, capture_->take(std::move(subject), decision));
  // A failed capture is an error of this call, whatever becomes of the version in the background.
  Status failed = host_->is_background() ? taken.captured : Status{};
  Flight flight{taken.request, decision.number, decision.level, taken.image_bytes, {}};
  if (!host_->is_background()) {
    flight.progress = host_->progress(flight.request);
    info.level_reached = flight.progress.deepest_level();
    info.bytes_total = flight.progress.bytes_total;
    failed = flight.progress.result;
  }
  flights_->add(std::move(flight));
  catch_up();
  return failed;
}

Status Engine::turn_off_if_cut_off(Status result) {
  if (!result && result.error().code == Code::comm) off_ = result.error();
  return result;
}

Status Engine::none_is_open() const {
  if (!open_) return {};
  return fail(
      Code::argument,
      fmt::format("the checkpoint of version {} is still open: commit it or give it up first",
                  open_->info.version));
}

Status Engine::begin_checkpoint(std::uint64_t version, int level, CheckpointInfo& info) {
  info = {};
  info.version = version;
  info.level_asked = level;
  return begin_checkpoint(CaptureFollows::later, info);
}

Status Engine::begin_checkpoint(CaptureFollows follows, CheckpointInfo& info) {
  const double start = sys::monotonic_s();
  DIAPAUSE_TRY(usable());
  DIAPAUSE_TRY(none_is_open());
  DIAPAUSE_TRY(scrub_wait());  // a checkpoint would make damage look sound
  catch_up();
  report_background(info);
  decided_level_.reset();
  info.bytes = regions_.bytes();
  host_->expect_capture(start);
  auto decided = begin(follows, info);
  info.skipped = decided && decided->skip != 0;
  if (!decided || info.skipped) host_->expect_no_capture();
  DIAPAUSE_TRY_ASSIGN(const engine::Decision decision, std::move(decided));
  info.blocked_s = sys::monotonic_s() - start;
  if (!info.skipped) open_ = OpenCheckpoint{decision, info, info.blocked_s, {}};
  return {};
}

Status Engine::add_to_checkpoint(ProtectedRegion region) {
  DIAPAUSE_TRY(usable());
  if (!open_) return fail(Code::argument, "no checkpoint is open: begin one first");
  const std::string name = region.description.name;
  if (regions_.get(name)) {
    return fail(Code::argument,
                fmt::format("region '{}' is protected, and part of every checkpoint", name));
  }
  DIAPAUSE_TRY(protect(std::move(region)));
  open_->added.push_back(name);
  return {};
}

Status Engine::commit_checkpoint(CheckpointInfo& info) { return end_checkpoint({}, info); }

Status Engine::give_up_checkpoint(const std::string& why) {
  CheckpointInfo info;
  const bool was_open = open_.has_value();
  const Status ended =
      end_checkpoint(fail(Code::argument, "the program gives up this version: " + why), info);
  // It is no error that there is no version: the program asked for that.
  const bool is_as_asked = ended || (ended.error().code == Code::argument && was_open);
  return is_as_asked ? Status() : ended;
}

// Ends the open checkpoint. All ranks call this, and all take the version or none does.
Status Engine::end_checkpoint(Status ready, CheckpointInfo& info) {
  info = {};
  DIAPAUSE_TRY(usable());
  if (!open_) return fail(Code::argument, "no checkpoint is open: begin one first");
  const double start = sys::monotonic_s();
  const OpenCheckpoint open = std::move(*std::exchange(open_, std::nullopt));
  info = open.info;
  info.taken = true;
  capture_->wait();
  capture_->report();
  if (ready && on_capture_) ready = on_capture_();
  Status result = capture(std::move(ready), open, start - open.begin_s, info);
  for (const std::string& region : open.added) {
    const Status gone = unprotect(region);  // waits until it is copied
    if (!gone && result) result = gone;
  }
  // A failed attempt counts as well: the next checkpoint is due after the interval, not at the next
  // call.
  const int level = open.info.level_asked;
  if (pacemaker_) pacemaker_->consider(info.bytes);
  schedule_.taken_at_own_time(level, sys::monotonic_s() - opened_s_);
  result = turn_off_if_cut_off(std::move(result));
  is_slot_ready_ = false;
  info.blocked_s = open.begin_s + sys::monotonic_s() - start;
  if (info.level_reached == level) deadline_.learn(level, info.bytes_total, info.blocked_s);
  return result;
}

Status Engine::capture(Status ready, const OpenCheckpoint& open, double called_s,
                       CheckpointInfo& info) {
  // The program may have changed the size of packed regions.
  info.bytes = regions_.bytes() + bytes_of(open.files);
  std::vector<const std::byte*> data;
  for (const ProtectedRegion& region : regions_) data.push_back(region.data);
  capture::MemorySource memory(std::move(data));
  FilesSource memory_and_files(memory, regions_.size(), files_.directory(), open.files);
  capture::BlockSource& source =
      open.files.empty() ? static_cast<capture::BlockSource&>(memory) : memory_and_files;
  Subject subject{source, {}, {}, called_s, {}, info.waited_s};
  const bool is_prepared = open.decision.is_prepared != 0;
  if (!is_prepared) {
    subject.index = regions_.index();
    subject.index.regions.insert(subject.index.regions.end(), open.files.begin(), open.files.end());
  }
  for (const ProtectedRegion& region : regions_) {
    subject.memory.push_back({region.data, region.declaration, capture_->are_devices_about()});
  }
  if (ready && !is_prepared) ready = regions_.check_readable();
  if (info.level_asked == 4 && !invariants_.is_empty()) {
    DIAPAUSE_TRY(engine::agree(*context_, ready));
    DIAPAUSE_TRY(invariants_.apply(*context_, regions_, subject.index));
  }
  subject.ready = std::move(ready);
  return checkpoint_from(std::move(subject), open.decision, info);
}

Status Engine::checkpoint(std::uint64_t version, int level, CheckpointInfo& info) {
  info = {};
  info.version = version;
  info.level_asked = level;
  DIAPAUSE_TRY(begin_checkpoint(CaptureFollows::at_once, info));
  if (info.skipped) return {};
  return end_checkpoint({}, info);
}

Result<std::string> Engine::begin_files() {
  DIAPAUSE_TRY(usable());
  auto path = files_.begin();
  DIAPAUSE_TRY(engine::agree(*context_, path ? Status{} : fail(path.error())));
  return path;
}

Status Engine::checkpoint_files(std::uint64_t version, int level, bool is_valid,
                                CheckpointInfo& info) {
  info = {};
  DIAPAUSE_TRY(usable());
  auto found = [&]() -> Result<std::vector<format::Region>> {
    if (!files_.is_begun())
      return fail(Code::argument, "no directory was asked for: diapause_files comes before");
    if (!is_valid)
      return fail(Code::argument,
                  "the program says that its files are not complete: no version is made");
    return files_.list();
  }();
  DIAPAUSE_TRY(engine::agree(*context_, found ? Status{} : fail(found.error())));
  DIAPAUSE_TRY(begin_checkpoint(version, level, info));
  if (info.skipped) return {};
  open_->files = std::move(*found);
  DIAPAUSE_TRY(end_checkpoint({}, info));
  const double taken_s = sys::monotonic_s();
  files_.end();
  info.blocked_s += sys::monotonic_s() - taken_s;
  return {};
}

// Learns what the background has done since the last call.
void Engine::catch_up() {
  host_->attend();
  capture_->report();
  flights_->catch_up();
  if (!off_) off_ = flights_->cut_off();
}

void Engine::finish_flights() {
  flights_->finish();
  catch_up();
}

void Engine::report_background(CheckpointInfo& info) {
  const std::optional<Flight> failed = flights_->take_failure();
  if (!failed) return;
  info.background = failed->progress.result.error().code;
  info.background_version = failed->version;
  background_reason_ =
      fmt::format("version {}: {}", failed->version, failed->progress.result.error().message);
}

// Rank 0 makes room for another version, for all ranks. Returns false if the checkpoint is to be
// skipped.
bool Engine::make_room_in_flight(std::uint64_t next_bytes, CheckpointInfo& info) {
  const bool skips = context_->settings.async.when_full == config::WhenFull::skip;
  const double start = sys::monotonic_s();
  if (!capture_->is_done()) {
    if (skips) return false;
    capture_->wait();
    info.waited_s = sys::monotonic_s() - start;
  }
  while (flights_->is_full(next_bytes)) {
    if (skips) return false;
    flights_->wait_for_oldest();
    catch_up();
    info.waited_s = sys::monotonic_s() - start;
  }
  return true;
}

// Captures end in the order in which they began, so only the newest can be incomplete.
bool Engine::is_captured(const Flight& flight) const {
  return &flight != &flights_->newest() || capture_->is_done();
}

// Prepares a slot once after each change, as soon as nothing is in flight, because a version in
// flight returns its slots when it is done.
void Engine::keep_slot_ready() {
  const bool is_wanted =
      host_->is_background() && context_->settings.global_mode == config::GlobalMode::staged;
  if (is_slot_ready_ || !is_wanted || off_) return;
  if (!capture_->is_done() || !flights_->are_done() || regions_.bytes() == 0) return;
  is_slot_ready_ = true;
  capture_->keep_slot_ready(regions_.index());
}

Result<VersionProgress> Engine::poll(std::uint64_t version) {
  catch_up();
  DIAPAUSE_TRY_ASSIGN(const Flight* const flight, flights_->get(version));
  const engine::Progress now = flights_->progress_of(*flight);
  return VersionProgress{version, flight->level, now.deepest_level(), !now.is_done,
                         is_captured(*flight)};
}

Status Engine::wait(std::uint64_t version, int level, double at_most_s) {
  if (level < 0 || level > 4) {
    return fail(Code::argument,
                fmt::format("level {}: levels are 1 to 4, and 0 is the capture", level));
  }
  catch_up();
  DIAPAUSE_TRY_ASSIGN(const Flight* const flight, flights_->get(version));
  if (level == 0) {
    if (is_captured(*flight) || capture_->wait(at_most_s)) return {};
    return fail(Code::timeout,
                fmt::format("version {} is not captured after {:.3g} s", version, at_most_s));
  }
  Status reached = flights_->wait(*flight, level, at_most_s);
  catch_up();
  return reached;
}

Status Engine::close(double at_most_s) {
  flights_->finish_within(at_most_s);
  catch_up();
  capture_->wait();
  host_->end_period();
  const std::optional<Flight> failed = flights_->take_failure();
  if (!failed) return {};
  const Error& error = failed->progress.result.error();
  return fail(error.code, fmt::format("version {}: {}", failed->version, error.message));
}

Status Engine::finish() {
  finish_flights();
  capture_->wait();
  const Status done = off_ ? usable() : host_->finish();
  const Status closed = close(1e9);
  if (done && !closed && context_->rank() == 0)
    context_->log(Severity::information, closed.error().message);
  return done;
}

}  // namespace diapause::library
