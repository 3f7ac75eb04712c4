// Where the images come from that go to the global tier: a file in the node's tier, memory of the program, or whatever
// another front end makes images of. The step of level 4 reads and writes through these and asks nobody back.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/byte_source.hpp"
#include "capture/capture.hpp"
#include "format/image.hpp"
#include "format/manifest.hpp"
#include "store/slot.hpp"

namespace diapause::engine {

// The facts that a manifest records about one rank's image.
struct ImageFacts {
  std::uint32_t rank = 0;
  std::uint64_t protected_bytes = 0;
  format::ImageRecord image;
};

// The place where an image goes in the global tier.
struct GlobalTarget {
  capture::FileRange range;
  std::uint32_t file = 0;  // its number among the version's files
};

// The facts that a manifest records about one rank's image in the global tier.
struct GlobalFacts {
  ImageFacts image;             // as it is, or would be, on a node
  format::ImageRecord encoded;  // if it was compressed
  double greatest_error = 0;    // if it was compressed
  double encode_s = 0;          // of the time that it took its writer: to compress it, and to find out how

  const format::ImageRecord& stored() const { return encoded.file_bytes != 0 ? encoded : image.image; }
};

// One rank's image on its way to the global tier. It must outlive the step that writes it.
class ImageSource {
 public:
  virtual ~ImageSource() = default;

  virtual std::uint32_t rank() const = 0;
  // The size of the whole image. A source that compresses may write fewer bytes.
  virtual std::uint64_t bytes() const = 0;
  // Writes all of it and does not sync. Called once on every rank, or on none.
  virtual Result<GlobalFacts> write(const GlobalTarget& to) = 0;

  // An image that lies in a slot of the global tier already: the slot becomes its file, unless ranks share files. Null
  // for all others.
  virtual store::Slot* slot() { return nullptr; }
  // The facts about an image that has such a slot.
  virtual ImageFacts facts() const { return {}; }
};

// An image as it is, which may be compressed on its way.
class RawImageSource : public ImageSource {
 public:
  // Its regions, laid out; null where it can only be written as it is.
  virtual const format::ImageIndex* index() const { return nullptr; }
  // The `scratch.size()` bytes of a region from an offset on, in `scratch` or where they lie.
  virtual Result<ByteView> read(std::size_t region, std::uint64_t offset, MutableBytes scratch) = 0;
  struct Whole {
    ImageFacts facts;
    ByteSource* bytes = nullptr;  // valid as long as the source
  };
  // The whole image with its checksums. Called at most once, and only if there is an index.
  virtual Result<Whole> open() = 0;
};

// The images that go to the global tier.
struct OutgoingImage {
  ImageSource* source = nullptr;
  double plan_s = 0;  // it took to find out how to compress it
};

struct Outgoing {
  std::vector<OutgoingImage> images;                // of this process
  bool shrinks = false;                             // one may become smaller than it says
  std::vector<std::unique_ptr<ImageSource>> owned;  // sources that were made for this step
};

}  // namespace diapause::engine
