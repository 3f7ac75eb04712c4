#include "agent/behind.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "sys/kernel.hpp"

namespace diapause::agent {
namespace {

// Returns the block of a region that holds the byte at `offset`.
std::uint64_t block_at(const store::ImageReader& image, std::size_t region, std::uint64_t offset) {
  std::uint64_t low = 0, high = image.index().regions[region].block_count();
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (image.block_offset(region, middle) <= offset ? low : high) = middle;
  }
  return low;
}

}  // namespace

RestoredImage::RestoredImage(JobStore& store, StoredJob stored, engine::FetchedVersion fetched)
    : store_(store),
      stored_(std::move(stored)),
      fetched_(std::move(fetched)),
      image_{fetched_.image, fetched_.reading_threads},
      scratch_(format::kBlockBytes) {}

process::ReadContents RestoredImage::reader() {
  return [this](const process::ContentsList& contents, const process::TakePiece& take) {
    return read_contents(image_, contents, take);
  };
}

process::ReadPiece RestoredImage::piece_reader() {
  return [this](const process::StoredContents& contents,
                std::uint64_t offset) -> Result<process::SoundPiece> {
    auto piece = read_piece(contents, offset);
    if (piece) return piece;
    image_.sound = fail(piece.error());
    if (!runs_) return piece;
    if (store_.context().rank_count() > 1) {
      return fail(piece.error().code,
                  fmt::format("the part of the job on this node was ended, because memory that it "
                              "had not been given yet cannot be read; the next restart checks all "
                              "images before: {}",
                              piece.error().message));
    }
    auto other = store_.fetch_other_copy(image_.sound);
    if (other) {
      fetched_.image = std::move(other->image);
      piece = read_piece(contents, offset);
      if (piece) return piece;
    }
    return fail(
        piece.error().code,
        fmt::format("the job was ended, because memory that it had not been given yet cannot be "
                    "read, and no other copy of version {} can be had: {}",
                    fetched_.manifest.version.number, piece.error().message));
  };
}

Result<process::SoundPiece> RestoredImage::read_piece(const process::StoredContents& contents,
                                                      std::uint64_t offset) {
  store::ImageReader& image = fetched_.image;
  const std::uint64_t block = block_at(image, contents.region, offset);
  const MutableBytes room =
      MutableBytes(scratch_).first(image.block_length(contents.region, block));
  DIAPAUSE_TRY_ASSIGN(const ByteView bytes, image.read_block(contents.region, block, room));
  return process::SoundPiece{image.block_offset(contents.region, block), bytes};
}

Result<FillNote> FillNote::open(const StoreRequest& request, const std::string& node) {
  DIAPAUSE_TRY_ASSIGN(const config::Settings settings,
                      read_settings(request.config_path, request.environment));
  DIAPAUSE_TRY_ASSIGN(sys::Directory directory,
                      sys::Directory::make_private(sys::real_kernel(), door_directory(settings)));
  return FillNote(std::move(directory), door_name(request.name, settings) + node + "-fills");
}

bool FillNote::is_left() const { return directory_.id_of(name_).has_value(); }

Status FillNote::leave() const {
  DIAPAUSE_TRY_ASSIGN(const sys::File file, directory_.create_file(name_));
  return {};
}

void FillNote::remove() const { (void)directory_.remove_file(name_); }

}  // namespace diapause::agent
