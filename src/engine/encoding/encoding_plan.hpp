// How each region of an image goes to the global tier: as configured, as its owner allows, or as samples of it tell.
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

// What to do with the regions of one image, by their numbers.
struct EncodingPlan {
  struct Choice {
    codec::Method method{codec::CodecId::raw};
    std::string reason;  // for people
  };
  std::vector<Choice> choices;
  double sampling_s = 0;  // it took to try codecs for it

  bool has_work() const;  // whether a region is to be compressed
};

// The lossy codec and bound that the program allows for the region, or what is in an image. Not for one without a
// bound.
codec::Method allowed_method(const format::Region& region);

// The `scratch.size()` bytes of a raw region from an offset on, in `scratch` or where they lie.
using ReadRegion = std::function<Result<ByteView>(std::size_t region, std::uint64_t offset, MutableBytes scratch)>;

enum class Loss { allowed, refused };

// How a version went to the global tier.
enum class Stored { as_it_is, compressed };

// What the step of level 4 of one version took this process, all in all.
struct GlobalStep {
  std::uint64_t bytes = 0;  // of the program
  double from_s = 0;        // sys::monotonic_s()
  double to_s = 0;
  sys::ProcessorTime processor = {};  // of the thread, in the step
  Stored how = Stored::as_it_is;
  double encode_s = 0;  // of it, compressing

  double seconds() const { return to_s - from_s; }
};

// What the step draws, in watts, while it compresses and while it writes.
struct Draw {
  std::optional<double> compress_w, write_w;
  std::string source;  // how they are known, or why they are not; for people
};

// What is known when a version begins.
struct Conditions {
  bool global_is_memory = false;  // of this machine
  Draw draw = {};                 // for those who weigh joules
};

// Not for several threads at once.
class EncodingPlanner {
 public:
  explicit EncodingPlanner(const config::CodecSettings& settings) : settings_(settings) {}

  EncodingPlan plan(const format::ImageIndex& index, const ReadRegion& read, Loss loss);

  void begin_version(const Conditions& conditions) {
    ++version_;
    conditions_ = conditions;
  }
  // Few bytes are left out: what they take is not the rate of the storage.
  void learn(const GlobalStep& step);

 private:
  // Samples of a region stay good for a while, and so does what was tried: programs change slowly.
  static constexpr std::uint64_t kSampleEvery = 10;  // versions
  struct Known {
    std::uint64_t version = 0;
    bool may_lose = false;
    std::vector<codec::Method> methods;  // of the samples; codecs that gave up have none
    std::vector<policy::CodecSample> samples;
  };

  policy::CodecChoice weigh(const Known& known) const;
  EncodingPlan::Choice choose_automatically(const format::ImageIndex& index, std::size_t region, const ReadRegion& read,
                                            bool may_lose);
  EncodingPlan::Choice choose(const format::ImageIndex& index, std::size_t region, const ReadRegion& read, Loss loss);
  Result<const Known*> samples(const format::ImageIndex& index, std::size_t region, const ReadRegion& read,
                               bool may_lose);
  codec::Method configured() const;
  bool has_disappointed() const;

  config::CodecSettings settings_;
  Conditions conditions_;
  // Seconds a byte, as it was: codecs are slower beside the program than on samples, and writes go on beside them.
  std::optional<double> plain_cost_, compressed_cost_;
  // How many times longer than alone a thread takes that computes, because others have the processors; as it was when
  // plain_cost_ was. Samples are of processor time.
  double slowdown_ = 1;
  std::uint64_t compressed_at_ = 0;  // version
  std::uint64_t version_ = 0;
  double sampling_s_ = 0;               // for the plan that is being made
  std::map<std::string, Known> known_;  // by region
};

}  // namespace diapause::engine
