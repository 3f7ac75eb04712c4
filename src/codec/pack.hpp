// Runs of bytes are packed where that pays, and stored as they are elsewhere. They are the
// innermost layer of our own payloads. A run consists of 4 bytes (little-endian; the low 28 bits
// are the number of bytes that follow, the others are the Packing) and then these bytes. The reader
// knows the length of the unpacked run.
//
// A sparse run (sparse.hpp) consists of 4 bytes, the number of gaps; 4 bytes, the number of values;
// and a packed run of each, which must not be sparse itself.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "codec/sparse.hpp"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace diapause::codec {

enum class Packing : std::uint32_t {
  kept = 0,
  constant = 1,
  lz4 = 2,
  zstd = 3,
  rans = 4,
  sparse = 5
};

// A payload that grows in memory of a fixed size. If something does not fit, ok() becomes false for
// good.
class Output {
 public:
  explicit Output(MutableBytes space) : space_(space) {}

  bool ok() const { return ok_; }
  std::size_t size() const { return used_; }
  MutableBytes rest() const { return space_.subspan(used_); }
  void advance(std::size_t bytes) { used_ += bytes; }  // accounts for bytes written to rest()
  MutableBytes claim(std::size_t bytes);  // for the caller to write; empty if there is no room
  void append(ByteView data);
  void u32(std::uint32_t value);
  void u64(std::uint64_t value);

 private:
  MutableBytes space_;
  std::size_t used_ = 0;
  bool ok_ = true;
};

// Pieces spread over a long run decide whether it is worth packing.
inline constexpr std::size_t kSamplePieces = 4;
inline constexpr std::size_t kPieceBytes = 2048;
inline constexpr std::size_t kSampleBytes = kSamplePieces * kPieceBytes;
constexpr std::size_t place_of_piece(std::size_t piece, std::size_t run_bytes) {
  return (run_bytes - kPieceBytes) / (kSamplePieces - 1) * piece;
}
// Otherwise its front is the sample.
constexpr bool is_long(std::size_t run_bytes) { return run_bytes > 2 * kSampleBytes; }

// Adds a run of `size` bytes to `out` that is stored as it is. The caller writes the run to the
// returned memory, which is empty if there is no room.
MutableBytes keep_later(std::size_t size, Output& out);

class Packer {
 public:
  Packer();
  Packer(Packer&&) noexcept;
  ~Packer();

  // Pack with LZ4, or with zstd at `level`, if a sample suggests that it pays. `in` has less than
  // 2^28 bytes.
  void pack_lz4(ByteView in, Output& out);
  void pack_zstd(ByteView in, int level, Output& out);
  // Returns whether pack_lz4() would try to pack a long run with this sample.
  bool gains_with_lz4(ByteView sample) { return part_with_lz4(sample).has_value(); }
  // Packs less than 2^20 bytes without much of a pattern: by the frequencies of the byte values,
  // with zstd if a sample shows a pattern, or as a sparse run if nearly all bytes are zero.
  void pack_entropy(ByteView in, Output& out);

 private:
  static bool pack_simply(ByteView in, Output& out);
  bool pack_sparse(ByteView in, Output& out);
  void pack_dense(ByteView in, Output& out);
  std::optional<double> part_with_lz4(ByteView sample);
  std::optional<double> size_with_lz4(ByteView in);
  std::size_t compress_lz4(ByteView in, int acceleration, MutableBytes out);
  std::size_t compress_zstd(ByteView in, int level, MutableBytes out);

  std::vector<std::uint64_t> lz4_state_;
  ByteVector scratch_;
  Sparse sparse_;
  std::unique_ptr<ZSTD_CCtx_s, std::size_t (*)(ZSTD_CCtx_s*)> zstd_;
};

class Unpacker {
 public:
  Unpacker();
  Unpacker(Unpacker&&) noexcept;
  ~Unpacker();

  // Reads one packed run from the front of `in` and fills `out` with it. Returns Code::corrupt if
  // that is impossible.
  Status unpack(ByteView& in, MutableBytes out);

 private:
  bool unpack_sparse(ByteView packed, MutableBytes out);

  std::unique_ptr<ZSTD_DCtx_s, std::size_t (*)(ZSTD_DCtx_s*)> zstd_;
  Sparse sparse_;
};

}  // namespace diapause::codec
