#include "engine/cluster.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace diapause::test_support {
namespace {

double value_of(std::uint32_t rank, std::uint64_t version, std::size_t i) {
  return static_cast<double>(rank) * 1e6 + static_cast<double>(version) * 1e3 +
         static_cast<double>(i) * 0.25;
}
constexpr double kScrambled = -1.0;

}  // namespace

Program::Program(std::uint32_t rank, std::size_t elements)
    : rank_(rank), field_(elements + 100 * rank) {
  scramble();
}

void Program::protect(library::Engine& engine) {
  format::Region field;
  field.name = "field";
  field.type = format::ElementType::float64;
  field.element_bytes = 8;
  field.count = field_.size();
  format::Region counter;
  counter.name = "counter";
  counter.type = format::ElementType::uint64;
  counter.element_bytes = 8;
  counter.count = 1;
  format::Region empty;
  empty.name = "empty";
  ASSERT_TRUE(engine.protect({field, reinterpret_cast<std::byte*>(field_.data())}));
  ASSERT_TRUE(engine.protect({counter, reinterpret_cast<std::byte*>(&counter_)}));
  ASSERT_TRUE(engine.protect({empty, nullptr}));
}

void Program::compute(std::uint64_t version) {
  for (std::size_t i = 0; i < field_.size(); ++i) field_[i] = value_of(rank_, version, i);
  counter_ = version;
}

void Program::scramble() {
  std::fill(field_.begin(), field_.end(), kScrambled);
  counter_ = UINT64_MAX;
}

bool Program::holds(std::uint64_t version) const {
  for (std::size_t i = 0; i < field_.size(); ++i) {
    if (field_[i] != value_of(rank_, version, i)) return false;
  }
  return counter_ == version;
}

bool Program::is_scrambled() const {
  return counter_ == UINT64_MAX && std::all_of(field_.begin(), field_.end(),
                                               [](double value) { return value == kScrambled; });
}

bool in_background() { return std::getenv("DIAPAUSE_TEST_ASYNC") != nullptr; }

Status take(library::Engine& engine, std::uint64_t version, int level,
            library::CheckpointInfo& info) {
  Status done = engine.checkpoint(version, level, info);
  if (!done || !in_background()) return done;
  done = engine.wait(version, level, 60);
  if (const auto progress = engine.poll(version)) info.level_reached = progress->level_reached;
  return done;
}

namespace {

std::string test_mode() {
  const char* const mode = std::getenv("DIAPAUSE_TEST_ASYNC");
  return mode == nullptr ? "off" : mode;
}

// Says which ranks there are besides those that compute. With dedicated ranks there is one more on
// each node, as its last.
struct Placement {
  Placement(const Shape& shape, bool sets_aside) : shape_(shape), extra_(sets_aside ? 1 : 0) {}

  std::uint32_t ranks_per_node() const { return shape_.ranks_per_node + extra_; }
  std::uint32_t size() const { return shape_.ranks + extra_ * nodes(); }
  std::uint32_t node(std::uint32_t place) const { return place / ranks_per_node(); }
  // Its number among those that compute; of a dedicated rank, that of the first of its node.
  std::uint32_t rank(std::uint32_t place) const {
    const std::uint32_t first = node(place) * shape_.ranks_per_node;
    const bool is_last = place % ranks_per_node() == ranks_per_node() - 1 || place == size() - 1;
    return extra_ != 0 && is_last ? first : first + place % ranks_per_node();
  }

 private:
  std::uint32_t nodes() const {
    return (shape_.ranks + shape_.ranks_per_node - 1) / shape_.ranks_per_node;
  }

  const Shape& shape_;
  const std::uint32_t extra_;
};

library::OpenRequest make_request(sys::Kernel& kernel, const Shape& shape, std::uint32_t rank,
                                  std::uint32_t node) {
  library::OpenRequest request;
  request.kernel = &kernel;
  request.name = "job";
  request.host_name =
      node < shape.node_names.size() ? shape.node_names[node] : "node" + std::to_string(node);
  request.working_directory = "/home/job";
  request.log = shape.log;
  request.config_text =
      "lock_wait_s = 0\n[energy]\nmeters = [\"off\"]\n[memory]\npath = \"/memory\"\n" +
      shape.config;
  if (shape.adjust) shape.adjust(request, rank);
  if (request.config_text.find("[async]") == std::string::npos) {
    request.config_text += "[async]\nnice = 0\nmode = \"" +
                           (test_mode() == "relayed" ? "thread" : test_mode()) + "\"\n";
  }
  return request;
}

}  // namespace

