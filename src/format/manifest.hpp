// The manifest: a version exists if it has one. Each node has its own manifest in two copies, and
// the global tier has one. They all describe the version equally, except for the levels that had
// been reached when they were written. docs/formats/manifest.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "format/ids.hpp"

namespace diapause::format {

// The newest format version that is read; it is written only where it is needed.
inline constexpr std::uint32_t kManifestFormatVersion = 3;
inline constexpr std::uint32_t kNoRank = 0xffffffff;
inline constexpr std::uint32_t kOwnFile = 0xffffffff;

// The manifest's record of one file.
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
  // Level 4: the file shared by several ranks that holds the image, and the image's offset in it.
  // Images on nodes have files of their own.
  std::uint32_t shared_file = kOwnFile;
  std::uint64_t shared_offset = 0;
  // Level 4: the image in the global tier if it is compressed. Otherwise file_bytes is 0, and
  // `image` describes the global tier too.
  ImageRecord encoded = {};
  double greatest_error = 0;  // measured over all values in `encoded`; 0 if all are exact
  bool is_encoded() const { return encoded.file_bytes != 0; }
  const ImageRecord& in_global() const { return is_encoded() ? encoded : image; }
  bool operator==(const RankRecord&) const = default;
};

// Level 3: the members are on different nodes, and a codeword takes one chunk from each
// (redundancy/layout.hpp).
struct Group {
  // Ranks; kNoRank for a node with fewer ranks (its data are zeros).
  std::vector<std::uint32_t> members;
  std::vector<std::uint32_t> nodes;  // the node of each member; all are different
  std::uint32_t parity = 0;          // m
  std::uint64_t chunk_bytes = 0;
  std::vector<ImageRecord> parities;  // one for each member
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
  // The number of times that the run which made this version had restarted from inexact values.
  std::uint32_t lossy_restarts = 0;
  // Number of consecutive versions in the global tier, up to this one, whose values are not exact.
  std::uint32_t lossy_in_a_row = 0;
  bool operator==(const Manifest&) const = default;

  bool has_level(int level) const { return (levels >> level & 1u) != 0; }
  int deepest_level() const;              // 0 if there is none
  std::uint64_t protected_bytes() const;  // the sum over all ranks
  double greatest_error() const;          // the greatest error on any rank, in the global tier
};

// Encodes the manifest in the oldest format version, from 2 on, that can express it. In every
// group, members, nodes and parities must have the same size.
ByteVector encode_manifest(const Manifest& manifest);
// Reads all format versions up to the present one. The input is hostile, as in image.hpp. Checks
// that ranks, nodes and groups refer to each other soundly.
Result<Manifest> decode_manifest(ByteView data);

}  // namespace diapause::format
