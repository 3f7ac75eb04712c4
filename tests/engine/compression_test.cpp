// Tests compression on the way to the global tier: files there are smaller, the same values come
// back, and nothing goes wrong in silence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "capture/capture.hpp"
#include "engine/cluster.hpp"
#include "engine/encoding/encoding.hpp"
#include "format/manifest.hpp"
#include "store/image_reader.hpp"
#include "store/names.hpp"

namespace diapause::test_support {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLz4 = "[codec]\nmethod = \"lz4\"\n";

Shape shape_with(const std::string& config) {
  Shape shape;
  shape.ranks = 4;
  shape.elements = 20'000;
  shape.config = config;
  return shape;
}

std::vector<std::string> global_files(const VolatileDisk& disk) {
  std::vector<std::string> paths;
  for (const std::string& path : files_matching(disk, ".img")) {
    if (path.starts_with("/home/job/")) paths.push_back(path);
  }
  return paths;
}

std::uint64_t global_bytes(const VolatileDisk& disk) {
  std::uint64_t bytes = 0;
  for (const std::string& path : global_files(disk)) bytes += disk.read_content(path)->size();
  return bytes;
}

format::Manifest global_manifest(const VolatileDisk& disk) {
  for (const std::string& path : files_matching(disk, store::kManifestNames[0])) {
    if (path.starts_with("/home/job/")) return *format::decode_manifest(*disk.read_content(path));
  }
  ADD_FAILURE() << "there is no manifest in the global tier";
  return {};
}

// Returns the manifest of that version.
format::Manifest manifest_of(const VolatileDisk& disk, std::uint64_t number) {
  for (const std::string& path : files_matching(disk, store::kManifestNames[0])) {
    if (!path.starts_with("/home/job/")) continue;
    const format::Manifest manifest = *format::decode_manifest(*disk.read_content(path));
    if (manifest.version.number == number) return manifest;
  }
  ADD_FAILURE() << "version " << number << " is not in the global tier";
  return {};
}

class Compression : public ::testing::TestWithParam<const char*> {};

TEST_P(Compression, MakesGlobalFilesSmallerAndGivesTheSameValuesBack) {
  VolatileDisk plain, smaller;
  checkpoint_job(plain, shape_with(GetParam()), {{6, 4}});
  const Shape shape = shape_with(std::string(GetParam()) + kLz4);
  checkpoint_job(smaller, shape, {{6, 4}});
  EXPECT_LT(global_bytes(smaller),
            global_bytes(plain) * 3 / 4);  // there are holes where ranks share a file
  expect_restart_from_global(smaller, shape, 6);
  // It does not matter what is configured today.
  expect_restart_from_global(smaller, shape_with(""), 6);
}

TEST_P(Compression, SaysInTheManifestWhatIsThere) {
  VolatileDisk disk;
  checkpoint_job(disk, shape_with(std::string(GetParam()) + kLz4), {{6, 4}});
  const format::Manifest manifest = global_manifest(disk);
  for (std::uint32_t rank = 0; rank < manifest.ranks.size(); ++rank) {
    const format::RankRecord& record = manifest.ranks[rank];
    EXPECT_TRUE(record.is_encoded());
    EXPECT_LT(record.encoded.file_bytes, record.image.file_bytes / 2);
    EXPECT_EQ(record.greatest_error, 0);
  }
}

// Places in the compressed blocks of the first region, and in the index.
std::vector<std::size_t> places_in(const ByteVector& image) {
  const format::ImageHeader header = format::decode_header(image).value();
  const auto index =
      format::decode_index(ByteView(image).subspan(header.index_offset, header.index_bytes), header)
          .value();
  const format::Region& field = index.regions.front();
  EXPECT_FALSE(field.is_raw());
  std::vector<std::size_t> places;
  for (std::uint64_t i = 0; i < 20; ++i) {
    places.push_back(field.offset + field.stored_bytes * i / 20);
    places.push_back(header.index_offset + header.index_bytes * i / 20);
  }
  return places;
}

TEST_P(Compression, LetsNoFlippedBitThrough) {
  VolatileDisk disk;
  const Shape shape = shape_with(std::string(GetParam()) + kLz4);
  checkpoint_job(disk, shape, {{6, 4}});
  disk.erase("/memory");
  const std::string path = global_files(disk).front();
  const ByteVector sound = *disk.read_content(path);
  for (const std::size_t at : places_in(sound)) {
    ByteVector damaged = sound;
    damaged[at] ^= std::byte{4};
    disk.write_content(path, damaged);
    const Restarted restarted = restart_job(disk, shape);
    EXPECT_FALSE(restarted.status) << at;
    EXPECT_TRUE(restarted.intact) << at << ": memory was touched";
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Compression,
                         ::testing::Values("", "[global]\nfiles = \"auto\"\n",
                                           "[global]\nmode = \"direct\"\n"));

TEST(Compression, LeavesTheNodesAsTheyAre) {
  VolatileDisk plain, smaller;
  checkpoint_job(plain, shape_with(""), {{6, 4}});
  checkpoint_job(smaller, shape_with(kLz4), {{6, 4}});
  smaller.erase("/home/job");
  const Restarted restarted = restart_job(smaller, shape_with(kLz4));
  EXPECT_EQ(restarted.version, 6u);
  EXPECT_TRUE(restarted.intact);
}

// An image of one region of doubles, as a capture leaves it in a slot.
ByteVector image_of(const std::vector<double>& values) {
  format::Region region;
  region.name = "field";
  region.type = format::ElementType::float64;
  region.element_bytes = 8;
  region.count = values.size();
  format::ImageIndex index{{region}};
  const std::uint64_t index_offset = format::lay_out(index).value();
  format::ImageHeader identity;
  identity.rank_count = 1;
  capture::MemorySource source({reinterpret_cast<const std::byte*>(values.data())});
  ByteVector image(capture::image_bytes(index, index_offset));
  (void)capture::capture_to_mapping(source, index, index_offset, identity, image).value();
  return image;
}

engine::EncodingPlan plan_of(codec::CodecId codec) { return {{{{codec}, ""}}}; }

sys::File new_file(VolatileDisk& disk) {
  return sys::Directory::make_private(disk, "/home/job/x").value().create_file("image").value();
}

TEST(Encoding, RefusesToMakeDamagedDataLookSound) {
  VolatileDisk disk;
  ByteVector image = image_of(std::vector<double>(300'000, 1.5));
  image[2'000'000] ^= std::byte{1};
  engine::Encoding encoding(1);
  sys::RateLimiter limiter(0);
  const auto bytes = capture::memory_bytes(image, image.size());
  const auto written =
      encoding.write(*bytes, plan_of(codec::CodecId::shuffle_lz4), new_file(disk), limiter);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::corrupt);
  EXPECT_THAT(written.error().message, HasSubstr("block 1 of region 'field' is damaged"));
}

TEST(Encoding, NeedsNoMoreRoomThanItSays) {
  std::vector<double> noise(300'000);
  std::uint64_t state = 1;
  for (double& value : noise) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = std::bit_cast<double>(state);
  }
  VolatileDisk disk;
  const ByteVector image = image_of(noise);
  engine::Encoding encoding(2);
  sys::RateLimiter limiter(0);
  const auto bytes = capture::memory_bytes(image, image.size());
  const auto written =
      encoding.write(*bytes, plan_of(codec::CodecId::shuffle_zstd), new_file(disk), limiter);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_LE(written->record.file_bytes,
            engine::most_encoded_bytes(engine::describe(*bytes)->index));
}

// ---- loss

constexpr double kBound = 1e-4;

// A field besides the program's own regions, of which values may be changed.
struct Field {
  std::vector<double> values = std::vector<double>(30'000);

  static double truth(std::uint64_t version, std::size_t i) {
    return std::sin(static_cast<double>(i) * 0.001 + static_cast<double>(version)) +
           1e-7 * static_cast<double>(i % 13);
  }
  void compute(std::uint64_t version) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = truth(version, i);
  }
  double greatest_error(std::uint64_t version) const {
    double greatest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      greatest = std::max(greatest, std::abs(values[i] - truth(version, i)));
    }
    return greatest;
  }
  Status protect(library::Engine& engine) {
    format::Region region;
    region.name = "smooth";
    region.type = format::ElementType::float64;
    region.element_bytes = 8;
    region.count = values.size();
    return engine.protect({region, reinterpret_cast<std::byte*>(values.data())});
  }
};

using Prepare = std::function<void(library::Engine& engine)>;
void allow(library::Engine& engine) {
  EXPECT_TRUE(engine.allow_loss("smooth", {codec::CodecId::lattice, kBound}));
}

void take_lossy(VolatileDisk& disk, const Shape& shape, const std::vector<std::uint64_t>& versions,
                const Prepare& prepare = allow) {
  ASSERT_TRUE(run_job(disk, shape, [&](library::Engine& engine, Program& program, std::uint32_t) {
    Field field;
    EXPECT_TRUE(field.protect(engine));
    prepare(engine);
    for (const std::uint64_t version : versions) {
      program.compute(version);
      field.compute(version);
      library::CheckpointInfo info;
      EXPECT_TRUE(take(engine, version, 4, info));
    }
    EXPECT_TRUE(engine.close(60));
  }));
}

struct CameBack {
  library::RestartInfo info;
  double greatest_error = 0;
  bool rest_is_exact = true;
  Status status;
};

CameBack restart_lossy(
    VolatileDisk& disk, const Shape& shape, const Prepare& prepare = [](library::Engine&) {}) {
  CameBack back;
  std::mutex mutex;
  EXPECT_TRUE(run_job(disk, shape, [&](library::Engine& engine, Program& program, std::uint32_t) {
    Field field;
    EXPECT_TRUE(field.protect(engine));
    prepare(engine);
    library::RestartInfo info;
    Status status = engine.restart_begin(library::Engine::kNewest, info);
    if (status) status = engine.restore({});
    if (status) status = engine.restart_end();
    {
      const std::lock_guard lock(mutex);
      back.info = info;
      back.greatest_error = std::max(back.greatest_error, field.greatest_error(info.version));
      back.rest_is_exact = back.rest_is_exact && program.holds(info.version);
      back.status = status;
    }
    if (!status) return;
    library::CheckpointInfo taken;
    EXPECT_TRUE(take(engine, info.version + 1, 4, taken));
  }));
  return back;
}

TEST(Loss, StaysWithinItsBoundAndIsToldOfAtTheRestart) {
  VolatileDisk disk;
  take_lossy(disk, shape_with(kLz4), {6});
  disk.erase("/memory");
  const CameBack back = restart_lossy(disk, shape_with(kLz4));
  ASSERT_TRUE(back.status) << back.status.error().message;
  EXPECT_GT(back.greatest_error, 0);
  EXPECT_LE(back.greatest_error, kBound);
  EXPECT_DOUBLE_EQ(back.info.greatest_error, back.greatest_error);
  EXPECT_TRUE(back.rest_is_exact);
}

TEST(Loss, DoesNotReachTheImagesOnTheNodes) {
  VolatileDisk disk;
  take_lossy(disk, shape_with(""), {6});
  const CameBack back = restart_lossy(disk, shape_with(""));
  EXPECT_EQ(back.greatest_error, 0);
  EXPECT_EQ(back.info.greatest_error, 0);
}

TEST(Loss, MakesFilesSmallerThanAnyCodecWithoutItDoes) {
  VolatileDisk lossy, exact;
  take_lossy(lossy, shape_with(kLz4), {6});
  take_lossy(exact, shape_with(kLz4), {6}, [](library::Engine&) {});
  EXPECT_LT(global_bytes(lossy), global_bytes(exact) / 2);
}

TEST(Loss, IsInTheLineageOfWhatIsComputedFromIt) {
  VolatileDisk disk;
  take_lossy(disk, shape_with(""), {6});
  EXPECT_EQ(global_manifest(disk).lossy_restarts, 0u);
  disk.erase("/memory");
  EXPECT_TRUE(restart_lossy(disk, shape_with("")).status);  // it takes the next version as well
  EXPECT_EQ(manifest_of(disk, 7).lossy_restarts, 1u);
}

TEST(Loss, LeavesAnExactVersionAmongSoMany) {
  VolatileDisk disk;
  const Shape shape = shape_with("[codec]\nanchor_every = 3\n[level4]\nkeep = 2\n");
  take_lossy(disk, shape, {1, 2, 3, 4, 5});
  EXPECT_EQ(manifest_of(disk, 3).greatest_error(), 0);
  EXPECT_GT(manifest_of(disk, 4).greatest_error(), 0);
  EXPECT_GT(manifest_of(disk, 5).greatest_error(), 0);
  EXPECT_EQ(manifest_of(disk, 5).lossy_in_a_row, 2u);
}

TEST(Loss, IsRefusedForWhatNoCodecTakes) {
  VolatileDisk disk;
  take_lossy(disk, shape_with(""), {6}, [](library::Engine& engine) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double bound : {nan, 0.0, -1e-3, std::numeric_limits<double>::infinity(), 1e-310}) {
      const Status allowed = engine.allow_loss("smooth", {codec::CodecId::lattice, bound});
      ASSERT_FALSE(allowed) << bound;
      EXPECT_EQ(allowed.error().code, Code::argument);
      EXPECT_THAT(allowed.error().message, HasSubstr("region 'smooth'"));
    }
    const Status integers = engine.allow_loss("counter", {codec::CodecId::lattice, kBound});
    ASSERT_FALSE(integers);
    EXPECT_THAT(integers.error().message, HasSubstr("only float32 and float64"));
    EXPECT_EQ(engine.allow_loss("nothing", {codec::CodecId::lattice, kBound}).error().code,
              Code::not_found);
  });
  EXPECT_EQ(global_manifest(disk).greatest_error(), 0);
}

