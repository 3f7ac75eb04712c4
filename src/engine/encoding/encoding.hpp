// Compresses images on their way to the global tier. Images on the nodes stay uncompressed, because
// they can be mapped and parities are computed from them.
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

// The result for one region.
struct EncodedRegion {
  std::string name;
  EncodingPlan::Choice choice;
  codec::RegionReport report;
  double encode_s = 0;
};

struct EncodedImage {
  format::ImageRecord record;
  double greatest_error = 0;
  double encode_s = 0;  // seconds of the writing time
  std::vector<EncodedRegion> regions;
};

// Writes compressed images. One thread at a time may use it.
class Encoding {
 public:
  // `threads` threads compress, including the caller's.
  explicit Encoding(unsigned threads) : pool_(threads) {}

  // Compresses the image `raw` into `to` according to `plan`, at the rate of `limiter`. Does not
  // sync. Data are verified before they are compressed, so that damaged data do not become sound.
  // Code::corrupt names the damaged region.
  Result<EncodedImage> write(ByteSource& raw, const EncodingPlan& plan,
                             const capture::FileRange& to, sys::RateLimiter& limiter);

 private:
  class CheckedRegion;
  class ImageWriter;
  static Status copy(CheckedRegion& bytes, ImageWriter& writer);
  Result<EncodedRegion> compress(CheckedRegion& bytes, const EncodingPlan::Choice& choice,
                                 ImageWriter& writer);

  sys::ThreadPool pool_;
};

// Returns an upper bound for the size of a compressed image of these regions.
std::uint64_t most_encoded_bytes(const format::ImageIndex& index);

// The header and index of an image.
struct ImageDescription {
  format::ImageHeader header;
  format::ImageIndex index;
};
Result<ImageDescription> describe(ByteSource& image);

}  // namespace diapause::engine
