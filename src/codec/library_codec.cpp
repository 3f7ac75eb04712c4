#include "codec/library_codec.hpp"

#include <algorithm>
#include <cstring>

namespace diapause::codec {

template <class Float>
Result<std::size_t> LibraryCodec::encode_floats(ByteView raw, const Shape& shape, double bound,
                                                MutableBytes out) {
  Outliers<Float> outliers;
  values_.resize(raw.size());
  if (!outliers.find(raw, limit_of_bound<Float>(bound), values_)) {
    return fail(Code::argument, "the bound is too small for the values of the block");
  }
  Output output(out);
  outliers.write(raw, packer_, output);
  if (!output.ok()) return 0;
  const std::size_t written = encode_values(values_, shape, bound, output.rest());
  return written == 0 ? 0 : output.size() + written;
}

template <class Float>
Status LibraryCodec::decode_floats(ByteView payload, const Shape& shape, double bound,
                                   MutableBytes out) {
  Outliers<Float> outliers;
  DIAPAUSE_TRY(outliers.read(payload, shape.count(), unpacker_));
  values_.resize(out.size());
  if (!decode_values(payload, shape, bound, values_)) {
    return fail(Code::corrupt,
                std::string("compressed block: not a stream of ") + codec_name(id()));
  }
  std::memcpy(out.data(), values_.data(), out.size());
  outliers.restore(out);
  return {};
}

Result<std::size_t> LibraryCodec::encode(ByteView raw, const Shape& shape, const Method& method,
                                         MutableBytes out) {
  return shape.type == format::ElementType::float32
             ? encode_floats<float>(raw, shape, method.bound, out)
             : encode_floats<double>(raw, shape, method.bound, out);
}

Status LibraryCodec::decode(ByteView payload, const Shape& shape, double bound, MutableBytes out) {
  return shape.type == format::ElementType::float32
             ? decode_floats<float>(payload, shape, bound, out)
             : decode_floats<double>(payload, shape, bound, out);
}

std::size_t rank_of(const Shape& shape) {
  const auto first = std::ranges::find_if(shape.dims, [](std::uint64_t dim) { return dim > 1; });
  return std::max<std::size_t>(1, static_cast<std::size_t>(shape.dims.end() - first));
}

}  // namespace diapause::codec
