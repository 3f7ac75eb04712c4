#include "engine/encoding_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sys/process.hpp"

namespace diapause::engine {
namespace {

constexpr std::uint64_t kLeastToLearnFrom = 4 * kMiB;
constexpr std::uint64_t kSampleBytes = 256 * 1024;
constexpr std::uint64_t kLeastToSample = 4 * kSampleBytes;  // smaller regions are not worth the samples
constexpr double kTooFastToCompress = 8e9;                  // no codec on any core comes near
constexpr double kChanged = 1.5;                            // times longer or shorter: not by chance

// Of one core, on a piece in the middle of the region; nothing if the codec gives up on it.
std::optional<policy::CodecSample> measure(const codec::Method& method, const format::Region& region, ByteView piece) {
  auto encoder = codec::BlockEncoder::create(method);
  if (!encoder) return std::nullopt;
  codec::Shape shape{region.type};
  shape.dims.back() = piece.size() / shape.element_bytes();
  const auto warm = encoder->encode(piece, shape);  // its memory is new
  const double start_s = sys::monotonic_s();
  const auto report = encoder->encode(piece, shape);
  const double took_s = sys::monotonic_s() - start_s;
  if (!warm || !report || took_s <= 0) return std::nullopt;
  return policy::CodecSample{codec::codec_name(method.codec),
                             static_cast<double>(report->raw_bytes) / static_cast<double>(report->stored_bytes),
                             static_cast<double>(report->raw_bytes) / took_s};
}

}  // namespace

codec::Method allowed_method(const format::Region& region) {
  return {static_cast<codec::CodecId>(region.compression.codec), region.compression.bound};
}

bool EncodingPlan::has_work() const {
  return std::ranges::any_of(choices, [](const Choice& choice) { return choice.method.codec != codec::CodecId::raw; });
}

codec::Method EncodingPlanner::configured() const {
  switch (settings_.method) {
    case config::CodecMethod::lz4:
      return {codec::CodecId::shuffle_lz4};
    case config::CodecMethod::zstd:
      return {codec::CodecId::shuffle_zstd, 0, static_cast<int>(settings_.zstd_level)};
    case config::CodecMethod::none:
    case config::CodecMethod::automatic:
      break;
  }
  return {codec::CodecId::raw};
}

void EncodingPlanner::learn(std::uint64_t bytes, double seconds, Stored how) {
  if (bytes < kLeastToLearnFrom || seconds <= 0) return;
  const double cost = seconds / static_cast<double>(bytes);
  if (how == Stored::as_it_is) {
    plain_cost_ = plain_cost_ ? (*plain_cost_ + cost) / 2 : cost;
    return;
  }
  compressed_at_ = version_;
  const double before = compressed_cost_.value_or(cost);
  if (cost > kChanged * before || cost * kChanged < before) {
    plain_cost_.reset();  // the storage, or the program, is not what it was
    compressed_cost_.reset();
  } else {
    compressed_cost_ = (before + cost) / 2;
  }
}

// Whether to compress was tried lately, and took longer than not to.
bool EncodingPlanner::has_disappointed() const {
  return compressed_cost_ && plain_cost_ && *compressed_cost_ > *plain_cost_ &&
         version_ < compressed_at_ + kSampleEvery;
}

// Fails if the region cannot be read, and is to be tried again then.
Result<const EncodingPlanner::Known*> EncodingPlanner::samples(const format::ImageIndex& index, std::size_t region,
                                                               const ReadRegion& read, bool may_lose) {
  const format::Region& described = index.regions[region];
  const auto last = known_.find(described.name);
  if (last != known_.end() && last->second.may_lose == may_lose && version_ < last->second.version + kSampleEvery) {
    return &last->second;
  }
  std::vector<codec::Method> methods = {{codec::CodecId::shuffle_lz4},
                                        {codec::CodecId::shuffle_zstd, 0, static_cast<int>(settings_.zstd_level)}};
  if (may_lose) methods.push_back(allowed_method(described));
  const double start_s = sys::monotonic_s();
  ByteVector scratch(kSampleBytes);
  const std::uint64_t element = codec::Shape{described.type}.element_bytes();
  DIAPAUSE_TRY_ASSIGN(const ByteView piece, read(region, described.raw_bytes() / 2 / element * element, scratch));
  Known known{version_, may_lose, {}, {}};
  for (const codec::Method& method : methods) {
    auto measured = measure(method, described, piece);
    if (!measured) continue;
    measured->encode_bytes_per_s *= settings_.threads;
    known.methods.push_back(method);
    known.samples.push_back(std::move(*measured));
  }
  sampling_s_ += sys::monotonic_s() - start_s;
  return &(known_[described.name] = std::move(known));
}

EncodingPlan::Choice EncodingPlanner::choose(const format::ImageIndex& index, std::size_t region,
                                             const ReadRegion& read, Loss loss) {
  const format::Region& described = index.regions[region];
  if (described.count == 0) return {};
  const bool may_lose = described.compression.bound != 0 && loss == Loss::allowed;
  if (settings_.method != config::CodecMethod::automatic) {
    const codec::Method method = may_lose ? allowed_method(described) : configured();
    return {method, may_lose ? "allowed by the program" : "configured"};
  }
  if (described.raw_bytes() < kLeastToSample) return {{codec::CodecId::raw}, "too small to matter"};
  if (has_disappointed()) {
    return {{codec::CodecId::raw},
            fmt::format("not compressed: a GB took {:.3g} s so, and {:.3g} s as it is", 1e9 * *compressed_cost_,
                        1e9 * *plain_cost_)};
  }
  policy::StorageFacts storage;
  if (plain_cost_) storage.bytes_per_s = 1 / *plain_cost_;
  const Known nothing;
  const Known* known = &nothing;
  if (storage.bytes_per_s && *storage.bytes_per_s < kTooFastToCompress) {
    const auto sampled = samples(index, region, read, may_lose);
    if (!sampled) return {{codec::CodecId::raw}, "not compressed: " + sampled.error().message};
    known = *sampled;
  }
  const policy::CodecChoice choice = policy::choose_codec(policy::CodecGoal::time, known->samples, storage);
  return {choice.codec ? known->methods[*choice.codec] : codec::Method{codec::CodecId::raw}, choice.reason};
}

EncodingPlan EncodingPlanner::plan(const format::ImageIndex& index, const ReadRegion& read, Loss loss) {
  EncodingPlan plan;
  sampling_s_ = 0;
  for (std::size_t region = 0; region < index.regions.size(); ++region) {
    plan.choices.push_back(choose(index, region, read, loss));
  }
  plan.sampling_s = sampling_s_;
  return plan;
}

}  // namespace diapause::engine
