// Plans how each region of an image is stored in the global tier: as configured, as its owner
// allows, or as samples of it suggest.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codec/block_coder.hpp"
#include "config/settings.hpp"
#include "format/image.hpp"
#include "policy/codec_choice.hpp"
#include "sys/process.hpp"

namespace diapause::engine {

// The plan for the regions of one image, by their numbers.
struct EncodingPlan {
  struct Choice {
    codec::Method method{codec::CodecId::raw};
    std::string reason;  // for users
  };
  std::vector<Choice> choices;
  double sampling_s = 0;  // time spent on trying codecs for it

  bool has_work() const;  // whether a region is to be compressed
};

// Returns the lossy codec and bound that the program allows for the region, or that an image
// records. The region must have a bound.
codec::Method allowed_method(const format::Region& region);

// Returns the `scratch.size()` bytes of a raw region at an offset, in `scratch` or in place.
using ReadRegion =
    std::function<Result<ByteView>(std::size_t region, std::uint64_t offset, MutableBytes scratch)>;

enum class Loss { allowed, refused };

// The form in which a version was stored in the global tier.
enum class Stored { as_it_is, compressed };

// The total cost of the step of level 4 of one version in this process.
struct GlobalStep {
  std::uint64_t bytes = 0;  // bytes of the program's data
  double from_s = 0;        // seconds of sys::monotonic_s()
  double to_s = 0;
  sys::ProcessorTime processor = {};  // time of the thread during the step
  Stored how = Stored::as_it_is;
  double encode_s = 0;  // seconds of it, for compression

  double seconds() const { return to_s - from_s; }
};

// Power of the machine in the step, in watts, while it compresses and while it writes.
struct Draw {
  std::optional<double> compress_w, write_w;
  std::string source;  // says how the powers are known, or why they are not; for users
};

// The conditions when a version begins.
struct Conditions {
  bool global_is_memory = false;  // the global tier is memory of this machine
  Draw draw = {};                 // used if joules are weighed
};

// Plans the encoding of versions, and learns from them. One thread at a time may use it.
class EncodingPlanner {
 public:
  explicit EncodingPlanner(const config::CodecSettings& settings) : settings_(settings) {}

  EncodingPlan plan(const format::ImageIndex& index, const ReadRegion& read, Loss loss);

  void begin_version(const Conditions& conditions) {
    ++version_;
    conditions_ = conditions;
  }
  // Learns from a step. Steps with few bytes are ignored, because their time says nothing about the
  // rate of the storage.
  void learn(const GlobalStep& step);

 private:
  // Samples of a region, and trials, stay valid for this many versions, because programs change
  // slowly.
  static constexpr std::uint64_t kSampleEvery = 10;  // number of versions
  struct Known {
    std::uint64_t version = 0;
    bool may_lose = false;
    std::vector<codec::Method> methods;  // methods of the samples; codecs that gave up have none
    std::vector<policy::CodecSample> samples;
  };

  policy::CodecChoice weigh(const Known& known) const;
  EncodingPlan::Choice choose_automatically(const format::ImageIndex& index, std::size_t region,
                                            const ReadRegion& read, bool may_lose);
  EncodingPlan::Choice choose(const format::ImageIndex& index, std::size_t region,
                              const ReadRegion& read, Loss loss);
  Result<const Known*> samples(const format::ImageIndex& index, std::size_t region,
                               const ReadRegion& read, bool may_lose);
  codec::Method configured() const;
  bool has_disappointed() const;

  config::CodecSettings settings_;
  Conditions conditions_;
  // The measured seconds per byte. Codecs are slower beside the program than on samples, and
  // overlap with the writes.
  std::optional<double> plain_cost_, compressed_cost_;
  // A computing thread takes this many times longer than alone, because other threads have the
  // processors. It was measured together with plain_cost_. Samples are in processor time.
  double slowdown_ = 1;
  std::uint64_t compressed_at_ = 0;  // number of the version
  std::uint64_t version_ = 0;
  double sampling_s_ = 0;               // seconds spent on the present plan
  std::map<std::string, Known> known_;  // by the name of the region
};

}  // namespace diapause::engine
