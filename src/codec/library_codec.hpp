// These are lossy codecs from other projects. They see values without outliers (outliers.hpp) in
// aligned memory. Only a return value comes back from them: exceptions, output and writes beyond
// the given memory are contained.
//
// The payload consists of the outliers and then the stream of the library.
#pragma once

#include "codec/codec.hpp"
#include "codec/outliers.hpp"

namespace diapause::codec {

class LibraryCodec : public Codec {
 public:
  Result<std::size_t> encode(ByteView raw, const Shape& shape, const Method& method,
                             MutableBytes out) final;
  Status decode(ByteView payload, const Shape& shape, double bound, MutableBytes out) final;

 protected:
  // `values` is aligned for its type and may be changed. Otherwise the contracts are those of
  // Codec::encode() and Codec::decode().
  virtual std::size_t encode_values(MutableBytes values, const Shape& shape, double bound,
                                    MutableBytes out) = 0;
  virtual bool decode_values(ByteView stream, const Shape& shape, double bound,
                             MutableBytes values) = 0;

 private:
  template <class Float>
  Result<std::size_t> encode_floats(ByteView raw, const Shape& shape, double bound,
                                    MutableBytes out);
  template <class Float>
  Status decode_floats(ByteView payload, const Shape& shape, double bound, MutableBytes out);

  Packer packer_;
  Unpacker unpacker_;
  ByteVector values_;  // operator new aligns it for every type
};

// Returns the number of a shape's dimensions that a library needs to know: at least one, without
// the ones in front.
std::size_t rank_of(const Shape& shape);

std::unique_ptr<Codec> make_zfp_codec();
std::unique_ptr<Codec> make_sz3_codec();

}  // namespace diapause::codec
