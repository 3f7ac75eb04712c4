#include "codec/region_coder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "codec/test_samples.hpp"
#include "support/value_of.hpp"

namespace diapause::codec {
namespace {

using format::ElementType;
using test::Kind;
using testing::HasSubstr;

void run_here(std::uint64_t pieces, const std::function<void(std::uint64_t)>& piece) {
  for (std::uint64_t i = 0; i < pieces; ++i) piece(i);
}

void run_in_threads(std::uint64_t pieces, const std::function<void(std::uint64_t)>& piece) {
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < pieces; ++i) threads.emplace_back(piece, i);
  for (std::thread& thread : threads) thread.join();
}

const Shape kWhole{ElementType::float64, {1, 10, 100, 100}};

BlockPlan plan_of_ten() {
  format::Region region;
  region.type = kWhole.type;
  region.element_bytes = 8;
  region.count = kWhole.count();
  region.place = {{10, 10, 0}, {100, 100, 0}, {100, 100, 0}};
  return {region, 80000};
}

ByteVector encode(const ByteVector& raw, const Workforce& force, RegionReport* report = nullptr) {
  auto encoder = RegionEncoder::create({}, force).value();
  ByteVector encoded;
  const auto append = [&](ByteView block) -> Status {
    encoded.insert(encoded.end(), block.begin(), block.end());
    return {};
  };
  const RegionReport done = test_support::value_of(encoder.encode(raw, plan_of_ten(), append));
  if (report) *report = done;
  return encoded;
}

TEST(Regions, ComeBackFromBlocksMadeByAnyNumberOfThreads) {
  const ByteVector raw = test::data_of(Kind::steps, kWhole);
  RegionReport report;
  const ByteVector encoded = encode(raw, {run_here, 1}, &report);
  EXPECT_EQ(report.blocks, 10u);
  EXPECT_EQ(report.raw_bytes, raw.size());
  EXPECT_EQ(report.stored_bytes, encoded.size());
  for (const std::uint64_t size : {1, 3, 16}) {
    EXPECT_EQ(encode(raw, {run_in_threads, size}), encoded);
    ByteVector back(raw.size());
    const auto decoded = RegionDecoder({run_in_threads, size}).decode(encoded, plan_of_ten(), back);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(back, raw);
  }
}

TEST(Regions, NameTheBlockThatIsDamaged) {
  const ByteVector raw = test::data_of(Kind::smooth, kWhole);
  ByteVector encoded = encode(raw, {run_here, 1}), back(raw.size());
  encoded[encoded.size() - 1] ^= std::byte{1};
  RegionDecoder decoder({run_here, 4});
  EXPECT_THAT(decoder.decode(encoded, plan_of_ten(), back).error().message, HasSubstr("block 9: "));
  EXPECT_FALSE(decoder.decode(ByteView(encoded).first(encoded.size() / 2), plan_of_ten(), back));
  encoded = encode(raw, {run_here, 1});
  encoded.push_back({});
  EXPECT_THAT(decoder.decode(encoded, plan_of_ten(), back).error().message,
              HasSubstr("behind the last block"));
}

TEST(Regions, StopWhereTheSinkSaysSo) {
  auto encoder = RegionEncoder::create({}, {run_here, 2}).value();
  const auto done = encoder.encode(test::data_of(Kind::smooth, kWhole), plan_of_ten(),
                                   [](ByteView) -> Status { return fail(Code::full, "no room"); });
  EXPECT_EQ(done.error().message, "no room");
}

TEST(Regions, OfIntegersAreNeverEncodedWithLoss) {
  format::Region ids;
  ids.type = ElementType::int64;
  ids.element_bytes = 8;
  ids.count = 10;
  auto encoder = RegionEncoder::create({CodecId::lattice, 1e-3}, {run_here, 1}).value();
  const auto done =
      encoder.encode(ByteVector(80), BlockPlan(ids, kMiB), [](ByteView) -> Status { return {}; });
  EXPECT_EQ(done.error().code, Code::argument);
  EXPECT_THAT(done.error().message, HasSubstr("int64"));
}

}  // namespace
}  // namespace diapause::codec
