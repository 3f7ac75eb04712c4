#include "engine/encoding/encoding_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sys/process.hpp"

namespace diapause::engine {
namespace {

constexpr std::uint64_t kLeastToLearnFrom = 4 * kMiB;
constexpr std::uint64_t kSampleBytes = std::uint64_t{256} * 1024;
// Smaller regions are neither worth sampling nor a message.
constexpr std::uint64_t kLeastToSample = 4 * kSampleBytes;
constexpr double kTooFastToCompress = 8e9;  // bytes per second that no codec on any core can reach
constexpr double kChanged = 1.5;      // a factor in either direction that is not due to chance
constexpr double kNoticeable = 1.05;  // a slowdown by this factor is reported

// Measures a codec on one idle core, with a piece from the middle of the region. Returns nullopt if
// the codec gives up on it.
std::optional<policy::CodecSample> measure(const codec::Method& method,
                                           const format::Region& region, ByteView piece) {
  auto encoder = codec::BlockEncoder::create(method);
  if (!encoder) return std::nullopt;
  codec::Shape shape{region.type};
  shape.dims.back() = piece.size() / shape.element_bytes();
  const auto warm = encoder->encode(piece, shape);  // this warms up the encoder's new memory
  const double start_s = sys::processor_s();
  const auto report = encoder->encode(piece, shape);
  const double took_s = sys::processor_s() - start_s;
  if (!warm || !report || took_s <= 0) return std::nullopt;
  return policy::CodecSample{
      codec::codec_name(method.codec),
      static_cast<double>(report->raw_bytes) / static_cast<double>(report->stored_bytes),
      static_cast<double>(report->raw_bytes) / took_s};
}

double slowdown_in(const sys::ProcessorTime& time) {
  constexpr double kLeastToTellS = 1e-4;
  return time.had_s < kLeastToTellS ? 1 : (time.had_s + time.waited_s) / time.had_s;
}

}  // namespace

codec::Method allowed_method(const format::Region& region) {
  return {static_cast<codec::CodecId>(region.compression.codec), region.compression.bound};
}

bool EncodingPlan::has_work() const {
  return std::ranges::any_of(
      choices, [](const Choice& choice) { return choice.method.codec != codec::CodecId::raw; });
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

void EncodingPlanner::learn(const GlobalStep& step) {
  if (step.bytes < kLeastToLearnFrom || step.seconds() <= 0) return;
  const double cost = step.seconds() / static_cast<double>(step.bytes);
  if (step.how == Stored::as_it_is) {
    const double slowdown = slowdown_in(step.processor);
    slowdown_ = plain_cost_ ? (slowdown_ + slowdown) / 2 : slowdown;
    plain_cost_ = plain_cost_ ? (*plain_cost_ + cost) / 2 : cost;
    return;
  }
  compressed_at_ = version_;
  const double before = compressed_cost_.value_or(cost);
  if (cost > kChanged * before || cost * kChanged < before) {
    plain_cost_.reset();  // the storage, or the program, has changed
    compressed_cost_.reset();
  } else {
    compressed_cost_ = (before + cost) / 2;
  }
}

// Returns whether compressing to save time was tried recently and took longer than not compressing.
bool EncodingPlanner::has_disappointed() const {
  return settings_.goal == config::CodecGoal::time && compressed_cost_ && plain_cost_ &&
         *compressed_cost_ > *plain_cost_ && version_ < compressed_at_ + kSampleEvery;
}

// Returns samples of a region. Fails if the region cannot be read; it is sampled again then.
Result<const EncodingPlanner::Known*> EncodingPlanner::samples(const format::ImageIndex& index,
                                                               std::size_t region,
                                                               const ReadRegion& read,
                                                               bool may_lose) {
  const format::Region& described = index.regions[region];
  const auto last = known_.find(described.name);
  if (last != known_.end() && last->second.may_lose == may_lose &&
      version_ < last->second.version + kSampleEvery) {
    return &last->second;
  }
  std::vector<codec::Method> methods = {
      {codec::CodecId::shuffle_lz4},
      {codec::CodecId::shuffle_zstd, 0, static_cast<int>(settings_.zstd_level)}};
  if (may_lose) methods.push_back(allowed_method(described));
  const double start_s = sys::monotonic_s();
  ByteVector scratch(kSampleBytes);
  const std::uint64_t element = codec::Shape{described.type}.element_bytes();
  DIAPAUSE_TRY_ASSIGN(const ByteView piece,
                      read(region, described.raw_bytes() / 2 / element * element, scratch));
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

// Weighs the codecs under the slowdown that the step had when the rate of the storage was measured.
policy::CodecChoice EncodingPlanner::weigh(const Known& known) const {
  policy::StorageFacts storage;
  if (plain_cost_) storage.bytes_per_s = 1 / *plain_cost_;
  storage.compress_w = conditions_.draw.compress_w;
  storage.write_w = conditions_.draw.write_w;
  storage.power_source = conditions_.draw.source;
  std::vector<policy::CodecSample> samples = known.samples;
  for (policy::CodecSample& sample : samples) sample.encode_bytes_per_s /= slowdown_;
  policy::CodecChoice choice = policy::choose_codec(settings_.goal, samples, storage);
  if (slowdown_ > kNoticeable && !samples.empty()) {
    choice.reason += fmt::format(
        "; codecs reckoned {:.1f} times slower than alone, as processors are busy", slowdown_);
  }
  return choice;
}

EncodingPlan::Choice EncodingPlanner::choose_automatically(const format::ImageIndex& index,
                                                           std::size_t region,
                                                           const ReadRegion& read, bool may_lose) {
  const auto as_it_is = [](std::string reason) {
    return EncodingPlan::Choice{{codec::CodecId::raw}, "not compressed: " + std::move(reason)};
  };
  const format::Region& described = index.regions[region];
  if (described.raw_bytes() < kLeastToSample) return {};
  if (conditions_.global_is_memory) return as_it_is("the global directory lies in memory");
  if (has_disappointed()) {
    return as_it_is(fmt::format("a GB took {:.3g} s compressed, and {:.3g} s as it is",
                                1e9 * *compressed_cost_, 1e9 * *plain_cost_));
  }
  const Known nothing;
  const Known* known = &nothing;
  if (plain_cost_ && 1 / *plain_cost_ < kTooFastToCompress) {
    const auto sampled = samples(index, region, read, may_lose);
    if (!sampled) return as_it_is(sampled.error().message);
    known = *sampled;
  }
  const policy::CodecChoice choice = weigh(*known);
  return {choice.codec ? known->methods[*choice.codec] : codec::Method{codec::CodecId::raw},
          choice.reason};
}

EncodingPlan::Choice EncodingPlanner::choose(const format::ImageIndex& index, std::size_t region,
                                             const ReadRegion& read, Loss loss) {
  const format::Region& described = index.regions[region];
  if (described.count == 0) return {};
  const bool may_lose = described.compression.bound != 0 && loss == Loss::allowed;
  if (settings_.method == config::CodecMethod::automatic)
    return choose_automatically(index, region, read, may_lose);
  const codec::Method method = may_lose ? allowed_method(described) : configured();
  return {method, may_lose ? "allowed by the program" : "configured"};
}

EncodingPlan EncodingPlanner::plan(const format::ImageIndex& index, const ReadRegion& read,
                                   Loss loss) {
  EncodingPlan plan;
  sampling_s_ = 0;
  for (std::size_t region = 0; region < index.regions.size(); ++region) {
    plan.choices.push_back(choose(index, region, read, loss));
  }
  plan.sampling_s = sampling_s_;
  return plan;
}

}  // namespace diapause::engine
