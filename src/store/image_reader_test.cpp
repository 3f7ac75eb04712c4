#include "store/image_reader.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "format/checksum.hpp"
#include "support/same_bytes.hpp"

namespace diapause::store {
namespace {

using testing::HasSubstr;

class VectorBytes : public ByteSource {
 public:
  explicit VectorBytes(ByteVector bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Result<ByteView> view(std::uint64_t offset, MutableBytes scratch) override {
    if (offset + scratch.size() > bytes_.size())
      return fail(Code::internal, "a view behind the end was asked");
    return ByteView(bytes_).subspan(offset, scratch.size());
  }

 private:
  ByteVector bytes_;
};

class UnreadableBytes : public ByteSource {
 public:
  explicit UnreadableBytes(std::uint64_t size) : size_(size) {}
  std::uint64_t size() const override { return size_; }
  Result<ByteView> view(std::uint64_t, MutableBytes) override {
    return fail(Code::io, "the disk is on fire", EIO);
  }

 private:
  std::uint64_t size_;
};

struct Image {
  ByteVector file;
  format::ImageIndex index;
  ExpectedImage expected;
};

format::Region region_of(std::string name, std::uint64_t count) {
  format::Region region;
  region.name = std::move(name);
  region.count = count;
  return region;
}

// The file as docs/formats/image.md has it, without the code that writes images.
Image make_image(std::vector<format::Region> regions) {
  Image image;
  image.index.regions = std::move(regions);
  const std::uint64_t index_offset = *format::lay_out(image.index);
  image.file.resize(index_offset);
  for (format::Region& region : image.index.regions) {
    const MutableBytes data = MutableBytes(image.file).subspan(region.offset, region.stored_bytes);
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<std::byte>((region.offset + i * 7) % 251);
    for (std::uint64_t block = 0; block < region.block_count(); ++block) {
      const std::uint64_t offset = block * format::kBlockBytes;
      const std::uint64_t length =
          std::min<std::uint64_t>(format::kBlockBytes, data.size() - offset);
      region.block_checksums[block] = format::checksum64(data.subspan(offset, length));
    }
  }
  const ByteVector index_bytes = format::encode_index(image.index);
  image.file.insert(image.file.end(), index_bytes.begin(), index_bytes.end());
  format::ImageHeader header;
  header.format_version = format::format_version_of(image.index);
  header.version = {3, 240, {}};
  header.owner = 2;
  header.rank_count = 4;
  header.file_bytes = image.file.size();
  header.index_offset = index_offset;
  header.index_bytes = index_bytes.size();
  header.index_digest = format::digest128(index_bytes);
  std::ranges::copy(format::encode_header(header), image.file.begin());
  image.expected = {header.kind, header.version,    header.owner,
                    header.part, header.rank_count, {header.file_bytes, header.index_digest}};
  return image;
}

Image usual_image() {
  return make_image(
      {region_of("grid", format::kBlockBytes + 100), region_of("none", 0), region_of("step", 8)});
}

Result<ImageReader> open(const ByteVector& file, const ExpectedImage& expected) {
  return ImageReader::open(std::make_unique<VectorBytes>(file), "dir/r2.img", expected);
}

Status open_and_verify(const ByteVector& file, const ExpectedImage& expected) {
  DIAPAUSE_TRY_ASSIGN(ImageReader reader, open(file, expected));
  return reader.verify();
}

void expect_corrupt(const Status& status, const std::string& why) {
  ASSERT_FALSE(status) << why;
  EXPECT_EQ(status.error().code, Code::corrupt);
  EXPECT_THAT(status.error().message, testing::AllOf(HasSubstr("dir/r2.img"), HasSubstr(why)));
}

TEST(ImageReader, FindsTheImageThatTheManifestNamesWhole) {
  const Image image = usual_image();
  auto reader = open(image.file, image.expected);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->index(), image.index);
  EXPECT_EQ(reader->header().owner, 2U);
  EXPECT_EQ(reader->name(), "dir/r2.img");
  EXPECT_TRUE(reader->verify());
}

TEST(ImageReader, ReadsAnImageWithoutRegions) {
  const Image image = make_image({});
  EXPECT_TRUE(open_and_verify(image.file, image.expected));
}

TEST(ImageReader, HandsOnTheBytesOfEveryBlock) {
  const Image image = usual_image();
  auto reader = open(image.file, image.expected);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->block_length(0, 0), format::kBlockBytes);
  EXPECT_EQ(reader->block_length(0, 1), 100U);
  ByteVector scratch(100);
  const auto view = reader->read_block(0, 1, scratch);
  ASSERT_TRUE(view) << view.error().message;
  const ByteView written =
      ByteView(image.file).subspan(image.index.regions[0].offset + format::kBlockBytes, 100);
  EXPECT_TRUE(std::ranges::equal(*view, written));
}

Image image_of_many() {
  std::vector<format::Region> regions;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    regions.push_back(
        region_of("v" + std::to_string(i), i % 1000 == 999 ? format::kBlockBytes + i : i % 1500));
  }
  return make_image(std::move(regions));
}

