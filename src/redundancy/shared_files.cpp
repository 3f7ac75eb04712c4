#include "redundancy/shared_files.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/bytes.hpp"

namespace diapause::redundancy {

std::vector<std::uint32_t> spread_over_files(std::uint32_t ranks, std::uint32_t files) {
  const std::uint64_t count = std::clamp<std::uint64_t>(files, 1, std::max(ranks, 1u));
  std::vector<std::uint32_t> file_of_rank(ranks);
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    file_of_rank[rank] = static_cast<std::uint32_t>(rank * count / ranks);
  }
  return file_of_rank;
}

Result<SharedLayout> lay_out_files(std::span<const std::uint64_t> image_bytes,
                                   std::span<const std::uint32_t> file_of_rank) {
  constexpr std::uint64_t kLargestFile = INT64_MAX - (kPageBytes - 1);
  SharedLayout layout;
  for (std::size_t rank = 0; rank < image_bytes.size(); ++rank) {
    const std::uint32_t file = file_of_rank[rank];
    if (file >= layout.file_bytes.size()) layout.file_bytes.resize(file + std::size_t{1});
    std::uint64_t& end = layout.file_bytes[file];
    layout.places.push_back({file, end});
    if (image_bytes[rank] > kLargestFile || end > kLargestFile - image_bytes[rank]) {
      return fail(
          Code::argument,
          fmt::format("shared file {} would be larger than a file can be at the image of rank {}; "
                      "use more files (global.files)",
                      file, rank));
    }
    end += round_up(image_bytes[rank], kPageBytes);
  }
  return layout;
}

}  // namespace diapause::redundancy
