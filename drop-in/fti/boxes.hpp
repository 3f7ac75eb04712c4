// Boxes of an array: where they meet, and what is left of one without another. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace diapause::drop_in {

// The elements `[start, start + shape)` of an array, for the slowest dimension first.
struct Box {
  std::vector<std::uint64_t> start;
  std::vector<std::uint64_t> shape;

  std::uint64_t elements() const;
};

// Both boxes have as many dimensions. Returns nothing if they have no element in common.
std::optional<Box> common_part(const Box& one, const Box& other);
// Returns boxes that do not overlap and that hold every element of `whole` outside of `part`.
std::vector<Box> without(const Box& whole, const Box& part);
// Returns the box that these boxes fill exactly, each element once; nothing if there is none.
std::optional<Box> filled_by(const std::vector<Box>& parts);

// Copies the elements of `part`, which lies in both boxes. Each box lies in its own memory, whole
// and in order.
struct BoxMemory {
  const Box& box;
  std::byte* data;
};
void copy_part(const Box& part, const BoxMemory& from, const BoxMemory& to,
               std::uint64_t element_bytes);

}  // namespace diapause::drop_in
