#include "cli/rebuilt_image.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "redundancy/layout.hpp"
#include "redundancy/reed_solomon.hpp"
#include "store/names.hpp"

namespace diapause::cli {
namespace {

// A part of a codeword: bytes of a file, or zeros where a node has no rank.
struct Chunk {
  std::uint32_t position = 0;  // in the codeword
  ByteSource* bytes = nullptr;
  std::uint64_t offset = 0;
};

struct Row {
  std::vector<Chunk> chunks;
  redundancy::ReedSolomon::Decoder decoder;
};

class RebuiltImage final : public ByteSource {
 public:
  RebuiltImage(std::uint64_t size, std::uint64_t chunk_bytes)
      : size_(size), chunk_bytes_(chunk_bytes) {}

  std::uint64_t size() const override { return size_; }

  Result<ByteView> view(std::uint64_t offset, MutableBytes scratch) override {
    for (std::size_t done = 0; done < scratch.size();) {
      const std::uint64_t at = offset + done;
      const std::uint64_t in_chunk = at % chunk_bytes_;
      MutableBytes piece = scratch.subspan(done);
      if (at >= size_) {
        std::memset(piece.data(), 0, piece.size());
        break;
      }
      piece = piece.first(std::min({piece.size(), static_cast<std::size_t>(chunk_bytes_ - in_chunk),
                                    static_cast<std::size_t>(size_ - at)}));
      DIAPAUSE_TRY(decode(rows_[at / chunk_bytes_], in_chunk, piece));
      done += piece.size();
    }
    return ByteView(scratch);
  }

  // The files that it is computed from, and a row for each of its chunks.
  store::ImageReader& add(store::ImageReader file) {
    return *files_.emplace_back(std::make_unique<store::ImageReader>(std::move(file)));
  }
  void add(Row row) { rows_.push_back(std::move(row)); }

 private:
  Status decode(const Row& row, std::uint64_t in_chunk, MutableBytes to) {
    pieces_.resize(row.chunks.size());
    std::vector<const std::byte*> available;
    for (std::size_t i = 0; i < row.chunks.size(); ++i) {
      const Chunk& chunk = row.chunks[i];
      ByteVector& piece = pieces_[i];
      piece.assign(to.size(), std::byte{0});
      if (chunk.bytes != nullptr) {
        DIAPAUSE_TRY_ASSIGN(const ByteView found,
                            chunk.bytes->view(chunk.offset + in_chunk, piece));
        if (found.data() != piece.data()) std::memcpy(piece.data(), found.data(), found.size());
      }
      available.push_back(piece.data());
    }
    std::byte* const wanted[] = {to.data()};
    row.decoder.decode(available, wanted, to.size());
    return {};
  }

  const std::uint64_t size_;
  const std::uint64_t chunk_bytes_;
  std::vector<std::unique_ptr<store::ImageReader>> files_;
  std::vector<Row> rows_;
  std::vector<ByteVector> pieces_;
};

class Rebuilder {
 public:
  Rebuilder(const CollectedVersion& version, const redundancy::Membership& place,
            const redundancy::GroupLayout& layout)
      : version_(version),
        manifest_(*version.manifest),
        place_(place),
        group_(manifest_.groups[place.group]),
        rank_(group_.members[place.member]),
        layout_(layout),
        image_(std::make_unique<RebuiltImage>(manifest_.ranks[rank_].image.file_bytes,
                                              group_.chunk_bytes)) {}

  Result<store::ImageReader> run() {
    DIAPAUSE_TRY_ASSIGN(const redundancy::ReedSolomon code,
                        redundancy::ReedSolomon::create(layout_.k(), layout_.m()));
    images_.resize(layout_.n());
    parities_.resize(layout_.n());
    for (std::uint32_t row = 0; row < layout_.n(); ++row) {
      if (!layout_.holds_parity(place_.member, row)) DIAPAUSE_TRY(add_row(code, row));
    }
    return store::ImageReader::open(
        std::move(image_), fmt::format("the image of rank {}, rebuilt from parity,", rank_),
        store::expected_image(manifest_, rank_));
  }

