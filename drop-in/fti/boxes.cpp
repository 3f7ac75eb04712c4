#include "boxes.hpp"

#include <algorithm>
#include <cstring>

namespace diapause::drop_in {
namespace {

// Returns the number of the element `at` in the memory of a box.
std::uint64_t element_in(const Box& box, const std::vector<std::uint64_t>& at) {
  std::uint64_t element = 0;
  for (std::size_t i = 0; i < at.size(); ++i)
    element = element * box.shape[i] + (at[i] - box.start[i]);
  return element;
}

}  // namespace

std::uint64_t Box::elements() const {
  std::uint64_t product = 1;
  for (const std::uint64_t length : shape) product *= length;
  return product;
}

std::optional<Box> common_part(const Box& one, const Box& other) {
  Box part;
  for (std::size_t i = 0; i < one.start.size(); ++i) {
    const std::uint64_t begin = std::max(one.start[i], other.start[i]);
    const std::uint64_t end =
        std::min(one.start[i] + one.shape[i], other.start[i] + other.shape[i]);
    if (begin >= end) return std::nullopt;
    part.start.push_back(begin);
    part.shape.push_back(end - begin);
  }
  return part;
}

// Cuts off what lies below and above in one dimension after the other.
std::vector<Box> without(const Box& whole, const Box& part) {
  const auto hole = common_part(whole, part);
  if (!hole) return {whole};
  std::vector<Box> left;
  Box rest = whole;
  for (std::size_t i = 0; i < whole.start.size(); ++i) {
    const std::uint64_t below = hole->start[i] - rest.start[i];
    const std::uint64_t above = rest.shape[i] - below - hole->shape[i];
    if (below > 0) {
      left.push_back(rest);
      left.back().shape[i] = below;
    }
    if (above > 0) {
      left.push_back(rest);
      left.back().start[i] = hole->start[i] + hole->shape[i];
      left.back().shape[i] = above;
    }
    rest.start[i] = hole->start[i];
    rest.shape[i] = hole->shape[i];
  }
  return left;
}

std::optional<Box> filled_by(const std::vector<Box>& parts) {
  if (parts.empty()) return std::nullopt;
  Box around = parts.front();
  for (const Box& part : parts) {
    for (std::size_t i = 0; i < part.start.size(); ++i) {
      const std::uint64_t end =
          std::max(around.start[i] + around.shape[i], part.start[i] + part.shape[i]);
      around.start[i] = std::min(around.start[i], part.start[i]);
      around.shape[i] = end - around.start[i];
    }
  }
  std::uint64_t elements = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    elements += parts[i].elements();
    for (std::size_t j = 0; j < i; ++j) {
      if (common_part(parts[i], parts[j])) return std::nullopt;
    }
  }
  if (elements != around.elements()) return std::nullopt;
  return around;
}

void copy_part(const Box& part, const BoxMemory& from, const BoxMemory& to,
               std::uint64_t element_bytes) {
  if (part.elements() == 0) return;
  const std::size_t last = part.start.size() - 1;
  const std::uint64_t run_bytes = part.shape[last] * element_bytes;
  std::vector<std::uint64_t> at = part.start;
  for (;;) {
    std::memcpy(to.data + element_in(to.box, at) * element_bytes,
                from.data + element_in(from.box, at) * element_bytes, run_bytes);
    std::size_t i = last;
    while (i > 0 && ++at[i - 1] == part.start[i - 1] + part.shape[i - 1]) {
      at[i - 1] = part.start[i - 1];
      --i;
    }
    if (i == 0) return;
  }
}

}  // namespace diapause::drop_in
