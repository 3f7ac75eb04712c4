#include "capture/capture.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "capture/stream_writer.hpp"
#include "format/checksum.hpp"
#include "support/same_bytes.hpp"
#include "support/value_of.hpp"
#include "sys/file.hpp"

namespace diapause::capture {
namespace {

using test_support::are_same;
using testing::HasSubstr;

constexpr std::byte kOld{0xab};  // fills a reused slot

ByteVector noise(std::size_t size, std::uint32_t seed) {
  ByteVector bytes(size);
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
  return bytes;
}

// A program's memory, and its layout in the image.
struct Program {
  std::vector<ByteVector> memory;
  format::ImageIndex index;
  std::uint64_t index_offset = 0;
  format::ImageHeader identity;

  explicit Program(const std::vector<std::size_t>& sizes) {
    for (const std::size_t size : sizes) {
      format::Region region;
      region.name = fmt::format("region {}", memory.size());
      region.count = size;
      index.regions.push_back(region);
      memory.push_back(noise(size, static_cast<std::uint32_t>(memory.size())));
    }
    index_offset = *format::lay_out(index);
    identity.version = {2, 17, {}};
    identity.owner = 3;
    identity.rank_count = 5;
  }

  MemorySource source() const {
    std::vector<const std::byte*> pointers;
    for (const ByteVector& bytes : memory) pointers.push_back(bytes.data());
    return MemorySource(std::move(pointers));
  }
  std::uint64_t file_bytes() const { return image_bytes(index, index_offset); }
};

// Returns the image as its format describes it, made without the code under test.
ByteVector image_of(const Program& program) {
  ByteVector image(program.file_bytes());
  format::ImageIndex index = program.index;
  for (std::size_t r = 0; r < index.regions.size(); ++r) {
    format::Region& region = index.regions[r];
    const ByteView data = program.memory[r];
    std::ranges::copy(data, image.begin() + static_cast<std::ptrdiff_t>(region.offset));
    for (std::uint64_t block = 0; block < region.block_count(); ++block) {
      const std::uint64_t offset = block * format::kBlockBytes;
      const std::uint64_t length =
          std::min<std::uint64_t>(format::kBlockBytes, data.size() - offset);
      region.block_checksums[block] = format::checksum64(data.subspan(offset, length));
    }
  }
  const ByteVector index_bytes = format::encode_index(index);
  std::ranges::copy(index_bytes, image.begin() + static_cast<std::ptrdiff_t>(program.index_offset));
  format::ImageHeader header = program.identity;
  header.format_version = format::format_version_of(index);
  header.file_bytes = image.size();
  header.index_offset = program.index_offset;
  header.index_bytes = index_bytes.size();
  header.index_digest = format::digest128(index_bytes);
  std::ranges::copy(format::encode_header(header), image.begin());
  return image;
}

struct Shape {
  const char* name;
  std::vector<std::size_t> sizes;
};

std::vector<std::size_t> hundreds() {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < 400; ++i) sizes.push_back(i % 7 * 1371);
  return sizes;
}

std::vector<Shape> shapes() {
  return {{"Nothing", {}},
          {"OneEmptyRegion", {0}},
          {"OneByte", {1}},
          {"WholePages", {kPageBytes, 3 * kPageBytes}},
          {"EmptyRegionsBetweenOthers", {0, 10, 0, 0, 5000, 0}},
          {"BlocksExactly", {format::kBlockBytes, 2 * format::kBlockBytes}},
          {"BlocksAndAByte", {format::kBlockBytes + 1, format::kBlockBytes - 1}},
          {"HundredsOfRegions", hundreds()},
          {"RegionsAsLargeAsABuffer", {4 * kMiB, 4 * kMiB - kPageBytes, 4 * kMiB + kPageBytes}},
          {"RegionsLargerThanAllBuffers", {17 * kMiB + 12345, 9 * kMiB - 1}}};
}

std::string name_of(const testing::TestParamInfo<Shape>& info) { return info.param.name; }

class InADirectory {
 public:
  InADirectory() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "diapause-capture-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
    directory_ = std::move(*sys::Directory::open_private(sys::real_kernel(), pattern));
  }
  ~InADirectory() { std::filesystem::remove_all(path_); }

