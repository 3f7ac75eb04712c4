// Images on their way to the global tier, compressed. Images on the nodes stay as they are: those can be mapped, and
// parities are made of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/byte_source.hpp"
#include "capture/capture.hpp"
#include "codec/region_coder.hpp"
#include "engine/encoding/encoding_plan.hpp"
#include "format/image.hpp"
#include "format/manifest.hpp"
#include "sys/rate_limiter.hpp"
#include "sys/thread_pool.hpp"

namespace diapause::engine {

// What became of one region.
struct EncodedRegion {
  std::string name;
  EncodingPlan::Choice choice;
  codec::RegionReport report;
  double encode_s = 0;
};

struct EncodedImage {
  format::ImageRecord record;
  double greatest_error = 0;
  double encode_s = 0;  // of the time that writing it took
  std::vector<EncodedRegion> regions;
};

// Not for several threads at once.
class Encoding {
 public:
  // `threads` of them compress, the caller's among them.
  explicit Encoding(unsigned threads) : pool_(threads) {}

  // Compresses the image `raw` into `to` as `plan` says, through `limiter`; does not sync. What it compresses is
  // checked before: nothing damaged becomes sound. Code::corrupt names the region that is damaged.
  Result<EncodedImage> write(ByteSource& raw, const EncodingPlan& plan, const capture::FileRange& to,
                             sys::RateLimiter& limiter);

 private:
  class CheckedRegion;
  class ImageWriter;
  static Status copy(CheckedRegion& bytes, ImageWriter& writer);
  Result<EncodedRegion> compress(CheckedRegion& bytes, const EncodingPlan::Choice& choice, ImageWriter& writer);

  sys::ThreadPool pool_;
};

// The size that no compressed image of these regions exceeds.
std::uint64_t most_encoded_bytes(const format::ImageIndex& index);

// Header and index of an image.
struct ImageDescription {
  format::ImageHeader header;
  format::ImageIndex index;
};
Result<ImageDescription> describe(ByteSource& image);

}  // namespace diapause::engine
