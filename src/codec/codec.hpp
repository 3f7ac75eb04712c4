// What every codec is to its callers: the payload of one block, and back.
#pragma once

#include <memory>

#include "codec/block.hpp"

namespace diapause::codec {

// How a region is to be encoded.
struct Method {
  CodecId codec = CodecId::shuffle_lz4;
  double bound = 0;  // lossy codecs: the greatest absolute error of a value
  int level = 1;     // shuffle_zstd: as zstd understands it, from -50 (fast) to 19
  bool operator==(const Method&) const = default;
};

// Keeps its working memory from block to block (a small multiple of kMaxBlockBytes at most), so each thread has its
// own. No method throws; a codec that runs out of memory says Code::memory.
class Codec {
 public:
  virtual ~Codec() = default;

  virtual CodecId id() const = 0;
  // Of the payload. A payload of another version is refused before decode() sees it.
  virtual std::uint32_t version() const = 0;

  // Bytes of payload written to `out`; 0 if there would be more than `out` has. `raw` has shape.bytes() > 0 bytes, at
  // any alignment.
  virtual Result<std::size_t> encode(ByteView raw, const Shape& shape, const Method& method, MutableBytes out) = 0;

  // Fills `out`, which has shape.bytes() bytes, or says Code::corrupt. Whatever the payload is, nothing else is
  // written, and memory is allocated as for a sound payload.
  // Exception: SZ3 trusts its payload; only one whose checksum was compared may reach it.
  virtual Status decode(ByteView payload, const Shape& shape, double bound, MutableBytes out) = 0;
};

// Code::config if this build does not have it (SZ3 and ZFP are optional), Code::mismatch for an unknown number.
Result<std::unique_ptr<Codec>> make_codec(CodecId id);

}  // namespace diapause::codec
