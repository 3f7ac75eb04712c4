#include "codec/pack.hpp"

#include <fmt/core.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "codec/rans.hpp"
#include "format/wire.hpp"

namespace diapause::codec {
namespace {

constexpr std::uint32_t kSizeBits = 28;
constexpr std::uint32_t kSizeMask = (std::uint32_t{1} << kSizeBits) - 1;
constexpr std::size_t kWordBytes = 4;

// A smaller gain is not worth a decoder's time.
constexpr double kLeastGain = 0.1;
constexpr double kLeastEntropyGain = 0.05;
// A run is sparse if at most one byte in so many is not zero.
constexpr std::size_t kSparseness = 4;
constexpr std::size_t kLeastSparse = 256;
// Accelerations of LZ4. Four loses 1 % of the ratio, twelve loses 2 % and takes a third less time.
constexpr int kSampleAcceleration = 4;
constexpr int kAcceleration = 12;

const char* chars(ByteView bytes) { return reinterpret_cast<const char*>(bytes.data()); }
char* chars(MutableBytes bytes) { return reinterpret_cast<char*>(bytes.data()); }

bool is_constant(ByteView in) {
  return in.size() > 1 && std::memcmp(in.data(), in.data() + 1, in.size() - 1) == 0;
}

// Writes the front of a run.
void put_front(Packing packing, std::size_t size, Output& out) {
  out.u32(static_cast<std::uint32_t>(size) | static_cast<std::uint32_t>(packing) << kSizeBits);
}

Packing packing_of(ByteView run) {
  return static_cast<Packing>(format::Reader(run).u32() >> kSizeBits);
}

void keep(ByteView in, Output& out) {
  put_front(Packing::kept, in.size(), out);
  out.append(in);
}

// Packs with `compress`, which writes to the given memory and returns how many bytes, or 0. Returns
// whether the result fit and was smaller than the run.
template <class Compress>
bool pack_by(Packing packing, ByteView in, Output& out, Compress compress) {
  if (out.rest().size() <= kWordBytes) return false;
  const MutableBytes room = out.rest().subspan(kWordBytes);
  const std::size_t written = compress(room.first(std::min(room.size(), in.size() - 1)));
  if (written == 0) return false;
  put_front(packing, written, out);
  out.advance(written);
  return true;
}

}  // namespace

MutableBytes keep_later(std::size_t size, Output& out) {
  put_front(Packing::kept, size, out);
  return out.claim(size);
}

MutableBytes Output::claim(std::size_t bytes) {
  if (bytes > rest().size()) ok_ = false;
  if (!ok_) return {};
  used_ += bytes;
  return space_.subspan(used_ - bytes, bytes);
}

void Output::append(ByteView data) {
  const MutableBytes place = claim(data.size());
  if (!place.empty()) std::memcpy(place.data(), data.data(), data.size());
}

void Output::u32(std::uint32_t value) {
  format::Writer writer(4);
  writer.u32(value);
  append(writer.written());
}

void Output::u64(std::uint64_t value) {
  format::Writer writer(8);
  writer.u64(value);
  append(writer.written());
}

Packer::Packer()
    : lz4_state_(LZ4_sizeofState() / sizeof(std::uint64_t) + 1), zstd_(nullptr, ZSTD_freeCCtx) {}
Packer::Packer(Packer&&) noexcept = default;
Packer::~Packer() = default;

std::size_t Packer::compress_lz4(ByteView in, int acceleration, MutableBytes out) {
  const int written = LZ4_compress_fast_extState(lz4_state_.data(), chars(in), chars(out),
                                                 static_cast<int>(in.size()),
                                                 static_cast<int>(out.size()), acceleration);
  return static_cast<std::size_t>(std::max(0, written));
}

std::size_t Packer::compress_zstd(ByteView in, int level, MutableBytes out) {
  if (!zstd_) zstd_.reset(ZSTD_createCCtx());
  if (!zstd_) return 0;
  const std::size_t written =
      ZSTD_compressCCtx(zstd_.get(), out.data(), out.size(), in.data(), in.size(), level);
  return ZSTD_isError(written) ? 0 : written;
}

// Packs a run that needs no compressor. Returns whether it was one.
bool Packer::pack_simply(ByteView in, Output& out) {
  if (!out.ok()) return true;
  if (!is_constant(in)) {
    if (in.size() > 1) return false;
    keep(in, out);
    return true;
  }
  put_front(Packing::constant, 1, out);
  out.append(in.first(1));
  return true;
}

// Returns the fraction of a sample that LZ4 would leave; nullopt if LZ4 gains nothing. Most planes
// of floating-point data are noise, and finding that out in full costs more than everything else.
std::optional<double> Packer::part_with_lz4(ByteView sample) {
  std::array<std::byte, kSampleBytes> packed;
  const auto bytes = static_cast<double>(sample.size());
  const auto room = static_cast<std::size_t>(bytes * (1 - kLeastGain));
  const std::size_t size =
      compress_lz4(sample, kSampleAcceleration, MutableBytes(packed).first(room));
  if (size == 0) return {};
  return static_cast<double>(size) / bytes;
}

// Estimates the size of the run after LZ4 from a sample of it.
std::optional<double> Packer::size_with_lz4(ByteView in) {
  std::array<std::byte, kSampleBytes> pieces;
  ByteView sample = in.first(std::min(in.size(), kSampleBytes));
  if (is_long(in.size())) {
    for (std::size_t i = 0; i < kSamplePieces; ++i) {
      std::memcpy(pieces.data() + i * kPieceBytes, in.data() + place_of_piece(i, in.size()),
                  kPieceBytes);
    }
    sample = pieces;
  }
  const auto part = part_with_lz4(sample);
  if (!part) return {};
  return *part * static_cast<double>(in.size());
}

void Packer::pack_lz4(ByteView in, Output& out) {
  if (pack_simply(in, out)) return;
  const auto compress = [&](MutableBytes room) { return compress_lz4(in, kAcceleration, room); };
  if (size_with_lz4(in) && pack_by(Packing::lz4, in, out, compress)) return;
  keep(in, out);
}

void Packer::pack_zstd(ByteView in, int level, Output& out) {
  if (pack_simply(in, out)) return;
  const bool pays =
      entropy_bytes(histogram_of(in)) < (1 - kLeastGain) * static_cast<double>(in.size());
  const auto compress = [&](MutableBytes room) { return compress_zstd(in, level, room); };
  if ((pays || size_with_lz4(in)) && pack_by(Packing::zstd, in, out, compress)) return;
  keep(in, out);
}

// Packs a run in which few enough bytes are not zero; the result is then always smaller than the
// run.
bool Packer::pack_sparse(ByteView in, Output& out) {
  if (in.size() < kLeastSparse || count_nonzero(in) > in.size() / kSparseness) return false;
  to_sparse(in, sparse_);
  const MutableBytes front = out.claim(kWordBytes);
  const std::size_t before = out.size();
  out.u32(static_cast<std::uint32_t>(sparse_.gaps.size()));
  out.u32(static_cast<std::uint32_t>(sparse_.values.size()));
  pack_dense(sparse_.gaps, out);
  pack_dense(sparse_.values, out);
  if (!out.ok()) return true;
  Output place(front);
  put_front(Packing::sparse, out.size() - before, place);
  return true;
}

void Packer::pack_entropy(ByteView in, Output& out) {
  if (!pack_simply(in, out) && !pack_sparse(in, out)) pack_dense(in, out);
}

void Packer::pack_dense(ByteView in, Output& out) {
  if (pack_simply(in, out)) return;
  const Histogram histogram = histogram_of(in);
  const double entropy = entropy_bytes(histogram);
  const auto with_lz4 = size_with_lz4(in);
  if (with_lz4 && *with_lz4 < entropy && pack_by(Packing::zstd, in, out, [&](MutableBytes room) {
        return compress_zstd(in, 1, room);
      })) {
    return;
  }
  if (entropy < (1 - kLeastEntropyGain) * static_cast<double>(in.size()) &&
      pack_by(Packing::rans, in, out,
              [&](MutableBytes room) { return rans_encode(in, histogram, scratch_, room); })) {
    return;
  }
  keep(in, out);
}

Unpacker::Unpacker() : zstd_(nullptr, ZSTD_freeDCtx) {}
Unpacker::Unpacker(Unpacker&&) noexcept = default;
Unpacker::~Unpacker() = default;

bool Unpacker::unpack_sparse(ByteView packed, MutableBytes out) {
  format::Reader reader(packed);
  const std::uint32_t gaps = reader.u32(), values = reader.u32();
  if (!reader.ok() || gaps > out.size() || values > gaps) return false;
  packed = packed.subspan(2 * kWordBytes);
  sparse_.gaps.resize(gaps);
  sparse_.values.resize(values);
  for (ByteVector* part : {&sparse_.gaps, &sparse_.values}) {
    if (packing_of(packed) == Packing::sparse || !unpack(packed, *part)) return false;
  }
  return packed.empty() && from_sparse(sparse_.gaps, sparse_.values, out);
}

Status Unpacker::unpack(ByteView& in, MutableBytes out) {
  format::Reader reader(in);
  const std::uint32_t word = reader.u32();
  const ByteView packed = reader.take(word & kSizeMask);
  if (!reader.ok())
    return fail(Code::corrupt, "compressed block: a packed run reaches beyond the payload");
  in = in.subspan(kWordBytes + packed.size());
  bool filled = false;
  switch (static_cast<Packing>(word >> kSizeBits)) {
    case Packing::kept:
      filled = packed.size() == out.size();
      if (filled && !out.empty()) std::memcpy(out.data(), packed.data(), out.size());
      break;
    case Packing::constant:
      filled = packed.size() == 1;
      if (filled) std::fill(out.begin(), out.end(), packed[0]);
      break;
    case Packing::lz4:
      filled = LZ4_decompress_safe(chars(packed), chars(out), static_cast<int>(packed.size()),
                                   static_cast<int>(out.size())) == static_cast<int>(out.size());
      break;
    case Packing::rans:
      filled = rans_decode(packed, out);
      break;
    case Packing::sparse:
      filled = unpack_sparse(packed, out);
      break;
    case Packing::zstd:
      if (!zstd_) zstd_.reset(ZSTD_createDCtx());
      if (!zstd_) return fail(Code::memory, "compressed block: no memory for zstd");
      filled = ZSTD_decompressDCtx(zstd_.get(), out.data(), out.size(), packed.data(),
                                   packed.size()) == out.size();
      break;
  }
  if (!filled)
    return fail(Code::corrupt,
                fmt::format("compressed block: a packed run does not give {} bytes", out.size()));
  return {};
}

}  // namespace diapause::codec
