// Lossy codecs of other people. They see values without outliers (outliers.hpp), in memory of their own type, and
// nothing but a return value comes back: no exception, no text, no more bytes than there is room for.
//
// Payload: the outliers, then the stream of the library.
#pragma once

#include "codec/codec.hpp"
#include "codec/outliers.hpp"

namespace diapause::codec {

class LibraryCodec : public Codec {
 public:
  Result<std::size_t> encode(ByteView raw, const Shape& shape, const Method& method, MutableBytes out) final;
  Status decode(ByteView payload, const Shape& shape, double bound, MutableBytes out) final;

 protected:
  // `values` is aligned for its type and may be changed. As Codec::encode and Codec::decode otherwise.
  virtual std::size_t encode_values(MutableBytes values, const Shape& shape, double bound, MutableBytes out) = 0;
  virtual bool decode_values(ByteView stream, const Shape& shape, double bound, MutableBytes values) = 0;

 private:
  template <class Float>
  Result<std::size_t> encode_floats(ByteView raw, const Shape& shape, double bound, MutableBytes out);
  template <class Float>
  Status decode_floats(ByteView payload, const Shape& shape, double bound, MutableBytes out);

  Packer packer_;
  Unpacker unpacker_;
  ByteVector values_;  // of operator new: aligned for every type
};

// How many of a shape's dimensions a library has to be told of: without the ones in front, at least one.
std::size_t rank_of(const Shape& shape);

std::unique_ptr<Codec> make_zfp_codec();
std::unique_ptr<Codec> make_sz3_codec();

}  // namespace diapause::codec