TEST(ImageReader, DeliversManySmallRegionsAndLargeOnesBetweenThem) {
  const Image image = image_of_many();
  auto reader = open(image.file, image.expected);
  ASSERT_TRUE(reader) << reader.error().message;
  std::vector<ByteVector> memory;
  std::vector<std::byte*> targets;
  for (const format::Region& region : image.index.regions) {
    ByteVector& one = memory.emplace_back(region.stored_bytes);
    targets.push_back(memory.size() % 5 == 0 || one.empty() ? nullptr : one.data());
  }
  for (const unsigned threads : {1U, 3U}) {
    const Status delivered = reader->deliver(targets, threads);
    ASSERT_TRUE(delivered) << delivered.error().message;
    for (std::size_t r = 0; r < targets.size(); ++r) {
      if (targets[r] == nullptr) continue;
      const auto stored =
          ByteView(image.file).subspan(image.index.regions[r].offset, memory[r].size());
      ASSERT_TRUE(std::ranges::equal(memory[r], stored)) << r;
    }
  }
}

TEST(ImageReader, NamesTheDamagedOneOfManySmallRegions) {
  Image image = image_of_many();
  image.file[image.index.regions[1234].offset + 7] ^= std::byte{1};
  expect_corrupt(open_and_verify(image.file, image.expected),
                 "block 0 of region 'v1234' is damaged");
}

TEST(ImageReader, FindsAFlippedBitInEveryByteOfHeaderAndIndex) {
  Image image = make_image({region_of("step", 8)});
  std::uint64_t missed = 0;
  const auto flip = [&](std::uint64_t offset) {
    image.file[offset] ^= std::byte{0x10};
    const auto reader = open(image.file, image.expected);
    missed += reader || reader.error().code != Code::corrupt;
    image.file[offset] ^= std::byte{0x10};
  };
  for (std::uint64_t offset = 0; offset < format::kHeaderBytes; ++offset) flip(offset);
  for (std::uint64_t offset = 2 * kPageBytes; offset < image.file.size(); ++offset) flip(offset);
  EXPECT_EQ(missed, 0U);
}

TEST(ImageReader, FindsAFlippedBitInABlockAndSaysWhere) {
  Image image = usual_image();
  image.file[image.index.regions[0].offset + format::kBlockBytes + 99] ^= std::byte{1};
  expect_corrupt(open_and_verify(image.file, image.expected),
                 "block 1 of region 'grid' is damaged");
}

TEST(ImageReader, HandsOnSoundBlocksOfADamagedImage) {
  Image image = usual_image();
  image.file[image.index.regions[0].offset] ^= std::byte{1};
  auto reader = open(image.file, image.expected);
  ASSERT_TRUE(reader);
  ByteVector scratch(format::kBlockBytes);
  EXPECT_FALSE(reader->read_block(0, 0, scratch));
  EXPECT_TRUE(reader->read_block(0, 1, MutableBytes(scratch).first(100)));
}

TEST(ImageReader, DoesNotLookAtWhatLiesBehindTheImage) {
  Image image = usual_image();
  image.file.resize(image.file.size() + 3 * kPageBytes, std::byte{0xab});
  EXPECT_TRUE(open_and_verify(image.file, image.expected));
}

TEST(ImageReader, RefusesAFileCutShortAnywhere) {
  const Image image = make_image({region_of("step", 8)});
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{1}, kPageBytes - 1, kPageBytes, kPageBytes + 8,
        2 * kPageBytes, image.expected.record.file_bytes - 1}) {
    const ByteVector cut(image.file.begin(),
                         image.file.begin() + static_cast<std::ptrdiff_t>(size));
    expect_corrupt(open_and_verify(cut, image.expected),
                   fmt::format("ends after {} of {} bytes", size, image.file.size()));
  }
}

