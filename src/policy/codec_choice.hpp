// Decides whether to compress a region before it is stored. The functions are pure: they take
// measurements and return a decision with its numbers in words. The model is a core that first
// compresses and then writes. The costs per byte of the region are, with rates in bytes per second,
// compression ratio r, rate C of the codec and rate B of the storage:
//
//   time    plain  1 / B                compressed  1 / C + 1 / (r B)
//   energy  plain  P_write / B          compressed  P_compress / C + P_write / (r B)
//
// Compression therefore saves if B is below C (1 - 1/r), times P_write / P_compress for energy. A
// core that waits for storage draws less than one that compresses, so what saves time may cost
// energy.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "config/settings.hpp"

namespace diapause::policy {

using config::CodecGoal;

// One codec, measured on a sample of the region.
struct CodecSample {
  std::string name;
  double ratio = 1;  // raw bytes over stored bytes
  // Uncompressed bytes by one core, including the check of lossy data.
  double encode_bytes_per_s = 0;
};

// The storage that the region goes to; nullopt means not measured yet.
struct StorageFacts {
  std::optional<double> bytes_per_s = {};  // a core's share when all cores of the node write
  // Power of the node while one core compresses, and while it writes.
  std::optional<double> compress_w = {};
  std::optional<double> write_w = {};
  std::string power_source = {};  // says how the powers are known, or why they are not; for users
};

struct CodecChoice {
  std::optional<std::size_t> codec;  // index of the sample; nullopt: store uncompressed
  std::string reason;                // for users, with the numbers
};

// Returns the rate of the storage below which the codec saves; 0 if it never does.
double break_even_bytes_per_s(const CodecSample& sample, CodecGoal goal,
                              const StorageFacts& storage);

// Returns the codec that costs least if that is clearly less than storing the region uncompressed.
// Returns none if the rate of the storage, or for energy the powers, are unknown.
CodecChoice choose_codec(CodecGoal goal, std::span<const CodecSample> samples,
                         const StorageFacts& storage);

}  // namespace diapause::policy
