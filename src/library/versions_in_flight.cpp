#include "library/versions_in_flight.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sys/process.hpp"

namespace diapause::library {
namespace {

constexpr std::size_t kRemembered = 32;
constexpr double kForever_s = 1e9;

// Returns the bits of this level and all deeper ones. Level 1 is part of every level, and a deeper
// level keeps the promises of those below it.
std::uint32_t this_or_deeper(int level) { return ~std::uint32_t{0} << level; }

}  // namespace

void VersionsInFlight::catch_up() {
  for (Flight& one : taken_) {
    if (one.progress.is_done) continue;
    one.progress = host_.progress(one.request);
    if (!one.progress.is_done) continue;
    // A repair does a part of what a checkpoint does.
    const bool is_example = !one.is_repair && one.progress.deepest_level() == one.level;
    if (is_example) learn_(one.level, one.progress.bytes_total, one.progress.seconds);
    if (!one.progress.result) note_failure(one);
  }
  while (taken_.size() > kRemembered && taken_.front().progress.is_done) taken_.pop_front();
}

void VersionsInFlight::note_failure(const Flight& flight) {
  const Error& error = flight.progress.result.error();
  if (error.code == Code::comm && !cut_off_) cut_off_ = error;
  if (!failed_) failed_ = flight;
  if (flight.progress.levels == 0) is_suspect_ = true;
  if (context_.rank() != 0) return;
  if (flight.is_repair) {
    context_.log(Severity::warning,
                 fmt::format("the redundancy of version {} that was lost could not be put back: {}",
                             flight.version, error.message));
    return;
  }
  context_.log(Severity::warning,
               fmt::format("version {} reached level {} of {}: {}", flight.version,
                           flight.progress.deepest_level(), flight.level, error.message));
}

void VersionsInFlight::finish() {
  for (const Flight& one : taken_) {
    if (!one.progress.is_done) host_.wait(one.request, 0, kForever_s);
  }
  catch_up();
}

void VersionsInFlight::finish_within(double at_most_s) {
  const double end_s = sys::monotonic_s() + std::min(at_most_s, kForever_s);
  for (const Flight& one : taken_) {
    const double left_s = end_s - sys::monotonic_s();
    if (!progress_of(one).is_done) host_.wait(one.request, 0, std::max(left_s, 0.0));
  }
  if (!std::ranges::all_of(taken_, [this](const Flight& one) { return progress_of(one).is_done; }))
    host_.give_up();
  finish();
}

Result<const Flight*> VersionsInFlight::get(std::uint64_t version) const {
  const auto found = std::find_if(taken_.rbegin(), taken_.rend(),
                                  [&](const Flight& one) { return one.version == version; });
  if (found == taken_.rend())
    return fail(Code::not_found, fmt::format("version {} was not taken here lately", version));
  return &*found;
}

engine::Progress VersionsInFlight::progress_of(const Flight& flight) const {
  return flight.progress.is_done ? flight.progress : host_.progress(flight.request);
}

Status VersionsInFlight::wait(const Flight& flight, int level, double at_most_s) {
  const std::uint64_t version = flight.version;
  if (level > flight.level) {
    return fail(Code::argument,
                fmt::format("version {} was taken at level {} and will not reach level {}", version,
                            flight.level, level));
  }
  if (!flight.progress.is_done) host_.wait(flight.request, this_or_deeper(level), at_most_s);
  const engine::Progress now = progress_of(flight);
  catch_up();
  if (now.deepest_level() >= level) return {};
  if (!now.is_done) {
    return fail(Code::timeout, fmt::format("version {} is at level {} after {:.3g} s", version,
                                           now.deepest_level(), at_most_s));
  }
  if (failed_ && failed_->version == version) failed_.reset();  // this call tells the program
  return now.result ? fail(Code::internal, "a level was not reached, and nobody says why")
                    : now.result;
}

bool VersionsInFlight::are_done() const {
  return std::ranges::all_of(taken_, [](const Flight& one) { return one.progress.is_done; });
}

bool VersionsInFlight::is_full(std::uint64_t next_bytes) const {
  const config::AsyncSettings& async = context_.settings.async;
  std::uint64_t count = 0;
  std::uint64_t bytes = next_bytes;
  for (const Flight& one : taken_) {
    if (one.progress.is_done) continue;
    ++count;
    bytes += one.bytes;
  }
  if (count == 0) return false;
  const auto& nodes = context_.topology.node_of_rank;
  const auto here = static_cast<std::uint64_t>(std::ranges::count(nodes, context_.topology.node));
  return count >= async.in_flight ||
         (async.in_flight_mib != 0 && bytes * here > async.in_flight_mib * kMiB);
}

void VersionsInFlight::wait_for_oldest() {
  const auto oldest =
      std::ranges::find_if(taken_, [](const Flight& one) { return !one.progress.is_done; });
  host_.wait(oldest->request, 0, kForever_s);
}

std::optional<Flight> VersionsInFlight::take_failure() {
  return std::exchange(failed_, std::nullopt);
}

}  // namespace diapause::library
