#include "sys/devices.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace diapause::sys {
namespace {

class DevicesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "devices-XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void add(const std::string& path) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path).put('\n');
  }
  std::string root_;
};

TEST_F(DevicesTest, AreNoneWhereThereAreOnlyHarmlessOnes) {
  EXPECT_EQ(device_that_writes_memory(root_), "");
  for (const char* path :
       {"/dev/null", "/dev/infiniband/rdma_cm", "/dev/nvidia-caps/x", "/dev/cxi", "/dev/shm/kfd"}) {
    add(path);
  }
  EXPECT_EQ(device_that_writes_memory(root_), "");
}

TEST_F(DevicesTest, AreFoundByTheirNames) {
  for (const char* path : {"/dev/infiniband/uverbs1", "/dev/hfi1_0", "/dev/cxi2", "/dev/nvidia0",
                           "/dev/kfd", "/dev/xpmem", "/dev/knem"}) {
    add(path);
    EXPECT_EQ(device_that_writes_memory(root_), root_ + path);
    std::filesystem::remove(root_ + path);
  }
}

}  // namespace
}  // namespace diapause::sys
