// The project's own error-bounded codec, a uniform quantiser: every value is rounded to the nearest
// multiple of twice the bound, and the integer factor is stored as the difference from a
// prediction. A value that does not come back within the bound is kept as it is. Decoding has a
// single rounding: integer times step, to nearest.
//
// Payload: 4 bytes (bits 0 to 3: dimensions along which differences are taken; bit 4: slices are
// interpolated; bit 5: the numbers have 8 bytes, else 4; the other bits are 0), the outliers
// (outliers.hpp), then, for each 32768 numbers (the last group may have fewer), one packed run
// (pack.hpp) for each of their bytes, the lowest first.
#pragma once

#include <tuple>

#include "codec/codec.hpp"
#include "codec/outliers.hpp"
#include "codec/transform.hpp"

namespace diapause::codec {

class UniformQuantiser final : public Codec {
 public:
  CodecId id() const override { return CodecId::lattice; }
  std::uint32_t version() const override { return 1; }
  // Returns Code::argument if too many values are infinite, NaN, or so large that the bound is
  // below four units in their last place.
  Result<std::size_t> encode(ByteView raw, const Shape& shape, const Method& method,
                             MutableBytes out) override;
  Status decode(ByteView payload, const Shape& shape, double bound, MutableBytes out) override;

 private:
  struct Block {
    Dims dims;
    std::uint64_t count;
    double bound;
  };

  template <class Float>
  Result<std::size_t> encode_floats(ByteView raw, const Block& block, MutableBytes out);
  template <class Float, class Word>
  bool find_numbers(ByteView values, const Block& block);
  template <class Float, class Word>
  std::size_t encode_numbers(ByteView raw, const Block& block, MutableBytes out);
  template <class Float, class Word>
  Status decode_numbers(ByteView payload, const Block& block, const Prediction& prediction,
                        MutableBytes out);

  Packer packer_;
  Unpacker unpacker_;
  std::tuple<Outliers<float>, Outliers<double>> outliers_;
  std::tuple<Transform<std::uint32_t>, Transform<std::uint64_t>> transforms_;
  std::tuple<std::vector<std::uint32_t>, std::vector<std::uint64_t>> words_;
  ByteVector filled_, planes_;
};

}  // namespace diapause::codec
