#include "policy/codec_choice.hpp"

#include <fmt/core.h>

#include <cmath>

namespace diapause::policy {
namespace {

// Compression must cost at most this fraction of storing uncompressed data: the rates are measured
// on samples, and vary.
constexpr double kClearlyCheaper = 0.95;

bool is_sound(const CodecSample& sample) {
  return std::isfinite(sample.ratio) && sample.ratio > 1 &&
         std::isfinite(sample.encode_bytes_per_s) && sample.encode_bytes_per_s > 0;
}

// The cost of a unit of time: seconds, or joules at that power.
struct Weights {
  double compress = 1, write = 1;
};

Weights weights_of(CodecGoal goal, const StorageFacts& storage) {
  if (goal == CodecGoal::time) return {};
  return {storage.compress_w.value_or(1), storage.write_w.value_or(1)};
}

constexpr double kGb = 1e9;

// Returns the cost of storing 1e9 bytes uncompressed.
double plain_cost(const Weights& weights, double storage_rate) {
  return kGb * weights.write / storage_rate;
}

double compressed_cost(const Weights& weights, double storage_rate, const CodecSample& sample) {
  return kGb * (weights.compress / sample.encode_bytes_per_s +
                weights.write / (sample.ratio * storage_rate));
}

std::string what_is_missing(CodecGoal goal, const StorageFacts& storage) {
  if (!storage.bytes_per_s || !(*storage.bytes_per_s > 0))
    return "the rate of storage has not been measured yet";
  if (goal == CodecGoal::energy && (!storage.compress_w || !storage.write_w)) {
    return "what compressing and writing draw is not known" +
           (storage.power_source.empty() ? "" : ": " + storage.power_source);
  }
  return {};
}

std::string power_text(CodecGoal goal, const StorageFacts& storage) {
  if (goal == CodecGoal::time) return {};
  return fmt::format(", writing at {:.3g} W and compressing at {:.3g} W ({})", *storage.write_w,
                     *storage.compress_w, storage.power_source);
}

}  // namespace

double break_even_bytes_per_s(const CodecSample& sample, CodecGoal goal,
                              const StorageFacts& storage) {
  if (!is_sound(sample)) return 0;
  const Weights weights = weights_of(goal, storage);
  return sample.encode_bytes_per_s * (1 - 1 / sample.ratio) * weights.write / weights.compress;
}

CodecChoice choose_codec(CodecGoal goal, std::span<const CodecSample> samples,
                         const StorageFacts& storage) {
  const std::string missing = what_is_missing(goal, storage);
  if (!missing.empty()) return {{}, "not compressed: " + missing};
  const double rate = *storage.bytes_per_s;
  const Weights weights = weights_of(goal, storage);
  const double plain = plain_cost(weights, rate);
  const char* const unit = goal == CodecGoal::time ? "s" : "J";
  CodecChoice choice;
  double least = kClearlyCheaper * plain;
  std::string numbers;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const CodecSample& sample = samples[i];
    if (!is_sound(sample)) {
      numbers += fmt::format("; {} does not make it smaller", sample.name);
      continue;
    }
    const double cost = compressed_cost(weights, rate, sample);
    numbers += fmt::format("; {} {:.3g} {} (ratio {:.2f} at {:.2f} GB/s, saves below {:.2f} GB/s)",
                           sample.name, cost, unit, sample.ratio, sample.encode_bytes_per_s / kGb,
                           break_even_bytes_per_s(sample, goal, storage) / kGb);
    if (cost >= least) continue;
    least = cost;
    choice.codec = i;
  }
  choice.reason = fmt::format("{}: a GB takes {:.3g} {} as it is, at {:.2f} GB/s{}{}",
                              choice.codec ? samples[*choice.codec].name : "not compressed", plain,
                              unit, rate / kGb, power_text(goal, storage), numbers);
  return choice;
}

}  // namespace diapause::policy