  // Returns a file like a reused slot: long enough, in whole pages, and full of older data.
  sys::File old_file(std::uint64_t bytes, bool direct) const {
    const ByteVector old(round_up(bytes, kPageBytes), kOld);
    EXPECT_TRUE(directory_.create_file("image")->write_all(old, 0));
    return test_support::value_of(directory_.open_file("image", sys::Access::read_write, direct));
  }

  // Returns the first `bytes` bytes of the file.
  ByteVector read_back(std::uint64_t bytes) const {
    ByteVector content(bytes);
    const Status read = directory_.open_file("image", sys::Access::read)->read_exact(content, 0);
    EXPECT_TRUE(read) << read.error().message;
    return content;
  }

  const sys::Directory& directory() const { return directory_; }

 private:
  std::filesystem::path path_;
  sys::Directory directory_;
};

Status status_of(const Result<Captured>& captured) {
  return captured ? Status{} : fail(captured.error());
}

class CaptureTest : public testing::TestWithParam<Shape> {
 protected:
  CaptureTest()
      : program_(GetParam().sizes), image_(image_of(program_)), source_(program_.source()) {}

  void expect_the_parts(const Result<Captured>& captured) const {
    ASSERT_TRUE(captured) << captured.error().message;
    EXPECT_TRUE(are_same(captured->header_page, ByteView(image_).first(kPageBytes)));
    EXPECT_TRUE(are_same(captured->index_bytes, ByteView(image_).subspan(program_.index_offset)));
    EXPECT_EQ(captured->header.file_bytes, image_.size());
    EXPECT_EQ(format::encode_index(captured->index), captured->index_bytes);
  }

  Program program_;
  ByteVector image_;
  MemorySource source_;
};

TEST_P(CaptureTest, FillsAMappingWithTheImageAndNothingBehindIt) {
  auto slot = *sys::AlignedBuffer::allocate(round_up(image_.size(), kPageBytes) + kPageBytes);
  std::ranges::fill(slot.bytes(), kOld);
  expect_the_parts(capture_to_mapping(source_, program_.index, program_.index_offset,
                                      program_.identity, slot.bytes()));
  EXPECT_TRUE(are_same(slot.bytes().first(image_.size()), image_));
  EXPECT_TRUE(std::ranges::all_of(slot.bytes().subspan(image_.size()),
                                  [](std::byte byte) { return byte == kOld; }));
}

TEST_P(CaptureTest, WritesTheSameImageIntoAFile) {
  const InADirectory place;
  for (const bool direct : {false, true}) {
    const sys::File file = place.old_file(image_.size(), direct);
    expect_the_parts(
        capture_to_file(source_, program_.index, program_.index_offset, program_.identity, file));
    EXPECT_TRUE(are_same(place.read_back(image_.size()), image_))
        << (direct ? "O_DIRECT" : "buffered");
    EXPECT_EQ(file.size().value(), round_up(image_.size(), kPageBytes));
  }
}

TEST_P(CaptureTest, WritesItsRangeOfASharedFileAndNothingElse) {
  constexpr std::uint64_t kBegin = 3 * kPageBytes;
  const InADirectory place;
  const std::uint64_t end = kBegin + round_up(image_.size(), kPageBytes);
  ByteVector expected(end + kPageBytes, kOld);
  std::ranges::copy(image_, expected.begin() + kBegin);
  std::fill(expected.begin() + static_cast<std::ptrdiff_t>(kBegin + image_.size()),
            expected.begin() + static_cast<std::ptrdiff_t>(end), std::byte{0});
  for (const bool copied : {false, true}) {
    const sys::File file = place.old_file(expected.size(), true);
    const FileRange range(file, kBegin);
    const auto captured =
        capture_in_place(source_, program_.index, program_.index_offset, program_.identity);
    expect_the_parts(captured);
    const Status written =
        copied ? write_bytes(*captured_bytes(*captured, source_), range)
               : status_of(capture_to_file(source_, program_.index, program_.index_offset,
                                           program_.identity, range));
    EXPECT_TRUE(written);
    EXPECT_TRUE(are_same(place.read_back(expected.size()), expected));
  }
}

