// The manifest: a version exists when one does. Each node has one of its own (two copies), so has the global tier; all
// say the same of a version but for the levels reached when they were written. docs/formats/manifest.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "format/ids.hpp"

namespace diapause::format {

inline constexpr std::uint32_t kManifestFormatVersion = 3;  // the newest that is read, and written where it is needed
inline constexpr std::uint32_t kNoRank = 0xffffffff;
inline constexpr std::uint32_t kOwnFile = 0xffffffff;

// What the manifest knows of one file.
struct ImageRecord {
  std::uint64_t file_bytes = 0;
  Digest128 index_digest;
  bool operator==(const ImageRecord&) const = default;
};

struct RankRecord {
  ImageRecord image;
  std::uint64_t protected_bytes = 0;
  std::uint32_t node = 0;           // index into Manifest::node_names when written
  std::uint32_t partner = kNoRank;  // level 2: the rank whose node holds the copy
  // Level 4: which of the files that ranks share, and where in it. Images on nodes have files of their own.
  std::uint32_t shared_file = kOwnFile;
  std::uint64_t shared_offset = 0;
  // Level 4: the image there, if it is compressed; else `image` lies there too, and file_bytes is 0.
  ImageRecord encoded = {};
  double greatest_error = 0;  // of any value in `encoded`, measured; 0: it is exact
  bool is_encoded() const { return encoded.file_bytes != 0; }
  const ImageRecord& in_global() const { return is_encoded() ? encoded : image; }
  bool operator==(const RankRecord&) const = default;
};

// Level 3: members on different nodes; a codeword takes one chunk from each (redundancy/layout.hpp).
struct Group {
  std::vector<std::uint32_t> members;  // ranks; kNoRank for a node with fewer ranks (its data are zeros)
  std::vector<std::uint32_t> nodes;    // node of each member; all different
  std::uint32_t parity = 0;            // m
  std::uint64_t chunk_bytes = 0;
  std::vector<ImageRecord> parities;  // one per member
  bool operator==(const Group&) const = default;
};

struct Manifest {
  std::string job;
  VersionId version;
  std::uint32_t levels = 0;  // bit (1 << level) for each level reached
  std::uint64_t created_unix_ns = 0;
  std::vector<std::string> node_names;
  std::vector<RankRecord> ranks;
  std::vector<Group> groups;
  std::uint32_t lossy_restarts = 0;  // how often the run behind this version went on from values that were not exact
  std::uint32_t lossy_in_a_row = 0;  // versions in the global tier, this one the last, whose values are not exact
  bool operator==(const Manifest&) const = default;

  bool has_level(int level) const { return (levels >> level & 1u) != 0; }
  int deepest_level() const;              // 0 if none
  std::uint64_t protected_bytes() const;  // of all ranks
  double greatest_error() const;          // of all ranks, in the global tier
};

// In every group, members, nodes and parities have the same size.
// In the oldest format version from 2 on that can say it.
ByteVector encode_manifest(const Manifest& manifest);
// Reads all format versions up to the present one. Hostile input: as in image.hpp. Checks that ranks, nodes and groups
// refer to each other soundly.
Result<Manifest> decode_manifest(ByteView data);

}  // namespace diapause::format
