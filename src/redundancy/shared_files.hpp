// The places of images in the files that ranks share in the global tier. They are a pure function
// of the sizes of the images, so that every rank can write its part without asking.
//
//   a0.img   [rank 0, whole pages][rank 1][rank 2]
//   a1.img   [rank 3][rank 4]
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace diapause::redundancy {

struct SharedLayout {
  struct Place {
    std::uint32_t file = 0;
    std::uint64_t offset = 0;  // a multiple of a page
  };
  std::vector<Place> places;              // by rank
  std::vector<std::uint64_t> file_bytes;  // by file, in whole pages
};

// Entry r of the result is the file of rank r. Files hold consecutive ranks, as evenly as possible.
// There is at least one file, and at most one per rank.
std::vector<std::uint32_t> spread_over_files(std::uint32_t ranks, std::uint32_t files);

// `file_of_rank` numbers the files from 0. In a file, images lie in the order of their ranks. The
// result is Code::argument if a file would exceed the largest possible size.
Result<SharedLayout> lay_out_files(std::span<const std::uint64_t> image_bytes,
                                   std::span<const std::uint32_t> file_of_rank);

}  // namespace diapause::redundancy
