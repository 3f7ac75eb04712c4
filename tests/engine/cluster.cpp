#include "engine/cluster.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace diapause::test_support {
namespace {

double value_of(std::uint32_t rank, std::uint64_t version, std::size_t i) {
  return static_cast<double>(rank) * 1e6 + static_cast<double>(version) * 1e3 + static_cast<double>(i) * 0.25;
}
constexpr double kScrambled = -1.0;

}  // namespace

Program::Program(std::uint32_t rank, std::size_t elements) : rank_(rank), field_(elements + 100 * rank) { scramble(); }

void Program::protect(engine::Engine& engine) {
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
  return counter_ == UINT64_MAX &&
         std::all_of(field_.begin(), field_.end(), [](double value) { return value == kScrambled; });
}

bool in_background() { return std::getenv("DIAPAUSE_TEST_ASYNC") != nullptr; }

Status take(engine::Engine& engine, std::uint64_t version, int level, engine::CheckpointInfo& info) {
  Status done = engine.checkpoint(version, level, info);
  if (!done || !in_background()) return done;
  done = engine.wait(version, level, 60);
  if (const auto progress = engine.poll(version)) info.level_reached = progress->level_reached;
  return done;
}

Status run_job(sys::Kernel& kernel, const Shape& shape, const Body& body) {
  ThreadJob job(shape.ranks, shape.ranks_per_node);
  std::mutex mutex;
  Status result;
  const auto rank_main = [&](std::uint32_t rank) {
    engine::OpenRequest request;
    request.comm = job.comm(rank);
    request.kernel = &kernel;
    request.name = "job";
    const std::uint32_t node = rank / shape.ranks_per_node;
    request.host_name = node < shape.node_names.size() ? shape.node_names[node] : "node" + std::to_string(node);
    request.working_directory = "/home/job";
    request.log = shape.log;
    request.config_text = "lock_wait_s = 0\n[memory]\npath = \"/memory\"\n" + shape.config;
    if (shape.adjust) shape.adjust(request, rank);
    if (in_background()) {
      request.config_text += "[async]\nmode = \"" + std::string(std::getenv("DIAPAUSE_TEST_ASYNC")) + "\"\n";
    }
    auto engine = engine::Engine::open(std::move(request));
    if (!engine) {
      const std::lock_guard lock(mutex);
      result = fail(engine.error());
      job.break_off();
      return;
    }
    Program program(rank, shape.elements);
    program.protect(**engine);
    body(**engine, program, rank);
    engine->reset();
  };
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) threads.emplace_back(rank_main, rank);
  for (std::thread& thread : threads) thread.join();
  return result;
}

Restarted restart_job(sys::Kernel& kernel, const Shape& shape, std::uint64_t version) {
  Restarted result;
  std::mutex mutex;
  const Status opened = run_job(kernel, shape, [&](engine::Engine& engine, Program& program, std::uint32_t rank) {
    engine::RestartInfo info;
    Status status = engine.restart_begin(version, info);
    if (status) {
      status = engine.restore({});
      const Status ended = engine.restart_end();
      if (status) status = ended;
    }
    const bool intact = status ? program.holds(info.version) : program.is_scrambled();
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

void checkpoint_job(sys::Kernel& kernel, const Shape& shape,
                    const std::vector<std::pair<std::uint64_t, int>>& versions) {
  const Status opened = run_job(kernel, shape, [&](engine::Engine& engine, Program& program, std::uint32_t) {
    for (const auto& [version, level] : versions) {
      program.compute(version);
      engine::CheckpointInfo info;
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