TEST(ImageReader, RefusesTheImageOfAnotherCheckpoint) {
  const Image image = usual_image();
  ExpectedImage other = image.expected;
  other.version.commit.bytes[15] ^= 1;
  expect_corrupt(open_and_verify(image.file, other),
                 "is of another checkpoint (version 240, commit 0000");
  other = image.expected;
  ++other.version.number;
  expect_corrupt(open_and_verify(image.file, other), "is of another checkpoint");
  other = image.expected;
  ++other.version.incarnation;
  expect_corrupt(open_and_verify(image.file, other), "is of another checkpoint");
}

TEST(ImageReader, RefusesTheImageOfAnotherRank) {
  const Image image = usual_image();
  ExpectedImage other = image.expected;
  other.owner = 3;
  expect_corrupt(open_and_verify(image.file, other), "holds the image of rank 2, not of 3");
  other = image.expected;
  other.part = 1;
  expect_corrupt(open_and_verify(image.file, other), "holds the image of");
  other = image.expected;
  other.kind = format::ImageKind::parity;
  expect_corrupt(open_and_verify(image.file, other), "holds the image of");
}

TEST(ImageReader, RefusesASoundImageThatIsNotTheOneOfTheManifest) {
  const Image image = usual_image();
  ExpectedImage other = image.expected;
  other.rank_count = 5;
  expect_corrupt(open_and_verify(image.file, other), "not the file that the manifest names");
  other = image.expected;
  --other.record.file_bytes;
  expect_corrupt(open_and_verify(image.file, other), "not the file that the manifest names");
  other = image.expected;
  other.record.index_digest.high ^= 1;
  expect_corrupt(open_and_verify(image.file, other), "not the file that the manifest names");
}

TEST(ImageReader, SaysWhyBytesCannotBeRead) {
  const Image image = usual_image();
  const auto reader = ImageReader::open(std::make_unique<UnreadableBytes>(image.file.size()),
                                        "r2.img", image.expected);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, Code::io);
  EXPECT_EQ(reader.error().message, "the disk is on fire");
}

TEST(ExpectedImages, AreWhatTheManifestSays) {
  format::Manifest manifest;
  manifest.version = {1, 2, {}};
  manifest.ranks.resize(3);
  manifest.ranks[1].image = {100, {1, 2}};
  manifest.groups.resize(2);
  manifest.groups[1].parities = {{}, {200, {3, 4}}};
  const ExpectedImage data = expected_image(manifest, 1);
  EXPECT_EQ(data.kind, format::ImageKind::data);
  EXPECT_EQ(data.version, manifest.version);
  EXPECT_EQ(std::pair(data.owner, data.part), std::pair(1U, 0U));
  EXPECT_EQ(data.rank_count, 3U);
  EXPECT_EQ(data.record, manifest.ranks[1].image);
  const ExpectedImage parity = expected_parity(manifest, 1, 1);
  EXPECT_EQ(parity.kind, format::ImageKind::parity);
  EXPECT_EQ(std::pair(parity.owner, parity.part), std::pair(1U, 1U));
  EXPECT_EQ(parity.rank_count, 3U);
  EXPECT_EQ(parity.record, manifest.groups[1].parities[1]);
}

class FileBytesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "diapause-store-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    auto opened = sys::Directory::open_private(sys::real_kernel(), pattern);
    ASSERT_TRUE(opened) << opened.error().message;
    directory_ = std::move(*opened);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  std::unique_ptr<ByteSource> bytes_of(std::string_view text, std::uint64_t size) {
    auto file = directory_.create_file("file");
    EXPECT_TRUE(file && file->write_all(as_byte_view(text), 0));
    return file_bytes(std::move(*file), 0, size);
  }

  std::filesystem::path path_;
  sys::Directory directory_;
};

std::string text_of(const Result<ByteView>& view) {
  if (!view) return view.error().message;
  return {reinterpret_cast<const char*>(view->data()), view->size()};
}

