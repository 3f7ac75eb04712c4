#include "codec/pack.hpp"

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "format/wire.hpp"

namespace diapause::codec {
namespace {

constexpr std::uint32_t kSizeBits = 28;
constexpr std::uint32_t kSizeMask = (std::uint32_t{1} << kSizeBits) - 1;
constexpr std::size_t kWordBytes = 4;

constexpr std::size_t kSamplePieces = 4;
constexpr std::size_t kPieceBytes = 2048;
constexpr std::size_t kSampleBytes = kSamplePieces * kPieceBytes;
// Less is not worth a decoder's time.
constexpr double kLeastGain = 0.1;

const char* chars(ByteView bytes) { return reinterpret_cast<const char*>(bytes.data()); }
char* chars(MutableBytes bytes) { return reinterpret_cast<char*>(bytes.data()); }

bool is_constant(ByteView in) { return in.size() > 1 && std::memcmp(in.data(), in.data() + 1, in.size() - 1) == 0; }

// Bits of a byte of `in`, if it is coded for itself.
double entropy_bits(ByteView in) {
  std::array<std::uint32_t, 256> counts{};
  for (const std::byte value : in) ++counts[std::to_integer<std::size_t>(value)];
  double bits = 0;
  for (const std::uint32_t count : counts) {
    if (count > 0) bits += count * std::log2(static_cast<double>(in.size()) / count);
  }
  return bits / static_cast<double>(in.size());
}

}  // namespace

void Output::append(ByteView data) {
  if (data.size() > rest().size()) ok_ = false;
  if (!ok_) return;
  if (!data.empty()) std::memcpy(rest().data(), data.data(), data.size());
  advance(data.size());
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

Packer::Packer() : lz4_state_(LZ4_sizeofState() / sizeof(std::uint64_t) + 1), zstd_(nullptr, ZSTD_freeCCtx) {}
Packer::Packer(Packer&&) noexcept = default;
Packer::~Packer() = default;

std::size_t Packer::compress(ByteView in, int level, MutableBytes out) {
  if (level == kLz4) {
    const int written = LZ4_compress_fast_extState(lz4_state_.data(), chars(in), chars(out),
                                                   static_cast<int>(in.size()), static_cast<int>(out.size()), 4);
    return static_cast<std::size_t>(std::max(0, written));
  }
  if (!zstd_) zstd_.reset(ZSTD_createCCtx());
  if (!zstd_) return 0;
  const std::size_t written = ZSTD_compressCCtx(zstd_.get(), out.data(), out.size(), in.data(), in.size(), level);
  return ZSTD_isError(written) ? 0 : written;
}

// Most planes of floating-point data are noise: to find that out in full costs more than all the rest.
bool Packer::pays(ByteView in, int level) {
  if (in.size() <= 2 * kSampleBytes) return true;
  std::array<std::byte, kSampleBytes> sample;
  for (std::size_t i = 0; i < kSamplePieces; ++i) {
    const std::size_t at = (in.size() - kPieceBytes) / (kSamplePieces - 1) * i;
    std::memcpy(sample.data() + i * kPieceBytes, in.data() + at, kPieceBytes);
  }
  std::array<std::byte, kSampleBytes> packed;
  if (compress(sample, kLz4, MutableBytes(packed).first(static_cast<std::size_t>(kSampleBytes * (1 - kLeastGain)))) >
      0) {
    return true;
  }
  return level != kLz4 && entropy_bits(sample) < 8 * (1 - kLeastGain);
}

void Packer::pack(ByteView in, int level, Output& out) {
  if (!out.ok()) return;
  const auto word = [](Packing packing, std::size_t size) {
    return static_cast<std::uint32_t>(size) | static_cast<std::uint32_t>(packing) << kSizeBits;
  };
  if (is_constant(in)) {
    out.u32(word(Packing::constant, 1));
    return out.append(in.first(1));
  }
  if (out.rest().size() > kWordBytes && in.size() > 1 && pays(in, level)) {
    const MutableBytes room = out.rest().subspan(kWordBytes);
    const std::size_t written = compress(in, level, room.first(std::min(room.size(), in.size() - 1)));
    if (written > 0) {
      out.u32(word(level == kLz4 ? Packing::lz4 : Packing::zstd, written));
      return out.advance(written);
    }
  }
  out.u32(word(Packing::kept, in.size()));
  out.append(in);
}

Unpacker::Unpacker() : zstd_(nullptr, ZSTD_freeDCtx) {}
Unpacker::Unpacker(Unpacker&&) noexcept = default;
Unpacker::~Unpacker() = default;

Status Unpacker::unpack(ByteView& in, MutableBytes out) {
  format::Reader reader(in);
  const std::uint32_t word = reader.u32();
  const ByteView packed = reader.take(word & kSizeMask);
  if (!reader.ok()) return fail(Code::corrupt, "compressed block: a packed run reaches beyond the payload");
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
    case Packing::zstd:
      if (!zstd_) zstd_.reset(ZSTD_createDCtx());
      if (!zstd_) return fail(Code::memory, "compressed block: no memory for zstd");
      filled = ZSTD_decompressDCtx(zstd_.get(), out.data(), out.size(), packed.data(), packed.size()) == out.size();
      break;
  }
  if (!filled)
    return fail(Code::corrupt, fmt::format("compressed block: a packed run does not give {} bytes", out.size()));
  return {};
}

}  // namespace diapause::codec
