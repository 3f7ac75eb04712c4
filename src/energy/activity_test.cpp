#include "energy/activity.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "support/scratch_directory.hpp"
#include "support/value_of.hpp"

namespace diapause::energy {
namespace {

class ActivityOfANode : public testing::Test {
 protected:
  ActivityOfANode() {
    write("/proc/stat", "cpu  1000 0 500 8000 500 0 0 0 0 0");
    write("/sys/block/nvme0n1/stat", "10 0 2000 5 20 0 4000 9 0 0 0");
    write("/sys/block/nvme0n1/device/model", "disk");
    write("/sys/block/dm-0/stat", "10 0 2000 5 20 0 4000 9 0 0 0");  // built on the other device
    write("/sys/class/net/eth0/statistics/rx_bytes", "1000");
    write("/sys/class/net/eth0/statistics/tx_bytes", "1000");
    write("/sys/class/net/eth0/device/vendor", "0x1");
    write("/sys/class/net/lo/statistics/rx_bytes", "0");
    write("/sys/class/net/lo/statistics/tx_bytes", "0");
    write("/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "0");
    write("/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "0");
    write("/sys/devices/system/cpu/cpu0/online", "1");
    write("/sys/devices/system/cpu/cpu1/online", "1");
    write("/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", "2000000");
    write("/sys/devices/system/cpu/cpufreq/policy1/scaling_cur_freq", "1000000");
  }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_.string() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  ActivityReader open() {
    auto reader =
        test_support::value_of(ActivityReader::open(sys::real_kernel(), root_, moved_bytes_));
    EXPECT_TRUE(reader.since_last(100).has_value());
    return reader;
  }

  const test_support::ScratchDirectory scratch_;
  const std::filesystem::path& root_ = scratch_.path();
  std::atomic<std::uint64_t> moved_bytes_{0};
};

TEST_F(ActivityOfANode, IsBusyWithWhatItsProcessorsDoAndNotWithWaiting) {
  ActivityReader reader = open();
  // There are 100 more ticks busy (user, system, interrupts), 200 idle, 50 waiting for disks, and
  // 50 stolen by the hypervisor.
  write("/proc/stat", "cpu  1040 10 530 8200 550 10 10 50 0 0");
  EXPECT_DOUBLE_EQ(reader.since_last(101)->utilisation, 0.25);
}

TEST_F(ActivityOfANode, MovesTheBytesOfItsDevicesAndOfNoOthers) {
  ActivityReader reader = open();
  write("/sys/block/nvme0n1/stat",
        "10 0 1002000 5 20 0 3004000 9 0 0 0");  // 4000000 sectors of 512 bytes more
  write("/sys/block/dm-0/stat", "10 0 1002000 5 20 0 3004000 9 0 0 0");
  write("/sys/class/net/eth0/statistics/tx_bytes", "1000001000");
  write("/sys/class/net/lo/statistics/tx_bytes", "5000000000");
  // Counted in units of 4 bytes.
  write("/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "500000000");
  moved_bytes_ += 6000000000;
  const auto activity = reader.since_last(102);
  EXPECT_DOUBLE_EQ(activity->disk_gb_s, 1.024);
  EXPECT_DOUBLE_EQ(activity->network_gb_s, 1.5);
  EXPECT_DOUBLE_EQ(activity->memory_gb_s, 3);
}

TEST_F(ActivityOfANode, HasTheMeanClockOfItsProcessors) {
  ActivityReader reader = open();
  EXPECT_EQ(count_cpus(sys::real_kernel(), root_), 2U);
  EXPECT_DOUBLE_EQ(reader.since_last(101)->ghz, 1.5);
  write("/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", "3000000");
  write("/sys/devices/system/cpu/cpufreq/policy1/scaling_cur_freq", "3000000");
  EXPECT_DOUBLE_EQ((reader.since_last(102), reader.since_last(103))->ghz, 3);
}

TEST_F(ActivityOfANode, MayHaveNoClocksAndNoDevices) {
  std::filesystem::remove_all(root_ / "sys");
  ActivityReader reader = open();
  const auto activity = reader.since_last(101);
  EXPECT_EQ(activity->ghz, 0);
  EXPECT_EQ(activity->disk_gb_s, 0);
}

}  // namespace
}  // namespace diapause::energy
