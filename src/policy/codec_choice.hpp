// Whether to compress a region before it is stored. Pure: what was measured goes in, a decision with its numbers in
// words comes out. The model, of one core that first compresses and then writes (a byte of the region, rates in bytes a
// second, r the compression ratio, C the rate of the codec, B that of storage):
//
//   time    plain  1 / B                compressed  1 / C + 1 / (r B)
//   energy  plain  P_write / B          compressed  P_compress / C + P_write / (r B)
//
// so that compression saves below B = C (1 - 1/r), times P_write / P_compress where energy counts: a core that waits
// for storage draws less than one that compresses, and what saves time may cost energy.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "config/settings.hpp"

namespace diapause::policy {

using config::CodecGoal;

// One codec on a sample of the region.
struct CodecSample {
  std::string name;
  double ratio = 1;               // raw bytes over stored bytes
  double encode_bytes_per_s = 0;  // of raw bytes, by one core, with the check of what is lossy
};

// Where the region goes. None: not measured yet.
struct StorageFacts {
  std::optional<double> bytes_per_s = {};  // a core's share, when all of the node write
  std::optional<double> compress_w = {};   // what the node draws while a core compresses, and while it writes
  std::optional<double> write_w = {};
  std::string power_source = {};  // how these are known, or why they are not; for people
};

struct CodecChoice {
  std::optional<std::size_t> codec;  // index of the sample; none: store as it is
  std::string reason;                // for people, with the numbers
};

// The rate of storage below which the codec saves; 0 if it never does.
double break_even_bytes_per_s(const CodecSample& sample, CodecGoal goal, const StorageFacts& storage);

// The codec that costs least, if that is clearly less than storing the region as it is. Without the storage's rate, or
// without the powers where energy counts: none.
CodecChoice choose_codec(CodecGoal goal, std::span<const CodecSample> samples, const StorageFacts& storage);

}  // namespace diapause::policy
