#include "process/schedule.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/result.hpp"

namespace diapause::process {
namespace {

// This is the first version of struct sched_attr.
struct Policy {
  std::uint32_t size = kPolicyBytes, policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
};
static_assert(sizeof(Policy) == kPolicyBytes);

constexpr int kOfThread = 1;  // IOPRIO_WHO_PROCESS

bool is_fair(const Policy& policy) {
  return policy.policy == SCHED_OTHER || policy.policy == SCHED_BATCH ||
         policy.policy == SCHED_IDLE;
}

Policy policy_in(const ByteVector& bytes) {
  Policy policy;
  if (bytes.size() == sizeof policy) std::memcpy(&policy, bytes.data(), sizeof policy);
  return policy;
}

ByteVector bytes_of(const Policy& policy) {
  const ByteView bytes = as_byte_view(policy);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

Schedule schedule_of(pid_t thread) {
  Schedule schedule;
  ByteVector processors(kMostProcessorBytes);
  const long bytes = ::syscall(SYS_sched_getaffinity, thread, processors.size(), processors.data());
  processors.resize(static_cast<std::size_t>(std::max(bytes, 0L)));
  schedule.processors = std::move(processors);
  Policy policy;
  if (::syscall(SYS_sched_getattr, thread, &policy, sizeof policy, 0) == 0) {
    policy.size = sizeof policy;
    policy.nice = 0;
    schedule.policy = bytes_of(policy);
  }
  schedule.niceness =
      static_cast<std::uint32_t>(std::max(::syscall(SYS_getpriority, PRIO_PROCESS, thread), 0L));
  const long io_priority = ::syscall(SYS_ioprio_get, kOfThread, thread);
  if (io_priority >= 0) schedule.io_priority = static_cast<std::uint32_t>(io_priority);
  return schedule;
}

Schedule own_part(Schedule own, const Schedule& given) {
  if (own.processors == given.processors) own.processors.clear();
  if (own.niceness == given.niceness) own.niceness = 0;
  if (own.io_priority == given.io_priority) own.io_priority = kNone;
  if (own.policy == given.policy) own.policy.clear();
  if (own.policy.empty()) return own;
  // The kernel reports its usual time slice as if it had been asked for, so that one is left out.
  Policy policy = policy_in(own.policy);
  if (is_fair(policy) && policy.runtime_ns == policy_in(given.policy).runtime_ns)
    policy.runtime_ns = 0;
  own.policy = bytes_of(policy);
  return own;
}

bool is_empty(const Schedule& schedule) {
  return schedule.processors.empty() && schedule.policy.empty() && schedule.niceness == 0 &&
         schedule.io_priority == kNone;
}

ByteVector common_processors(ByteView one, ByteView other) {
  ByteVector common(std::min(one.size(), other.size()));
  for (std::size_t i = 0; i < common.size(); ++i) common[i] = one[i] & other[i];
  const bool has_any =
      std::ranges::any_of(common, [](std::byte byte) { return byte != std::byte{}; });
  return has_any ? common : ByteVector{};
}

void set_schedule(pid_t thread, const Schedule& own, const Schedule& given,
                  const std::function<void(const std::string&)>& lost) {
  if (!own.policy.empty()) {
    Policy policy = policy_in(own.policy);
    const long niceness = ::syscall(SYS_getpriority, PRIO_PROCESS, thread);
    constexpr long kFrom = 20;  // the system call itself returns 20 minus the niceness
    if (niceness > 0 && is_fair(policy)) policy.nice = static_cast<std::int32_t>(kFrom - niceness);
    if (::syscall(SYS_sched_setattr, thread, &policy, 0) != 0)
      lost(os_error("the scheduling policy", errno).message);
  }
  if (own.niceness != 0) {
    const int niceness = 20 - static_cast<int>(own.niceness);
    if (::setpriority(PRIO_PROCESS, static_cast<id_t>(thread), niceness) != 0) {
      lost(os_error("the niceness", errno).message);
    }
  }
  if (own.io_priority != kNone &&
      ::syscall(SYS_ioprio_set, kOfThread, thread, own.io_priority) != 0) {
    lost(os_error("the priority at disks", errno).message);
  }
  if (!own.processors.empty()) {
    const ByteVector common = common_processors(own.processors, given.processors);
    if (common.empty()) {
      lost("the binding to processors: it names none of those that this restart may use");
    } else if (::syscall(SYS_sched_setaffinity, thread, common.size(), common.data()) != 0) {
      lost(os_error("the binding to processors", errno).message);
    }
  }
}

}  // namespace diapause::process