 private:
  Status add_row(const redundancy::ReedSolomon& code, std::uint32_t row) {
    const auto find = [this](const redundancy::Chunk& chunk) { return find_chunk(chunk); };
    std::vector<Chunk> chunks = layout_.find_chunks(place_.member, row, find);
    if (chunks.size() < layout_.k()) {
      return fail(Code::not_found,
                  fmt::format("no image of it can be reached from here, and of the {} images and "
                              "parities that it could be rebuilt from only {}",
                              layout_.k(), chunks.size()));
    }
    std::vector<std::uint32_t> available;
    for (const Chunk& chunk : chunks) available.push_back(chunk.position);
    const std::uint32_t wanted[] = {layout_.position(place_.member, row)};
    DIAPAUSE_TRY_ASSIGN(redundancy::ReedSolomon::Decoder decoder, code.decoder(available, wanted));
    image_->add(Row{std::move(chunks), std::move(decoder)});
    return {};
  }

  std::optional<Chunk> find_chunk(const redundancy::Chunk& chunk) {
    if (!chunk.is_parity && group_.members[chunk.member] == format::kNoRank)
      return Chunk{chunk.position, nullptr, 0};
    const auto file = chunk.is_parity ? parity_of(chunk.member) : image_of(chunk.member);
    if (!file) return std::nullopt;
    return Chunk{chunk.position, file->bytes, file->begin + chunk.index * group_.chunk_bytes};
  }

  struct File {
    ByteSource* bytes;
    std::uint64_t begin;  // of what the code is about
  };
  struct Known {
    bool is_asked = false;
    std::optional<File> file;
  };

  // Parity is of images as the nodes have them: compressed ones are others.
  std::optional<File> image_of(std::uint32_t member) {
    Known& known = images_[member];
    if (std::exchange(known.is_asked, true)) return known.file;
    const std::uint32_t rank = group_.members[member];
    for (const Part& part : version_.parts) {
      const bool is_encoded =
          part.place->kind == config::TierKind::global && manifest_.ranks[rank].is_encoded();
      if (is_encoded || !store::ranks_in(*part.found, version_.manifest).contains(rank)) continue;
      const store::LocatedImage image = store::locate_image(part.place->kind, manifest_, rank);
      auto reader = open_image(part, image.file, image.expected);
      if (!reader) continue;
      known.file = File{&image_->add(std::move(*reader)).bytes(), 0};
      break;
    }
    return known.file;
  }

  std::optional<File> parity_of(std::uint32_t member) {
    Known& known = parities_[member];
    if (std::exchange(known.is_asked, true)) return known.file;
    for (const Part& part : version_.parts) {
      if (!part.found->parities.contains({place_.group, member})) continue;
      auto reader = open_image(part, store::parity_name(place_.group, member),
                               store::expected_parity(manifest_, place_.group, member));
      if (!reader) continue;
      store::ImageReader& parity = image_->add(std::move(*reader));
      const auto& regions = parity.index().regions;
      known.file = regions.empty() ? File{nullptr, 0} : File{&parity.bytes(), regions[0].offset};
      break;
    }
    return known.file;
  }

  const CollectedVersion& version_;
  const format::Manifest& manifest_;
  const redundancy::Membership place_;
  const format::Group& group_;
  const std::uint32_t rank_;
  const redundancy::GroupLayout layout_;
  std::unique_ptr<RebuiltImage> image_;
  std::vector<Known> images_;    // by member
  std::vector<Known> parities_;  // by member
};

}  // namespace

Result<store::ImageReader> rebuild_image(const CollectedVersion& version, std::uint32_t rank) {
  constexpr int kParity = 3;  // the level
  const format::Manifest& manifest = *version.manifest;
  const auto place = redundancy::membership_of(manifest, rank);
  const bool has_parity =
      manifest.has_level(kParity) && place && manifest.groups[place->group].chunk_bytes > 0;
  if (!has_parity) return fail(Code::not_found, "no image of it can be reached from here");
  const format::Group& group = manifest.groups[place->group];
  DIAPAUSE_TRY_ASSIGN(const auto layout,
                      redundancy::GroupLayout::create(
                          static_cast<std::uint32_t>(group.members.size()), group.parity));
  return Rebuilder(version, *place, layout).run();
}

}  // namespace diapause::cli
