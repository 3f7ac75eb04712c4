// Calls ZFP in its mode of fixed accuracy, from Debian's library. Its stream does not describe
// itself; everything is in our header.
#include <zfp.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "codec/library_codec.hpp"

namespace diapause::codec {
namespace {

template <auto kClose>
struct Close {
  template <class T>
  void operator()(T* handle) const {
    kClose(handle);
  }
};
using Field = std::unique_ptr<zfp_field, Close<zfp_field_free>>;
using Stream = std::unique_ptr<zfp_stream, Close<zfp_stream_close>>;
using Bits = std::unique_ptr<bitstream, Close<stream_close>>;

Field field_of(MutableBytes values, const Shape& shape) {
  const zfp_type type =
      shape.type == format::ElementType::float32 ? zfp_type_float : zfp_type_double;
  const Dims& d = shape.dims;
  switch (rank_of(shape)) {
    case 1:
      return Field(zfp_field_1d(values.data(), type, d[3]));
    case 2:
      return Field(zfp_field_2d(values.data(), type, d[3], d[2]));
    case 3:
      return Field(zfp_field_3d(values.data(), type, d[3], d[2], d[1]));
    default:
      return Field(zfp_field_4d(values.data(), type, d[3], d[2], d[1], d[0]));
  }
}

class ZfpCodec final : public LibraryCodec {
 public:
  CodecId id() const override { return CodecId::zfp; }
  std::uint32_t version() const override { return zfp_codec_version; }

 private:
  std::size_t encode_values(MutableBytes values, const Shape& shape, double bound,
                            MutableBytes out) override {
    const Field field = field_of(values, shape);
    const Stream stream = open(field, bound);
    if (!stream) return 0;
    const Bits bits(stream_open(room_.data(), room_.size()));
    if (!bits) return 0;
    zfp_stream_set_bit_stream(stream.get(), bits.get());
    zfp_stream_rewind(stream.get());
    const std::size_t written = zfp_compress(stream.get(), field.get());
    if (written > out.size()) return 0;
    std::memcpy(out.data(), room_.data(), written);
    return written;
  }

  bool decode_values(ByteView coded, const Shape& shape, double bound,
                     MutableBytes values) override {
    const Field field = field_of(values, shape);
    const Stream stream = open(field, bound);
    if (!stream || coded.size() > room_.size()) return false;
    // The decoder does not know where the stream ends. It finds as many zeros there as it can want
    // for these values.
    std::fill(std::copy(coded.begin(), coded.end(), room_.begin()), room_.end(), std::byte{0});
    const Bits bits(stream_open(room_.data(), room_.size()));
    if (!bits) return false;
    zfp_stream_set_bit_stream(stream.get(), bits.get());
    zfp_stream_rewind(stream.get());
    return zfp_decompress(stream.get(), field.get()) != 0;
  }

  // Opens a stream with room_ as large as any stream of these values, and as any decoder can read.
  Stream open(const Field& field, double bound) {
    Stream stream(zfp_stream_open(nullptr));
    if (!field || !stream) return nullptr;
    zfp_stream_set_accuracy(stream.get(), bound);
    zfp_stream_set_execution(stream.get(), zfp_exec_serial);
    room_.resize(2 * zfp_stream_maximum_size(stream.get(), field.get()));
    return stream;
  }

  ByteVector room_;
};

}  // namespace

std::unique_ptr<Codec> make_zfp_codec() { return std::make_unique<ZfpCodec>(); }

}  // namespace diapause::codec