TEST_P(CaptureTest, GivesTheSameBytesWithoutAnImageAtAnyPlace) {
  ByteVector room(round_up(image_.size(), kPageBytes));
  const auto captured =
      capture_to_mapping(source_, program_.index, program_.index_offset, program_.identity, room);
  ASSERT_TRUE(captured);
  const auto bytes = captured_bytes(*captured, source_);
  ASSERT_EQ(bytes->size(), image_.size());
  ByteVector expected = image_;
  expected.resize(image_.size() + 3 * kMiB);
  std::vector<std::uint64_t> offsets = {
      0, 1, kPageBytes - 1, image_.size() - 1, image_.size(), image_.size() + 9};
  for (std::uint64_t i = 0; i < 60; ++i) offsets.push_back(i * 0x9e3779b97f4a7c15 % image_.size());
  for (const format::Region& region : program_.index.regions) offsets.push_back(region.offset);
  for (const std::uint64_t offset : offsets) {
    for (const std::size_t length : {0UL, 1UL, 100UL, 4096UL, 4097UL, 70000UL}) {
      ByteVector scratch(length, kOld);
      const auto view = bytes->view(offset, scratch);
      ASSERT_TRUE(view && are_same(*view, ByteView(expected).subspan(offset, length)))
          << length << " at " << offset;
    }
  }
}

TEST_P(CaptureTest, WritesCapturedBytesToAnotherFileAsTheyAre) {
  ByteVector room(round_up(image_.size(), kPageBytes));
  const auto captured =
      capture_to_mapping(source_, program_.index, program_.index_offset, program_.identity, room);
  ASSERT_TRUE(captured);
  const InADirectory place;
  for (const auto& bytes :
       {captured_bytes(*captured, source_), memory_bytes(room, image_.size())}) {
    const sys::File file = place.old_file(image_.size(), true);
    const Status written = write_bytes(*bytes, file);
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_TRUE(are_same(place.read_back(image_.size()), image_));
  }
}

INSTANTIATE_TEST_SUITE_P(, CaptureTest, testing::ValuesIn(shapes()), name_of);

TEST(MemoryBytes, AreZerosBehindTheirSizeAndNoCopyBeforeIt) {
  const ByteVector memory(10, std::byte{7});
  const auto bytes = memory_bytes(memory, 6);
  ByteVector scratch(4, kOld);
  EXPECT_EQ(bytes->size(), 6U);
  EXPECT_EQ(bytes->view(2, scratch)->data(), memory.data() + 2);
  EXPECT_THAT(*bytes->view(4, scratch),
              testing::ElementsAre(std::byte{7}, std::byte{7}, std::byte{0}, std::byte{0}));
  EXPECT_THAT(*bytes->view(50, scratch), testing::Each(std::byte{0}));
}

// Data that is appended in pieces of any size arrives in order, and padding completes the last
// page.
class StreamWriterTest : public testing::Test {
 protected:
  void expect_written(const std::vector<std::size_t>& pieces, std::uint64_t begin = 0) {
    ByteVector expected(begin, kOld);
    std::uint64_t total = begin;
    for (const std::size_t piece : pieces) total += piece;
    const sys::File file = place_.old_file(total, true);
    auto writer = StreamWriter::create(file, begin);
    ASSERT_TRUE(writer) << writer.error().message;
    for (const std::size_t piece : pieces) {
      const ByteVector data = noise(piece, static_cast<std::uint32_t>(expected.size()));
      const Status appended = writer->append(data);
      ASSERT_TRUE(appended) << appended.error().message;
      expected.insert(expected.end(), data.begin(), data.end());
    }
    const Status finished = writer->finish();
    ASSERT_TRUE(finished) << finished.error().message;
    expected.resize(round_up(total, kPageBytes));
    EXPECT_TRUE(place_.read_back(expected.size()) == expected);
    EXPECT_EQ(file.size().value(), expected.size());
  }

  static constexpr std::size_t kBuffer = StreamWriter::kBufferBytes;
  InADirectory place_;
};

TEST_F(StreamWriterTest, WritesNothingWhenNothingWasAppended) { expect_written({}); }

TEST_F(StreamWriterTest, PadsALastPage) {
  expect_written({1});
  expect_written({kPageBytes});
  expect_written({kPageBytes + 1}, kPageBytes);
}

TEST_F(StreamWriterTest, KeepsBytesInOrderAroundTheEndOfABuffer) {
  expect_written({kBuffer - 1});
  expect_written({kBuffer});
  expect_written({kBuffer + 1});
  expect_written({kBuffer - 1, 1, 1});
  expect_written({kBuffer - 1, 2});
  expect_written({kBuffer - 1, kBuffer, kBuffer}, kPageBytes);
}

TEST_F(StreamWriterTest, UsesItsBuffersAgain) {
  expect_written({kBuffer + 17, 3 * kBuffer - 5, 2 * kBuffer + 3, 9});
}