TEST(Loss, IsRefusedWhereTheValuesThatAreThereCannotBeResolved) {
  VolatileDisk disk;
  take_lossy(disk, shape_with(""), {6}, [](library::Engine& engine) {
    std::vector<double> large(100, 1e6);
    format::Region region;
    region.name = "large";
    region.type = format::ElementType::float64;
    region.element_bytes = 8;
    region.count = large.size();
    EXPECT_TRUE(engine.protect({region, reinterpret_cast<std::byte*>(large.data())}));
    const Status refused = engine.allow_loss("large", {codec::CodecId::lattice, 1e-12});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::argument);
    EXPECT_THAT(refused.error().message, HasSubstr("region 'large': the bound 1e-12 is below"));
    EXPECT_TRUE(engine.allow_loss("large", {codec::CodecId::lattice, 1e-6}));
    EXPECT_TRUE(engine.unprotect("large"));
  });
}

TEST(Loss, GivesWayToABoundThatValuesCannotBeResolvedTo) {
  VolatileDisk disk;
  take_lossy(disk, shape_with(""), {6}, [](library::Engine& engine) {
    EXPECT_TRUE(engine.allow_loss("smooth", {codec::CodecId::lattice, 1e-300}));
  });
  EXPECT_EQ(global_manifest(disk).greatest_error(), 0);
  disk.erase("/memory");
  EXPECT_EQ(restart_lossy(disk, shape_with("")).greatest_error, 0);
}

