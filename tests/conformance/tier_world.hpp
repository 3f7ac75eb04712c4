// Where a tier lies in these tests, and the shortest way to put a version into it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "capture/capture.hpp"
#include "format/manifest.hpp"
#include "store/tier.hpp"
#include "support/volatile_disk.hpp"
#include "sys/kernel.hpp"

namespace diapause::conformance {

enum class Ground { real, disk_in_memory };

// A place of its own for each test. On the real kernel it is a new directory, removed at the end.
class World {
 public:
  explicit World(Ground ground);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  sys::Kernel& kernel() { return disk_ ? static_cast<sys::Kernel&>(*disk_) : sys::real_kernel(); }
  test_support::VolatileDisk* disk() { return disk_.get(); }  // null on the real kernel
  std::string root() const { return path_ + "/tier"; }

  void make_directory(const std::string& path, mode_t mode);
  void give_to_somebody_else(const std::string& path);

 private:
  std::unique_ptr<test_support::VolatileDisk> disk_;
  std::string path_;
};

Result<store::Tier> open_tier(sys::Kernel& kernel, config::TierKind kind, const std::string& root,
                              bool create = true);

format::VersionId version_of(std::uint64_t number);

// The memory of one rank: `bytes` bytes, all of them `fill`.
struct Content {
  Content(format::VersionId version, std::size_t bytes, std::byte fill);
  std::uint64_t image_bytes() const { return capture::image_bytes(index, index_offset); }

  ByteVector memory;
  format::ImageIndex index;
  std::uint64_t index_offset = 0;
  format::ImageHeader identity;
};

// These are the steps of a checkpoint of a job with one rank, in their order.
Result<format::Manifest> write_image(store::Slot& slot, const Content& content);
Status settle_image(store::Tier& tier, store::Slot& slot, const format::Manifest& manifest);

struct Stored {
  store::Slot slot;
  format::Manifest manifest;
};
// All of them: acquire, write, settle, sync, publish.
Result<Stored> store_version(store::Tier& tier, const Content& content);

// Returns whether the version is there with its manifest, and all of its image is sound. The result
// is Code::not_found if there is no manifest, and Code::corrupt if there is one without the image
// that it promises.
Status check_whole(const store::Tier& tier, const format::VersionId& version);

// The names of what lies in a directory, in order.
std::vector<std::string> names_in(const sys::Directory& directory);

// For the names of tests.
std::string name_of_kind(const testing::TestParamInfo<config::TierKind>& info);

}  // namespace diapause::conformance
