// Calls SZ3 with its default choice of predictors, in one thread. Its headers are included only
// here, because compiling them takes most of a minute.
#include <SZ3/api/sz.hpp>
#include <cstring>
#include <exception>

#include "codec/library_codec.hpp"

namespace diapause::codec {
namespace {

// SZ3 reads only streams of its own data version, and reports others on standard output. Our header
// stops these before.
constexpr std::uint32_t kVersion = SZ3_VER_MAJOR << 16 | SZ3_VER_MINOR << 8 | SZ3_VER_PATCH;

// Magic number, data version, number of bytes that follow (8).
constexpr std::size_t kFrontBytes = 16;

class Sz3Codec final : public LibraryCodec {
 public:
  CodecId id() const override { return CodecId::sz3; }
  std::uint32_t version() const override { return kVersion; }

 private:
  std::size_t encode_values(MutableBytes values, const Shape& shape, double bound,
                            MutableBytes out) override {
    try {
      return shape.type == format::ElementType::float32
                 ? encode_as<float>(values, shape, bound, out)
                 : encode_as<double>(values, shape, bound, out);
    } catch (const std::exception&) {
      return 0;
    }
  }

  bool decode_values(ByteView stream, const Shape& shape, double /*bound*/,
                     MutableBytes values) override {
    try {
      return shape.type == format::ElementType::float32 ? decode_as<float>(stream, shape, values)
                                                        : decode_as<double>(stream, shape, values);
    } catch (const std::exception&) {
      return false;
    }
  }

  static SZ3::Config config_of(const Shape& shape) {
    SZ3::Config config;
    config.setDims(shape.dims.end() - static_cast<std::ptrdiff_t>(rank_of(shape)),
                   shape.dims.end());
    config.openmp = false;
    return config;
  }

  template <class Float>
  std::size_t encode_as(MutableBytes values, const Shape& shape, double bound, MutableBytes out) {
    SZ3::Config config = config_of(shape);
    config.cmprAlgo = SZ3::ALGO_INTERP_LORENZO;
    config.errorBoundMode = SZ3::EB_ABS;
    config.absErrorBound = bound;
    room_.resize(SZ3::SZ_compress_size_bound<Float>(config));
    const std::size_t written = SZ_compress(config, reinterpret_cast<const Float*>(values.data()),
                                            reinterpret_cast<char*>(room_.data()), room_.size());
    if (written > out.size()) return 0;
    std::memcpy(out.data(), room_.data(), written);
    return written;
  }

  template <class Float>
  bool decode_as(ByteView stream, const Shape& shape, MutableBytes values) {
    // The size and dimensions in the stream must equal those that we know, because SZ3 would trust
    // them.
    std::uint64_t body = 0;
    if (stream.size() <= kFrontBytes) return false;
    std::memcpy(&body, stream.data() + kFrontBytes - sizeof body, sizeof body);
    if (body >= stream.size() - kFrontBytes) return false;
    const SZ3::Config expected = config_of(shape);
    SZ3::Config found;
    const auto* at = reinterpret_cast<const unsigned char*>(stream.data()) + kFrontBytes + body;
    found.load(at);
    if (found.dims != expected.dims || found.num != expected.num) return false;
    auto* out = reinterpret_cast<Float*>(values.data());
    SZ3::Config config;
    SZ_decompress(config, reinterpret_cast<const char*>(stream.data()), stream.size(), out);
    return true;
  }

  ByteVector room_;
};

}  // namespace

std::unique_ptr<Codec> make_sz3_codec() { return std::make_unique<Sz3Codec>(); }

}  // namespace diapause::codec