TEST_F(StreamWriterTest, PadsWithZerosOverSeveralBuffers) {
  const std::uint64_t end = 2 * kBuffer + kPageBytes;
  const sys::File file = place_.old_file(end, false);
  auto writer = StreamWriter::create(file, 0);
  ASSERT_TRUE(writer && writer->append(as_byte_view("begin")) && writer->pad_to(end) &&
              writer->finish());
  ByteVector expected(end);
  std::ranges::copy(as_byte_view("begin"), expected.begin());
  EXPECT_TRUE(place_.read_back(end) == expected);
}

TEST_F(StreamWriterTest, KeepsItsOrderAroundDataThatLast) {
  const std::uint64_t pages = kBuffer + kPageBytes;
  const sys::File file = place_.old_file(7 * pages, true);
  auto memory = sys::AlignedBuffer::allocate(6 * pages);
  ASSERT_TRUE(memory);
  const ByteVector data = noise(6 * pages + 1, 1);
  std::copy_n(data.begin(), 6 * pages, memory->bytes().begin());
  auto writer = StreamWriter::create(file, 0);
  ASSERT_TRUE(writer);
  for (std::uint64_t i = 0; i < 6; ++i)
    ASSERT_TRUE(writer->append_lasting(memory->bytes().subspan(i * pages, pages)));
  ASSERT_TRUE(writer->append(ByteView(data).last(1)));
  ASSERT_TRUE(writer->append_lasting(memory->bytes().first(kPageBytes)) && writer->finish());
  ByteVector expected = data;
  expected.insert(expected.end(), data.begin(), data.begin() + kPageBytes);
  EXPECT_TRUE(place_.read_back(expected.size()) == expected);
}

TEST_F(StreamWriterTest, DoesNotTouchWholePagesThatLast) {
  const sys::File file = place_.old_file(kPageBytes, true);
  void* const unreadable =
      ::mmap(nullptr, kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(unreadable, MAP_FAILED);
  auto writer = StreamWriter::create(file, 0);
  ASSERT_TRUE(writer &&
              writer->append_lasting({static_cast<const std::byte*>(unreadable), kPageBytes}));
  EXPECT_EQ(writer->finish().error().os_errno, EFAULT);
  ::munmap(unreadable, kPageBytes);
}

TEST_F(StreamWriterTest, LeavesAnUnfinishedFileToItsFateWithoutHarm) {
  const sys::File file = place_.old_file(12 * kMiB, true);
  auto writer = StreamWriter::create(file, 0);
  ASSERT_TRUE(writer && writer->append(noise(9 * kMiB, 1)));
}

class FailingSource : public BlockSource {
 public:
  explicit FailingSource(int blocks) : blocks_(blocks) {}
  Result<std::uint64_t> copy(std::size_t, std::uint64_t, MutableBytes) override {
    if (blocks_-- > 0) return 0;
    return fail(Code::corrupt, "block is damaged");
  }

 private:
  int blocks_;
};

TEST(FailedCapture, CarriesTheErrorOfItsSource) {
  const Program program({12 * kMiB});
  const InADirectory place;
  const sys::File file = place.old_file(program.file_bytes(), true);
  FailingSource late(9);
  const auto captured =
      capture_to_file(late, program.index, program.index_offset, program.identity, file);
  ASSERT_FALSE(captured);
  EXPECT_EQ(captured.error().message, "block is damaged");
  FailingSource early(0);
  ByteVector room(round_up(program.file_bytes(), kPageBytes));
  EXPECT_FALSE(
      capture_to_mapping(early, program.index, program.index_offset, program.identity, room));
}

TEST(FailedCapture, NamesTheFileThatCouldNotBeWritten) {
  const InADirectory place;
  for (const std::size_t size : {std::size_t{10}, std::size_t{30 * kMiB}}) {
    const Program program({size});
    ASSERT_TRUE(place.directory().create_file("read-only"));
    const auto file = place.directory().open_file("read-only", sys::Access::read);
    ASSERT_TRUE(file);
    MemorySource source = program.source();
    const auto captured =
        capture_to_file(source, program.index, program.index_offset, program.identity, *file);
    ASSERT_FALSE(captured) << size;
    EXPECT_EQ(captured.error().os_errno, EBADF);
    EXPECT_THAT(captured.error().message, HasSubstr("/read-only"));
  }
}

}  // namespace
}  // namespace diapause::capture