Status run_job(sys::Kernel& kernel, const Shape& shape, const Body& body) {
  const bool sets_aside =
      test_mode() == "rank" || shape.config.find("mode = \"rank\"") != std::string::npos;
  const Placement placement(shape, sets_aside);
  const bool is_relayed = test_mode() == "relayed" || shape.threads == ThreadJob::Threads::one;
  ThreadJob job(placement.size(), placement.ranks_per_node(),
                is_relayed ? ThreadJob::Threads::one : ThreadJob::Threads::any);
  std::mutex mutex;
  Status result;
  const auto rank_main = [&](std::uint32_t place) {
    const std::uint32_t rank = placement.rank(place);
    library::OpenRequest request = make_request(kernel, shape, rank, placement.node(place));
    request.comm = job.comm(place);
    if (shape.watch_comm) request.comm = shape.watch_comm(std::move(request.comm), rank);
    auto opened = library::Engine::open(std::move(request));
    if (!opened) {
      const std::lock_guard lock(mutex);
      result = fail(opened.error());
      job.break_off();
      return;
    }
    if (opened->dedicated) return opened->dedicated->serve();
    Program program(rank, shape.elements);
    program.protect(*opened->engine);
    body(*opened->engine, program, rank);
    opened->engine.reset();
  };
  std::vector<std::thread> threads;
  for (std::uint32_t place = 0; place < placement.size(); ++place)
    threads.emplace_back(rank_main, place);
  for (std::thread& thread : threads) thread.join();
  return result;
}

namespace {

// In this process restarts are taken in three steps, in which all is checked before anything is
// written.
bool restarts_in_steps() {
  // NOLINT(concurrency-mt-unsafe): nobody sets it.
  const char* const how = std::getenv("DIAPAUSE_TEST_RESTART");
  return how != nullptr && std::string_view(how) == "steps";
}

Status restart_in_steps(library::Engine& engine, std::uint64_t version,
                        library::RestartInfo& info) {
  DIAPAUSE_TRY(engine.restart_begin(version, info));
  const Status restored = engine.restore({});
  const Status ended = engine.restart_end();
  return restored ? ended : restored;
}

bool may_hold_anything(const Error& why) {
  return !restarts_in_steps() &&
         (why.code == Code::corrupt || why.code == Code::io || is_of_the_moment(why.code));
}

}  // namespace

Restarted restart_job(sys::Kernel& kernel, const Shape& shape, std::uint64_t version) {
  Restarted result;
  std::mutex mutex;
  const Status opened =
      run_job(kernel, shape, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
        library::RestartInfo info;
        const Status status = restarts_in_steps() ? restart_in_steps(engine, version, info)
                                                  : engine.restart(version, info);
        // Data is read straight to its place: where nothing could be had in the end, there may be
        // anything.
        const bool is_as_it_was =
            status || may_hold_anything(status.error()) || program.is_scrambled();
        const bool intact = status ? program.holds(info.version) : is_as_it_was;
        const std::lock_guard lock(mutex);
        if (rank == 0) {
          result.version = info.version;
          result.stepped_back = info.stepped_back;
          result.reason = engine.restart_reason();
        }
        if (!status) result.status = status;
        result.intact = result.intact && intact;
      });
  if (!opened) result.status = opened;
  return result;
}

void expect_restart_from_global(VolatileDisk& disk, const Shape& shape, std::uint64_t version) {
  disk.erase("/memory");
  const Restarted restarted = restart_job(disk, shape);
  ASSERT_TRUE(restarted.status) << restarted.status.error().message;
  EXPECT_EQ(restarted.version, version);
  EXPECT_TRUE(restarted.intact);
}

void checkpoint_job(sys::Kernel& kernel, const Shape& shape,
                    const std::vector<std::pair<std::uint64_t, int>>& versions) {
  const Status opened =
      run_job(kernel, shape, [&](library::Engine& engine, Program& program, std::uint32_t) {
        for (const auto& [version, level] : versions) {
          program.compute(version);
          library::CheckpointInfo info;
          const Status done = take(engine, version, level, info);
          EXPECT_TRUE(done) << done.error().message;
          EXPECT_EQ(info.level_reached, level);
        }
      });
  EXPECT_TRUE(opened) << opened.error().message;
}

std::string node_directory(const VolatileDisk& disk, const std::string& node) {
  for (const std::string& path : disk.paths()) {
    if (path.starts_with("/memory/") && path.ends_with("/" + node + "/")) return path;
  }
  return "";
}

std::vector<std::string> files_matching(const VolatileDisk& disk, const std::string& part) {
  std::vector<std::string> found;
  for (const std::string& path : disk.paths()) {
    if (path.find(part) != path.npos && !path.ends_with('/')) found.push_back(path);
  }
  return found;
}

}  // namespace diapause::test_support
