#include "cli/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace diapause::cli {
namespace {

using format::BlockDim;
using format::ElementType;
using format::Region;

const char* type_code(ElementType type) {
  constexpr const char* kCodes[] = {"|u1", "|i1", "|u1", "<i2", "<u2", "<i4",
                                    "<u4", "<i8", "<u8", "<f4", "<f8"};
  static_assert(std::size(kCodes) == format::kElementTypes);
  return kCodes[static_cast<std::size_t>(type)];
}

// Returns nullopt if the product does not fit into 64 bits.
std::optional<std::uint64_t> product(const std::vector<BlockDim>& dims,
                                     std::uint64_t BlockDim::*of) {
  std::uint64_t all = 1;
  for (const BlockDim& dim : dims) {
    if (__builtin_mul_overflow(all, dim.*of, &all)) return std::nullopt;
  }
  return all;
}

bool lies_inside(const Region& piece) {
  for (const BlockDim& dim : piece.place) {
    if (dim.start > dim.global_shape || dim.shape > dim.global_shape - dim.start) return false;
  }
  return product(piece.place, &BlockDim::shape) == piece.count;
}

bool overlap(const Region& one, const Region& other) {
  for (std::size_t i = 0; i < one.place.size(); ++i) {
    const BlockDim& a = one.place[i];
    const BlockDim& b = other.place[i];
    if (a.start + a.shape <= b.start || b.start + b.shape <= a.start) return false;
  }
  return true;
}

bool is_of_the_same_array(const Region& one, const Region& other) {
  const auto same_extent = [](const BlockDim& a, const BlockDim& b) {
    return a.global_shape == b.global_shape;
  };
  return one.type == other.type && one.element_bytes == other.element_bytes &&
         one.place.size() == other.place.size() &&
         std::equal(one.place.begin(), one.place.end(), other.place.begin(), same_extent);
}

}  // namespace

std::string npy_head(const ArrayShape& shape) {
  std::vector<std::uint64_t> dims = shape.dims;
  if (shape.type == ElementType::bytes && shape.element_bytes != 1)
    dims.push_back(shape.element_bytes);
  const std::string comma = dims.size() == 1 ? "," : "";
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 type_code(shape.type), fmt::join(dims, ", "), comma);
  // Magic, version and length; alignment of the format.
  constexpr std::size_t kBefore = 10, kUnit = 64;
  text.append(kUnit - (kBefore + text.size() + 1) % kUnit, ' ');
  text += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(text.size() % 256);
  head += static_cast<char>(text.size() / 256);
  return head + text;
}

Result<ArrayShape> whole_of(const std::vector<const Region*>& pieces) {
  if (pieces.empty() || pieces.front()->place.empty())
    return fail(Code::argument, "no place in an array is recorded");
  const Region& first = *pieces.front();
  std::uint64_t elements = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Region& piece = *pieces[i];
    if (!is_of_the_same_array(first, piece) || !lies_inside(piece)) {
      return fail(Code::argument, "the ranks' pieces are not of one array");
    }
    elements += piece.count;
    for (std::size_t j = 0; j < i && piece.count > 0; ++j) {
      if (pieces[j]->count > 0 && overlap(piece, *pieces[j]))
        return fail(Code::argument, "pieces of ranks overlap");
    }
  }
  if (product(first.place, &BlockDim::global_shape) != elements) {
    return fail(Code::argument, "the ranks' pieces leave parts of the array out");
  }
  ArrayShape shape{first.type, first.element_bytes, {}};
  for (const BlockDim& dim : first.place) shape.dims.push_back(dim.global_shape);
  return shape;
}

Status for_each_run(const Region& piece, const TakeRun& take) {
  if (piece.count == 0) return {};
  const std::vector<BlockDim>& dims = piece.place;
  // Inner dimensions that the piece covers completely form one run with the dimension around them.
  std::size_t inner = dims.size() - 1;
  std::uint64_t run = dims[inner].shape;
  while (inner > 0 && dims[inner].shape == dims[inner].global_shape) run *= dims[--inner].shape;
  std::vector<std::uint64_t> at(inner, 0);  // indices of the dimensions around a run
  for (std::uint64_t done = 0; done < piece.count; done += run) {
    std::uint64_t element = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      element = element * dims[i].global_shape + dims[i].start + (i < inner ? at[i] : 0);
    }
    DIAPAUSE_TRY(
        take(element * piece.element_bytes, done * piece.element_bytes, run * piece.element_bytes));
    for (std::size_t i = inner; i-- > 0 && ++at[i] == dims[i].shape;) at[i] = 0;
  }
  return {};
}

}  // namespace diapause::cli
