// Runs of bytes, made smaller by LZ4 or zstd where a sample says that it pays, and kept as they are where not. The
// innermost layer of our own payloads: 4 bytes (little-endian; low 28 bits: bytes that follow; above: Packing), then
// these bytes. The length of what comes out is known to the reader.
#pragma once

#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace diapause::codec {

enum class Packing : std::uint32_t { kept = 0, constant = 1, lz4 = 2, zstd = 3 };

// A payload that grows in memory of a fixed size. What does not fit makes ok() false for good.
class Output {
 public:
  explicit Output(MutableBytes space) : space_(space) {}

  bool ok() const { return ok_; }
  std::size_t size() const { return used_; }
  MutableBytes rest() const { return space_.subspan(used_); }
  void advance(std::size_t bytes) { used_ += bytes; }  // what was written to rest()
  void append(ByteView data);
  void u32(std::uint32_t value);
  void u64(std::uint64_t value);

 private:
  MutableBytes space_;
  std::size_t used_ = 0;
  bool ok_ = true;
};

class Packer {
 public:
  Packer();
  Packer(Packer&&) noexcept;
  ~Packer();

  // `level` of zstd; kLz4 for LZ4. `in` has less than 2^28 bytes.
  static constexpr int kLz4 = 1000;
  void pack(ByteView in, int level, Output& out);

 private:
  bool pays(ByteView in, int level);
  std::size_t compress(ByteView in, int level, MutableBytes out);

  std::vector<std::uint64_t> lz4_state_;
  std::unique_ptr<ZSTD_CCtx_s, std::size_t (*)(ZSTD_CCtx_s*)> zstd_;
};

class Unpacker {
 public:
  Unpacker();
  Unpacker(Unpacker&&) noexcept;
  ~Unpacker();

  // Takes one packed run from the front of `in` and fills `out` with it. Code::corrupt if that cannot be.
  Status unpack(ByteView& in, MutableBytes out);

 private:
  std::unique_ptr<ZSTD_DCtx_s, std::size_t (*)(ZSTD_DCtx_s*)> zstd_;
};

}  // namespace diapause::codec