TEST(Invariants, ThatWouldNotHoldKeepTheirRegionsExact) {
  for (const bool holds : {true, false}) {
    VolatileDisk disk;
    take_lossy(disk, shape_with(""), {6}, [&](library::Engine& engine) {
      allow(engine);
      const auto asked = [&](std::span<const ByteView> values) {
        EXPECT_EQ(values.size(), 1u);
        EXPECT_EQ(values[0].size(), Field().values.size() * sizeof(double));
        return holds;
      };
      EXPECT_TRUE(engine.keep_invariant({{"smooth"}, asked}));
    });
    EXPECT_EQ(global_manifest(disk).greatest_error() > 0, holds);
  }
}

TEST(Invariants, SeeTheValuesThatWouldComeBack) {
  VolatileDisk disk;
  std::atomic<double> seen = 0;
  take_lossy(disk, shape_with(""), {6}, [&](library::Engine& engine) {
    allow(engine);
    EXPECT_TRUE(engine.keep_invariant({{"smooth"}, [&](std::span<const ByteView> values) {
                                         Field field;
                                         std::memcpy(field.values.data(), values[0].data(),
                                                     values[0].size());
                                         seen = field.greatest_error(6);
                                         return true;
                                       }}));
  });
  disk.erase("/memory");
  EXPECT_EQ(restart_lossy(disk, shape_with("")).greatest_error, seen);
}

TEST(RestoreHook, RunsWhenTheRegionsAreThere) {
  VolatileDisk disk;
  take_lossy(disk, shape_with(""), {6});
  std::atomic<int> calls = 0;
  EXPECT_TRUE(restart_lossy(disk, shape_with(""), [&](library::Engine& engine) {
                engine.on_restore([&]() -> Status {
                  ++calls;
                  return {};
                });
              }).status);
  EXPECT_EQ(calls, 4);
}

TEST(RestoreHook, FailsTheRestoreOnAllRanks) {
  VolatileDisk disk;
  take_lossy(disk, shape_with(""), {6});
  const CameBack back = restart_lossy(disk, shape_with(""), [&](library::Engine& engine) {
    engine.on_restore([]() -> Status { return fail(Code::argument, "not from there"); });
  });
  ASSERT_FALSE(back.status);
  EXPECT_THAT(back.status.error().message, HasSubstr("not from there"));
}

}  // namespace
}  // namespace diapause::test_support
