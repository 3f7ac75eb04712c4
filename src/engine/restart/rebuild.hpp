// Rebuilding a lost image from its group, and the files that ranks read for each other.
#pragma once

#include <compare>
#include <map>
#include <set>
#include <vector>

#include "engine/job/context.hpp"
#include "engine/job/inventory.hpp"
#include "store/image_reader.hpp"

namespace diapause::engine {

inline constexpr std::uint64_t kRebuildPieceBytes = kMiB;

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
  void clear() { readers_.clear(); }

 private:
  const Context* context_;
  const StoredVersion* version_;
  std::map<FileRef, store::ImageReader> readers_;
};

// Says how one lost image is computed: from k chunks of others for every row in which the target
// holds data.
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
    std::vector<Chunk> chunks;    // k of them
  };
  std::uint32_t target;  // the rank whose image is rebuilt
  std::uint32_t group;
  std::vector<Row> rows;

  std::vector<ServedFile> files() const;
};

// The version's plan must say that this rank can be rebuilt.
Rebuild plan_rebuild(const Topology& topology, const StoredVersion& version, std::uint32_t rank);

// The room that the target needs: whole chunks, of which the last may reach behind the image's end.
std::uint64_t room_for(const format::Manifest& manifest, const Rebuild& rebuild);

// All ranks that read or receive something call this with the same rebuild; the target gets the
// image's bytes in `room`, unless that is empty: then the others' messages are taken and thrown
// away. A server that cannot read sends zeros and lets the target's check find out. Ranks not
// involved return at once.
Status execute_rebuild(const Context& context, const format::Manifest& manifest,
                       const Rebuild& rebuild, FileCache& files, MutableBytes room);

}  // namespace diapause::engine
