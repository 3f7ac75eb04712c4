// Brings an image to a rank that lacks it: from another node that has it, or computed from its
// group. Ranks read files for each other.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "engine/job/context.hpp"
#include "engine/job/inventory.hpp"
#include "store/image_reader.hpp"
#include "sys/private_memory.hpp"

namespace diapause::engine {

// A file of a version, in a tier of a node or in the global tier.
struct FileRef {
  bool is_parity = false;
  bool is_global = false;
  std::uint32_t node = 0;
  std::uint32_t group = 0;  // for parity only
  std::uint32_t index = 0;  // the rank, or the member of the group
  auto operator<=>(const FileRef&) const = default;

  static FileRef image(std::uint32_t rank, std::uint32_t node) {
    return {false, false, node, 0, rank};
  }
  static FileRef global_image(std::uint32_t rank) { return {false, true, 0, 0, rank}; }
  static FileRef parity(std::uint32_t group, std::uint32_t member, std::uint32_t node) {
    return {true, false, node, group, member};
  }
};

struct ServedFile {
  FileRef file;
  std::uint32_t server;  // the rank that reads it
  auto operator<=>(const ServedFile&) const = default;
};

// The files of one version that this rank has open.
class FileCache {
 public:
  FileCache(const Context& context, const StoredVersion& version)
      : context_(&context), version_(&version) {}
  // Opens and checks header and index; valid until clear() or take().
  Result<store::ImageReader*> open(const FileRef& file);
  Result<store::ImageReader> take(const FileRef& file);
  // Returns the scratch.size() bytes at `offset` of an image, or of the parity in a parity file.
  // What lies in memory is seen where it is, until clear(); other bytes are read to `scratch`.
  // Bytes behind the end are zeros.
  Result<ByteView> view(const FileRef& file, std::uint64_t offset, MutableBytes scratch);
  // Returns whether view() needs no `scratch`, because the file lies in memory.
  bool is_in_place(const FileRef& file);
  void clear() {
    readers_.clear();
    in_place_.clear();
  }

 private:
  struct Located {
    store::Tier* tier;
    store::LocatedImage image;
  };
  Result<Located> locate(const FileRef& file) const;
  // Fails if the file does not lie in memory. The process ends if somebody cuts the file and the
  // bytes are used afterwards.
  Result<sys::PrivateMemory> map_from_memory(const FileRef& file) const;
  const Result<sys::PrivateMemory>& in_place(const FileRef& file);

  const Context* context_;
  const StoredVersion* version_;
  std::map<FileRef, store::ImageReader> readers_;
  std::map<FileRef, Result<sys::PrivateMemory>> in_place_;
};

// Says where the bytes of an image come from that its rank lacks: from k chunks of others for every
// row in which the rank holds data, or, if another node has the image, from there, as the only
// chunk of the only row.
struct Rebuild {
  struct Chunk {
    std::uint32_t position;  // place in the codeword
    // Empty for a member without a rank, whose chunk is all zeros.
    std::optional<ServedFile> served;
    // The offset is in the served file's data: in an image's bytes, or in the parity region.
    std::uint64_t offset;
  };
  struct Row {
    std::uint32_t target_position;
    std::uint64_t target_offset;  // place in the target's image
    std::vector<Chunk> chunks;
  };
  std::uint32_t target = 0;  // the rank that lacks the image
  std::uint32_t k = 1, m = 0;
  std::uint64_t row_bytes = 0;  // the last row may reach behind the image's end
  std::vector<Row> rows;

  bool is_copy() const { return m == 0; }
  std::vector<ServedFile> files() const;
};

// The version's plan must say that this rank can be rebuilt.
Rebuild plan_rebuild(const Topology& topology, const StoredVersion& version, std::uint32_t rank);
// `node` must have the image of this rank.
Rebuild plan_copy(const Topology& topology, const StoredVersion& version, std::uint32_t rank,
                  std::uint32_t node);

// A part of an image.
struct ImageRange {
  std::uint64_t begin = 0, end = 0;
};

// Takes bytes of the image from `offset` on. They exist only during the call, which may be made in
// another thread, in one at a time.
using TakeBytes = std::function<void(std::uint64_t offset, ByteView bytes)>;

// Gives the target this part of its image, from front to back. All processes that act for a rank
// which reads or receives something call this with the same rebuild and range; others return at
// once. `take` is called no more when this returns. A server that cannot read sends zeros and lets
// the target's check find out.
Status execute_rebuild(const Context& context, const Rebuild& rebuild, FileCache& files,
                       const ImageRange& range, const TakeBytes& take);

}  // namespace diapause::engine
