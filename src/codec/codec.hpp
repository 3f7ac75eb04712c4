// The interface of a codec: it encodes the payload of one block and decodes it.
#pragma once

#include <memory>

#include "codec/block.hpp"

namespace diapause::codec {

// The method by which a region is to be encoded.
struct Method {
  CodecId codec = CodecId::shuffle_lz4;
  double bound = 0;  // greatest absolute error of a value, for lossy codecs
  int level = 1;     // zstd's level for shuffle_zstd, from -50 (fast) to 19
  bool operator==(const Method&) const = default;
};

// A codec keeps its working memory from block to block (at most a small multiple of
// kMaxBlockBytes), so each thread needs its own. No method throws; a codec that runs out of memory
// returns Code::memory.
class Codec {
 public:
  virtual ~Codec() = default;

  virtual CodecId id() const = 0;
  // Returns the version of the payload. A payload of another version is refused before decode() is
  // called.
  virtual std::uint32_t version() const = 0;

  // Writes the payload to `out` and returns its size, or 0 if `out` is too small. `raw` has
  // shape.bytes() > 0 bytes at any alignment.
  virtual Result<std::size_t> encode(ByteView raw, const Shape& shape, const Method& method,
                                     MutableBytes out) = 0;

  // Fills `out`, which has shape.bytes() bytes, or returns Code::corrupt. Whatever the payload is,
  // nothing else is written, and no more memory is allocated than for a sound payload. SZ3 is an
  // exception: it trusts its payload, so only a payload with a verified checksum may reach it.
  virtual Status decode(ByteView payload, const Shape& shape, double bound, MutableBytes out) = 0;
};

// Returns Code::config if this build does not have the codec (SZ3 and ZFP are optional), and
// Code::mismatch for an unknown number.
Result<std::unique_ptr<Codec>> make_codec(CodecId id);

}  // namespace diapause::codec
