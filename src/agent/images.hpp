// Converts a dump of processes to the regions of an image, and back.
#pragma once

#include <vector>

#include "capture/block_source.hpp"
#include "format/image.hpp"
#include "process/dump.hpp"
#include "process/openings.hpp"
#include "store/image_reader.hpp"

namespace diapause::agent {

// This is the name of the only region that is not memory. It holds the encoded job.
inline constexpr const char* kProcessesRegion = "processes";

// Reads the memory of processes that stand still, or of their copies. `dump` must outlive the
// object and must not change.
class DumpSource : public capture::BlockSource {
 public:
  // `threads` may copy at the same time.
  DumpSource(const process::Dump& dump, unsigned threads);

  // Returns the index of the image. Its regions are "processes", then "<process>/<address>" or
  // "shared/<number>/<offset>" with hexadecimal addresses and offsets.
  format::ImageIndex index() const;
  Result<std::uint64_t> copy(std::size_t region, std::uint64_t offset, MutableBytes to) override;
  unsigned threads() const override { return threads_; }

 private:
  const process::Dump& dump_;
  ByteVector processes_;
  unsigned threads_;
};

struct StoredJob {
  process::Job job;
  std::vector<process::StoredContents> contents;
};
// Checks everything that the image says. Fails with Code::mismatch if it holds no processes or has
// a newer format version, and with Code::corrupt if it is damaged or describes something
// impossible.
Result<StoredJob> read_job(store::ImageReader& image);
// This is an image that contents are read from.
struct StoredImage {
  store::ImageReader& image;
  unsigned threads = 1;  // threads that may read it
  Status sound = {};     // what has turned out to be damaged or cannot be read
};
// Reads and checks contents, and gives them to `take`, block by block.
Status read_contents(StoredImage& stored, const process::ContentsList& contents,
                     const process::TakePiece& take);

}  // namespace diapause::agent
