#include "agent/probation.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace diapause::agent {
namespace {

struct Ended {
  std::uint32_t id, status;
};

process::Job job_of(const std::vector<std::uint32_t>& living,
                    const std::vector<Ended>& ended = {}) {
  process::Job job;
  for (const std::uint32_t id : living) job.processes.emplace_back().id = id;
  for (const Ended& one : ended) {
    process::Process& process = job.processes.emplace_back();
    process.id = one.id;
    process.has_ended = true;
    process.exit_status = one.status;
  }
  return job;
}

// A version is stored, and then another one, one second before the job fails.
bool is_put_in_doubt(const process::Job& first, const process::Job& second) {
  Probation probation;
  probation.stored(first, probation.lacks_processes(first), 100);
  probation.stored(second, probation.lacks_processes(second), 200);
  return probation.fails(201).has_value();
}

TEST(Probation, AVersionWithoutAProcessOfTheLastOneIsDoubtful) {
  EXPECT_TRUE(is_put_in_doubt(job_of({2, 3, 4}), job_of({2, 4})));
  EXPECT_TRUE(is_put_in_doubt(job_of({2, 3}), job_of({2, 5})));
  EXPECT_FALSE(is_put_in_doubt(job_of({2, 3}), job_of({2, 3})));
  EXPECT_FALSE(is_put_in_doubt(job_of({2, 3}), job_of({2, 3, 4})));
}

TEST(Probation, AProcessThatHasEndedAndNobodyHasWaitedForIsMissing) {
  EXPECT_TRUE(is_put_in_doubt(job_of({2, 3}), job_of({2}, {{3, 0}})));
  EXPECT_TRUE(is_put_in_doubt(job_of({2}), job_of({2}, {{3, 9}})));          // SIGKILL
  EXPECT_TRUE(is_put_in_doubt(job_of({2}), job_of({2}, {{3, 11 | 0x80}})));  // with a core
  EXPECT_FALSE(is_put_in_doubt(job_of({2}), job_of({2}, {{3, 0}})));
  EXPECT_FALSE(is_put_in_doubt(job_of({2}), job_of({2}, {{3, 7 << 8}})));  // by itself
}

TEST(Probation, EndsWhenTheJobHasGoneOn) {
  Probation probation;
  probation.stored(job_of({2}), true, 100);
  EXPECT_TRUE(probation.is_doubtful(100 + Probation::kLimit_s - 1));
  EXPECT_TRUE(probation.fails(100 + Probation::kLimit_s - 1));
  EXPECT_FALSE(probation.is_doubtful(100 + Probation::kLimit_s + 1));
  EXPECT_FALSE(probation.fails(100 + Probation::kLimit_s + 1));
}

TEST(Probation, AJobThatFailsAtOnceAfterItsRestartPutsTheVersionInDoubt) {
  Probation probation;
  EXPECT_FALSE(probation.fails(1));  // there is no version
  probation.restored(job_of({2, 3}), 100);
  EXPECT_TRUE(probation.fails(101));
  probation.stored(job_of({2, 3}), false, 102);
  EXPECT_FALSE(probation.fails(103));
}

}  // namespace
}  // namespace diapause::agent
