// Measures what codecs cost and gain, on one core.
//
//   codec lossless|lossy|guard RUNS
//
// `lossless` gives the seconds of shuffle + LZ4, with checksums, against memcpy. `lossy` gives the
// seconds and stored bytes of our codec in blocks, against SZ3 on whole fields, both with the check
// of every value, as geometric means over the fields, for a GB. `guard` gives the seconds with and
// without that check. On standard error there is a line for each field.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "codec/block_coder.hpp"
#include "codec/guard.hpp"
#include "fields.hpp"
#include "measure.hpp"

namespace {

using namespace diapause;
using namespace diapause::codec;
using bench::Field;
using bench::give_up;
using bench::Pairs;
using bench::seconds_of;

constexpr double kBound = 1e-3;
constexpr std::uint64_t kBlockBytes = 4 * kMiB;

BlockPlan plan_of(const Field& field) {
  format::Region region;
  region.type = field.shape.type;
  region.element_bytes = field.shape.element_bytes();
  region.count = field.shape.count();
  for (const std::uint64_t dim : field.shape.dims) region.place.push_back({dim, dim, 0});
  return {region, kBlockBytes};
}

template <class Action>
void for_blocks(const Field& field, Action action) {
  const BlockPlan plan = plan_of(field);
  for (std::uint64_t i = 0; i < plan.block_count(); ++i) {
    const Shape shape = plan.shape_of(i);
    action(ByteView(field.bytes).subspan(plan.offset_of(i), shape.bytes()), shape);
  }
}

// Returns the stored bytes.
double encode_in_blocks(const Field& field, BlockEncoder& encoder) {
  double stored = 0;
  for_blocks(field, [&](ByteView raw, const Shape& shape) {
    const auto report = encoder.encode(raw, shape);
    if (!report) give_up(report.error().message);
    stored += static_cast<double>(report->stored_bytes);
  });
  return stored;
}

std::unique_ptr<Codec> codec_or_give_up(CodecId id) {
  auto codec = make_codec(id);
  if (!codec) give_up(codec.error().message);
  return std::move(*codec);
}

double encode_whole(const Field& field, Codec& codec, ByteVector& stored, ByteVector& decoded) {
  const auto written = codec.encode(field.bytes, field.shape, {codec.id(), kBound}, stored);
  if (!written || *written == 0)
    give_up(field.name + ": " + codec_name(codec.id()) + " gives nothing");
  const ByteView payload = ByteView(stored).first(*written);
  if (!codec.decode(payload, field.shape, kBound, decoded))
    give_up(field.name + ": it does not decode what it gave");
  if (!greatest_error(field.bytes, decoded, field.shape, kBound))
    give_up(field.name + ": it does not keep the bound");
  return static_cast<double>(*written);
}

void warm(ByteVector& memory, std::size_t bytes) { memory.assign(bytes, std::byte{1}); }

struct Lossy {
  double our_s, sz3_s, our_bytes, sz3_bytes;
};

Lossy compare_lossy(const Field& field, BlockEncoder& ours, Codec& sz3) {
  ByteVector stored, decoded;
  warm(stored, 2 * field.bytes.size());
  warm(decoded, field.bytes.size());
  Lossy result{};
  result.our_s = seconds_of([&] { result.our_bytes = encode_in_blocks(field, ours); });
  result.sz3_s = seconds_of([&] { result.sz3_bytes = encode_whole(field, sz3, stored, decoded); });
  return result;
}

void tell(const Field& field, const Lossy& it) {
  const auto bytes = static_cast<double>(field.bytes.size());
  std::fprintf(stderr, "%-24s lattice: ratio %.2f, %.0f MB/s; sz3: ratio %.2f, %.0f MB/s\n",
               field.name.c_str(), bytes / it.our_bytes, bytes / it.our_s / 1e6,
               bytes / it.sz3_bytes, bytes / it.sz3_s / 1e6);
}

std::vector<Field> all_fields() {
  std::vector<Field> fields = bench::solver_fields();
  for (Field& field : bench::made_up_fields()) fields.push_back(std::move(field));
  return fields;
}

double mean_of(const std::vector<double>& logs) {
  double sum = 0;
  for (const double value : logs) sum += value;
  return std::exp(sum / static_cast<double>(logs.size()));
}

void print_lossy(int runs) {
  const std::vector<Field> fields = all_fields();
  auto ours = BlockEncoder::create({CodecId::lattice, kBound}).value();
  const auto sz3 = codec_or_give_up(CodecId::sz3);
  Pairs seconds, bytes;
  for (int run = -1; run < runs; ++run) {
    std::vector<double> our_s, sz3_s, our_bytes, sz3_bytes;
    for (const Field& field : fields) {
      const Lossy it = compare_lossy(field, ours, *sz3);
      const auto size = static_cast<double>(field.bytes.size());
      our_s.push_back(std::log(it.our_s / size * 1e9));
      sz3_s.push_back(std::log(it.sz3_s / size * 1e9));
      our_bytes.push_back(std::log(it.our_bytes / size));
      sz3_bytes.push_back(std::log(it.sz3_bytes / size));
      if (run == 0) tell(field, it);
    }
    if (run < 0) continue;
    seconds.emplace_back(mean_of(our_s), mean_of(sz3_s));
    bytes.emplace_back(mean_of(our_bytes), mean_of(sz3_bytes));
  }
  std::printf("{\"seconds\": ");
  bench::print_json(seconds);
  std::printf(", \"bytes\": ");
  bench::print_json(bytes);
  std::printf("}\n");
}

void print_lossless(int runs) {
  const std::vector<Field> fields = bench::solver_fields();
  auto encoder = BlockEncoder::create({CodecId::shuffle_lz4}).value();
  Pairs pairs;
  for (int run = -1; run < runs; ++run) {
    double our_s = 0, raw_s = 0, stored = 0, raw = 0;
    for (const Field& field : fields) {
      ByteVector copy;
      warm(copy, field.bytes.size());
      raw_s += seconds_of([&] { std::memcpy(copy.data(), field.bytes.data(), copy.size()); });
      our_s += seconds_of([&] { stored += encode_in_blocks(field, encoder); });
      raw += static_cast<double>(field.bytes.size());
    }
    if (run < 0) std::fprintf(stderr, "ratio %.3f\n", raw / stored);
    if (run >= 0) pairs.emplace_back(our_s, raw_s);
  }
  bench::print_json(pairs);
}

void print_guard(int runs) {
  const std::vector<Field> fields = all_fields();
  auto guarded = BlockEncoder::create({CodecId::lattice, kBound}).value();
  const auto bare = codec_or_give_up(CodecId::lattice);
  ByteVector out;
  warm(out, kBlockBytes);
  Pairs pairs;
  for (int run = -1; run < runs; ++run) {
    double guarded_s = 0, bare_s = 0;
    for (const Field& field : fields) {
      guarded_s += seconds_of([&] { (void)encode_in_blocks(field, guarded); });
      bare_s += seconds_of([&] {
        for_blocks(field, [&](ByteView raw, const Shape& shape) {
          if (!bare->encode(raw, shape, {CodecId::lattice, kBound}, out))
            give_up(field.name + " cannot be encoded");
        });
      });
    }
    if (run >= 0) pairs.emplace_back(guarded_s, bare_s);
  }
  bench::print_json(pairs);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(int)> measures = {
      {"lossless", print_lossless}, {"lossy", print_lossy}, {"guard", print_guard}};
  if (argc != 3 || !measures.contains(argv[1])) give_up("usage: codec lossless|lossy|guard RUNS");
  measures.at(argv[1])(std::atoi(argv[2]));
}
