// Decides where the files of a version belong, by its manifest and today's nodes. The code is pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/manifest.hpp"
#include "redundancy/recovery.hpp"

namespace diapause::redundancy {

// Returns, for each node, the files of levels 1 to 3 that a whole version has there.
std::vector<Holdings> places(const format::Manifest& manifest,
                             std::span<const std::uint32_t> node_of_rank, std::size_t node_count);

// Returns whether a checkpoint of that level, taken now, would have its copies and parities in the
// same places.
bool is_laid_out_alike(const format::Manifest& manifest,
                       std::span<const std::uint32_t> node_of_rank, std::uint32_t group_nodes,
                       std::uint32_t parity);

// Bytes of the files of levels 1 to 3 that a version has on a node.
struct NodeBytes {
  std::uint64_t images = 0;  // of the node's own ranks
  std::uint64_t copies = 0;  // of images of another node
  std::uint64_t parity = 0;
};
NodeBytes bytes_on(const format::Manifest& manifest, std::uint32_t node);

bool is_part_of(const Holdings& some, const Holdings& all);

}  // namespace diapause::redundancy
