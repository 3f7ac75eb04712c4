// What the program can learn of, and do about, checkpoints that go on behind it.
#include <fmt/core.h>

#include <algorithm>

#include "engine/engine.hpp"
#include "sys/process.hpp"

namespace diapause::engine {
namespace {

constexpr std::size_t kRemembered = 32;
constexpr double kForever_s = 1e9;

// Level 1 is part of every level, and a deeper level keeps the promises of those below it.
std::uint32_t this_or_deeper(int level) { return ~std::uint32_t{0} << level; }

}  // namespace

// Learns what the background has done since the last call.
void Engine::catch_up() {
  host_->attend();
  bill_capture();
  for (InFlight& one : taken_) {
    if (one.progress.is_done) continue;
    one.progress = host_->progress(one.job);
    if (one.progress.is_done && one.progress.deepest_level() == one.level) {
      deadline_.learn(one.level, one.progress.bytes_total, one.progress.seconds);
    }
    if (!one.progress.is_done || one.progress.result) continue;
    const Error& error = one.progress.result.error();
    if (error.code == Code::comm && !off_) off_ = error;
    if (!failed_) failed_ = one;
    if (one.progress.levels == 0) suspect_ = true;
    if (context_->rank() == 0) {
      context_->log(Severity::warning, fmt::format("version {} reached level {} of {}: {}", one.version,
                                                   one.progress.deepest_level(), one.level, error.message));
    }
  }
  while (taken_.size() > kRemembered && taken_.front().progress.is_done) taken_.pop_front();
}

void Engine::report_background(CheckpointInfo& info) {
  if (!failed_) return;
  info.background = failed_->progress.result.error().code;
  info.background_version = failed_->version;
  background_reason_ = fmt::format("version {}: {}", failed_->version, failed_->progress.result.error().message);
  failed_.reset();
}

// By what this rank knows: its own images stand for those of its node.
bool Engine::is_full(std::uint64_t next_bytes) const {
  const config::AsyncSettings& async = context_->settings.async;
  std::uint64_t count = 0;
  std::uint64_t bytes = next_bytes;
  for (const InFlight& one : taken_) {
    if (one.progress.is_done) continue;
    ++count;
    bytes += one.bytes;
  }
  if (count == 0) return false;  // one version is always let through
  const auto& nodes = context_->topology.node_of_rank;
  const auto here = static_cast<std::uint64_t>(std::count(nodes.begin(), nodes.end(), context_->topology.node));
  return count >= async.in_flight || (async.in_flight_mib != 0 && bytes * here > async.in_flight_mib * kMiB);
}

// By rank 0, for all: false if the checkpoint is to be skipped.
bool Engine::make_room_in_flight(std::uint64_t next_bytes, CheckpointInfo& info) {
  const double start = sys::monotonic_s();
  if (!drain_.is_done()) {
    if (context_->settings.async.when_full == config::WhenFull::skip) return false;
    drain_.wait();
    info.waited_s = sys::monotonic_s() - start;
  }
  while (is_full(next_bytes)) {
    if (context_->settings.async.when_full == config::WhenFull::skip) return false;
    const auto oldest =
        std::find_if(taken_.begin(), taken_.end(), [](const InFlight& one) { return !one.progress.is_done; });
    host_->wait(oldest->job, 0, kForever_s);
    catch_up();
    info.waited_s = sys::monotonic_s() - start;
  }
  return true;
}

const Engine::InFlight* Engine::find_taken(std::uint64_t version) const {
  const auto found =
      std::find_if(taken_.rbegin(), taken_.rend(), [&](const InFlight& one) { return one.version == version; });
  return found == taken_.rend() ? nullptr : &*found;
}

Result<VersionProgress> Engine::poll(std::uint64_t version) {
  catch_up();
  const InFlight* one = find_taken(version);
  if (one == nullptr) return fail(Code::not_found, fmt::format("version {} was not taken here lately", version));
  const Progress now = one->progress.is_done ? one->progress : host_->progress(one->job);
  return VersionProgress{version, one->level, now.deepest_level(), !now.is_done, is_captured(*one)};
}

Status Engine::wait(std::uint64_t version, int level, double at_most_s) {
  if (level < 0 || level > 4) {
    return fail(Code::argument, fmt::format("level {}: levels are 1 to 4, and 0 is the capture", level));
  }
  catch_up();
  const InFlight* one = find_taken(version);
  if (one == nullptr) return fail(Code::not_found, fmt::format("version {} was not taken here lately", version));
  if (level == 0) {
    if (is_captured(*one) || drain_.wait(at_most_s)) return {};
    return fail(Code::timeout, fmt::format("version {} is not captured after {:.3g} s", version, at_most_s));
  }
  if (level > one->level) {
    return fail(Code::argument, fmt::format("version {} was taken at level {} and will not reach level {}", version,
                                            one->level, level));
  }
  if (!one->progress.is_done) host_->wait(one->job, this_or_deeper(level), at_most_s);
  const Progress now = one->progress.is_done ? one->progress : host_->progress(one->job);
  catch_up();
  if (now.deepest_level() >= level) return {};
  if (!now.is_done) {
    return fail(Code::timeout,
                fmt::format("version {} is at level {} after {:.3g} s", version, now.deepest_level(), at_most_s));
  }
  if (failed_ && failed_->version == version) failed_.reset();  // reported herewith
  return now.result ? fail(Code::internal, "a level was not reached, and nobody says why") : now.result;
}

void Engine::finish_flights() {
  for (const InFlight& one : taken_) {
    if (!one.progress.is_done) host_->wait(one.job, 0, kForever_s);
  }
  catch_up();
}

Status Engine::close(double at_most_s) {
  const double end_s = sys::monotonic_s() + std::min(at_most_s, kForever_s);
  for (const InFlight& one : taken_) {
    const double left_s = end_s - sys::monotonic_s();
    if (!host_->progress(one.job).is_done) host_->wait(one.job, 0, std::max(left_s, 0.0));
  }
  const bool is_done = std::all_of(taken_.begin(), taken_.end(), [&](const InFlight& one) {
    return one.progress.is_done || host_->progress(one.job).is_done;
  });
  if (!is_done) host_->give_up();
  finish_flights();
  drain_.wait();
  host_->settle();
  if (!failed_) return {};
  Error error = failed_->progress.result.error();
  error.message = fmt::format("version {}: {}", failed_->version, error.message);
  failed_.reset();
  return fail(std::move(error));
}

}  // namespace diapause::engine
