// Finds message queues of POSIX (mq_open), which are not restored. They belong to the IPC namespace
// of the job, whether a process has them open or not.
#include <fmt/core.h>
#include <sys/vfs.h>

#include <filesystem>

#include "process/dump_parts.hpp"

namespace diapause::process {

bool is_of_posix_queues(const std::string& path) {
  constexpr std::uint32_t kQueues = 0x19800202;  // MQUEUE_MAGIC
  struct statfs found {};
  return ::statfs(path.c_str(), &found) == 0 && static_cast<std::uint32_t>(found.f_type) == kQueues;
}

// Process 1 of the job has the directory of them open.
void refuse_posix_queues(DumpWork& work) {
  const std::string files = fmt::format("/proc/{}/fd", work.frozen.first());
  for (const pid_t number : numbers_in(files).value_or(std::vector<pid_t>{})) {
    const std::string queues = fmt::format("{}/{}", files, number);
    if (!is_of_posix_queues(queues)) continue;
    std::error_code none;
    for (const auto& queue : std::filesystem::directory_iterator(queues, none)) {
      work.refuse(
          work.frozen.processes().front().status,
          fmt::format("is in a job that has the POSIX message queue /{} (mq_open), which is "
                      "not restored yet",
                      queue.path().filename().native()));
    }
  }
}

}  // namespace diapause::process
