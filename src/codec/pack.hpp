// Runs of bytes, made smaller where that pays and kept as they are where not. The innermost layer of our own payloads:
// 4 bytes (little-endian; low 28 bits: bytes that follow; above: Packing), then these bytes. The length of what comes
// out is known to the reader.
//
// A sparse run (sparse.hpp): 4 bytes, number of gaps; 4 bytes, number of values; a packed run of each, not sparse
// again.
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

enum class Packing : std::uint32_t { kept = 0, constant = 1, lz4 = 2, zstd = 3, rans = 4, sparse = 5 };

// A payload that grows in memory of a fixed size. What does not fit makes ok() false for good.
class Output {
 public:
  explicit Output(MutableBytes space) : space_(space) {}

  bool ok() const { return ok_; }
  std::size_t size() const { return used_; }
  MutableBytes rest() const { return space_.subspan(used_); }
  void advance(std::size_t bytes) { used_ += bytes; }  // what was written to rest()
  MutableBytes claim(std::size_t bytes);               // for the caller to write; empty if there is no room
  void append(ByteView data);
  void u32(std::uint32_t value);
  void u64(std::uint64_t value);

 private:
  MutableBytes space_;
  std::size_t used_ = 0;
  bool ok_ = true;
};

// Whether a long run is worth packing is asked of pieces spread over it.
inline constexpr std::size_t kSamplePieces = 4;
inline constexpr std::size_t kPieceBytes = 2048;
inline constexpr std::size_t kSampleBytes = kSamplePieces * kPieceBytes;
constexpr std::size_t place_of_piece(std::size_t piece, std::size_t run_bytes) {
  return (run_bytes - kPieceBytes) / (kSamplePieces - 1) * piece;
}
constexpr bool is_long(std::size_t run_bytes) { return run_bytes > 2 * kSampleBytes; }  // else its front is the sample

// Puts a run of `size` bytes into `out` that is kept as it is. The caller writes it, to what is returned; nothing if
// there is no room.
MutableBytes keep_later(std::size_t size, Output& out);

class Packer {
 public:
  Packer();
  Packer(Packer&&) noexcept;
  ~Packer();

  // With LZ4 or with zstd at `level`, if a sample says that it pays. `in` has less than 2^28 bytes.
  void pack_lz4(ByteView in, Output& out);
  void pack_zstd(ByteView in, int level, Output& out);
  // Whether pack_lz4 would try to pack a long run that has this sample.
  bool gains_with_lz4(ByteView sample) { return part_with_lz4(sample).has_value(); }
  // For bytes without much of a pattern, and less than 2^20 of them: as the frequencies of the byte values allow, or
  // with zstd where a sample says that there is a pattern; those that are nearly all zero by their places.
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

  // Takes one packed run from the front of `in` and fills `out` with it. Code::corrupt if that cannot be.
  Status unpack(ByteView& in, MutableBytes out);

 private:
  bool unpack_sparse(ByteView packed, MutableBytes out);

  std::unique_ptr<ZSTD_DCtx_s, std::size_t (*)(ZSTD_DCtx_s*)> zstd_;
  Sparse sparse_;
};

}  // namespace diapause::codec
