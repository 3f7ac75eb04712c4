// The sources of the images that go to the global tier: a file in the node's tier, memory of the
// program, or any other data of a front end. The step of level 4 reads and writes through these
// sources and needs no callbacks.
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
  ImageFacts image;             // the facts of the image as it is on a node, or would be
  format::ImageRecord encoded;  // if it was compressed
  double greatest_error = 0;    // if it was compressed
  // Seconds that the writer spent on compressing it and on choosing the method.
  double encode_s = 0;

  const format::ImageRecord& stored() const {
    return encoded.file_bytes != 0 ? encoded : image.image;
  }
};

// One rank's image on its way to the global tier. It must outlive the step that writes it.
class ImageSource {
 public:
  virtual ~ImageSource() = default;

  virtual std::uint32_t rank() const = 0;
  // Returns the size of the whole image. A source that compresses may write fewer bytes.
  virtual std::uint64_t bytes() const = 0;
  // Writes the whole image and does not sync. It is called once on every rank, or on none.
  virtual Result<GlobalFacts> write(const GlobalTarget& to) = 0;

  // Returns the slot of an image that already lies in the global tier; the slot becomes its file,
  // unless ranks share files. Returns null for all others.
  virtual store::Slot* slot() { return nullptr; }
  // Returns the facts about an image that has such a slot.
  virtual ImageFacts facts() const { return {}; }
};

// An uncompressed image, which may be compressed on its way.
class RawImageSource : public ImageSource {
 public:
  // Returns its regions, laid out; null if the image can only be written as it is.
  virtual const format::ImageIndex* index() const { return nullptr; }
  // Returns the `scratch.size()` bytes of a region at an offset, in `scratch` or in place.
  virtual Result<ByteView> read(std::size_t region, std::uint64_t offset, MutableBytes scratch) = 0;
  struct Whole {
    ImageFacts facts;
    ByteSource* bytes = nullptr;  // lives as long as the source
  };
  // Returns the whole image with its checksums. Called at most once, and only if there is an index.
  virtual Result<Whole> open() = 0;
};

// The images that go to the global tier.
struct OutgoingImage {
  ImageSource* source = nullptr;
  double plan_s = 0;  // seconds that the choice of its compression took
};

struct Outgoing {
  std::vector<OutgoingImage> images;                // the images of this process
  bool shrinks = false;                             // an image may become smaller than its bytes()
  std::vector<std::unique_ptr<ImageSource>> owned;  // sources that were made for this step
};

}  // namespace diapause::engine
