// Which images lie in which file that ranks share in the global tier, and where: a pure function of their sizes, so
// that every rank can write its part without asking.
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
    std::uint64_t offset = 0;  // of a page
  };
  std::vector<Place> places;              // by rank
  std::vector<std::uint64_t> file_bytes;  // by file; whole pages
};

// Entry r is the file of rank r: runs of consecutive ranks, as even as they can be. At most a file per rank; at least
// one.
std::vector<std::uint32_t> spread_over_files(std::uint32_t ranks, std::uint32_t files);

// `file_of_rank` numbers the files from 0 up; in a file, images lie in the order of their ranks. Code::argument if a
// file would become larger than a file can be.
Result<SharedLayout> lay_out_files(std::span<const std::uint64_t> image_bytes,
                                   std::span<const std::uint32_t> file_of_rank);

}  // namespace diapause::redundancy