TEST_F(FileBytesTest, AreZerosBehindTheirSize) {
  const auto bytes = bytes_of("abcdef", 4);
  ByteVector scratch(4, std::byte{'?'});
  EXPECT_EQ(bytes->size(), 4U);
  EXPECT_EQ(text_of(bytes->view(1, MutableBytes(scratch).first(3))), "bcd");
  EXPECT_EQ(text_of(bytes->view(2, scratch)), std::string("cd\0\0", 4));
  scratch.assign(4, std::byte{'?'});
  EXPECT_EQ(text_of(bytes->view(4, scratch)), std::string(4, '\0'));
  scratch.assign(4, std::byte{'?'});
  EXPECT_EQ(text_of(bytes->view(1000, scratch)), std::string(4, '\0'));
}

// An image in a file in memory, of which large regions are copied from where they lie.
class ImageInMemory : public FileBytesTest {
 protected:
  void SetUp() override {
    FileBytesTest::SetUp();
    write(image_.file);
    auto reader = ImageReader::open(file_bytes(opened(), 0, image_.file.size()),
                                    (path_ / "r2.img").string(), image_.expected);
    ASSERT_TRUE(reader) << reader.error().message;
    reader_.emplace(std::move(*reader));
    reader_->read_from(opened(), 0, ImageReader::Storage::memory);
    for (const format::Region& region : image_.index.regions)
      targets_.push_back(memory_.emplace_back(region.stored_bytes).data());
  }
  void write(ByteView bytes) {
    auto file = directory_.create_file("r2.img");
    ASSERT_TRUE(file && file->write_all(bytes, 0));
  }
  sys::File opened() { return *directory_.open_file("r2.img", sys::Access::read); }
  bool is_delivered(std::size_t region) {
    const format::Region& one = image_.index.regions[region];
    return test_support::are_same(memory_[region],
                                  ByteView(image_.file).subspan(one.offset, one.stored_bytes));
  }

  Image image_ = make_image({region_of("step", 8), region_of("grid", 5 * kMiB + 77),
                             region_of("flags", 3 * kPageBytes), region_of("more", 3 * kMiB)});
  std::optional<ImageReader> reader_;
  std::vector<ByteVector> memory_;
  std::vector<std::byte*> targets_;
};

TEST_F(ImageInMemory, IsDeliveredWhole) {
  for (const unsigned threads : {1U, 3U}) {
    for (ByteVector& one : memory_) std::ranges::fill(one, std::byte{0});
    const Status delivered = reader_->deliver(targets_, threads);
    ASSERT_TRUE(delivered) << delivered.error().message;
    for (std::size_t region = 0; region < memory_.size(); ++region)
      EXPECT_TRUE(is_delivered(region)) << region;
  }
}

TEST_F(ImageInMemory, IsDeliveredWithoutTheRegionsThatNobodyWants) {
  targets_[1] = nullptr;
  const Status delivered = reader_->deliver(targets_);
  ASSERT_TRUE(delivered) << delivered.error().message;
  EXPECT_FALSE(is_delivered(1));
  EXPECT_TRUE(is_delivered(3));
}

TEST_F(ImageInMemory, IsRefusedWhereItIsDamaged) {
  image_.file[image_.index.regions[1].offset + 4 * kMiB] ^= std::byte{1};
  write(image_.file);
  const Status delivered = reader_->deliver(targets_);
  ASSERT_FALSE(delivered);
  EXPECT_EQ(delivered.error().code, Code::corrupt);
  EXPECT_THAT(delivered.error().message, HasSubstr("r2.img: block 4 of region 'grid' is damaged"));
}

TEST_F(ImageInMemory, IsRefusedWhenItsFileHasBecomeShorter) {
  std::filesystem::resize_file(path_ / "r2.img", 3 * kMiB);
  const Status delivered = reader_->deliver(targets_);
  ASSERT_FALSE(delivered);
  EXPECT_EQ(delivered.error().code, Code::corrupt);
  EXPECT_THAT(delivered.error().message, HasSubstr("r2.img ends at byte"));
}

TEST_F(FileBytesTest, AreAnErrorWhereTheFileHasBecomeShorter) {
  const auto bytes = bytes_of("abc", 6);
  ByteVector scratch(6);
  const auto view = bytes->view(0, scratch);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, Code::corrupt);
  EXPECT_THAT(view.error().message, HasSubstr("/file ends at byte 3"));
}

}  // namespace
}  // namespace diapause::store
