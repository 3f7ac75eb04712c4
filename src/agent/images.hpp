// How a dump of processes and an image of regions become one another.
#pragma once

#include <vector>

#include "capture/block_source.hpp"
#include "format/image.hpp"
#include "process/dump.hpp"
#include "process/openings.hpp"
#include "store/image_reader.hpp"

namespace diapause::agent {

// The region that is not memory.
inline constexpr const char* kProcessesRegion = "processes";

// Reads the memory of processes that stand still, or of their copies. `dump` must outlive it, and stay as it is.
class DumpSource : public capture::BlockSource {
 public:
  explicit DumpSource(const process::Dump& dump);

  // Regions: "processes", then "<process>/<address>" or "shared/<number>/<offset>" with hexadecimal addresses.
  format::ImageIndex index() const;
  Result<std::uint64_t> copy(std::size_t region, std::uint64_t offset, MutableBytes to) override;

 private:
  const process::Dump& dump_;
  ByteVector processes_;
};

struct StoredJob {
  process::Job job;
  std::vector<process::StoredContents> contents;
};
// Believes nothing of what the image says. Code::mismatch for an image that holds no processes.
Result<StoredJob> read_job(store::ImageReader& image);
// Hands on the contents of one region, block by block, each checked.
Status read_contents(store::ImageReader& image, const process::StoredContents& contents,
                     const process::TakePiece& take);

}  // namespace diapause::agent
