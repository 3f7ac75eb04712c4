#include "format/manifest.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string_view>

#include "format/checksum.hpp"
#include "format/image.hpp"
#include "format/wire.hpp"

namespace diapause::format {
namespace {

constexpr std::string_view kMagic = "DIAPMAN1";
constexpr std::uint64_t kDigestBytes = 16;
constexpr std::uint64_t kFixedBytes = 76;  // up to the job name
constexpr std::uint64_t kNodeFixedBytes = 4;
constexpr std::array<std::uint64_t, 4> kRankBytes = {0, 40, 52, 84};  // for each format version
constexpr std::uint64_t kLineageBytes = 8;                            // from format version 3 on
constexpr std::uint64_t kGroupFixedBytes = 16;
constexpr std::uint64_t kMemberBytes = 32;
constexpr std::uint64_t kMaxNodeNameBytes = 255;
constexpr std::uint64_t kMaxJobBytes = 64;
constexpr std::size_t kMaxGroupMembers = 255;  // Reed-Solomon over bytes has no more positions
constexpr std::uint32_t kLevelBits = 0b11110;

auto corrupt(const std::string& what) { return fail(Code::corrupt, "manifest: " + what); }

bool is_sound_job(std::string_view job) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !job.empty() && job.size() <= kMaxJobBytes && job != "." && job != ".." &&
         std::all_of(job.begin(), job.end(), allowed);
}

// Node names become names of directories.
bool is_sound_node_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNodeNameBytes && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

// An image has at least a header. This finds a record that was left empty by mistake.
bool is_sound_size(const ImageRecord& record) {
  return record.file_bytes >= kHeaderBytes && record.file_bytes <= kMaxFileBytes;
}

void encode_record(const ImageRecord& record, Writer& writer) {
  writer.u64(record.file_bytes);
  writer.digest(record.index_digest);
}

ImageRecord decode_record(Reader& reader) {
  const std::uint64_t file_bytes = reader.u64();
  return {file_bytes, reader.digest()};
}

// Returns the format version. The magic, the length and the digest lie at the same places in every
// format version, so that a sound file of another version can be told from a damaged one.
Result<std::uint32_t> check_frame(ByteView data) {
  if (data.size() < kFixedBytes + kDigestBytes) {
    return corrupt(fmt::format("{} bytes are too few", data.size()));
  }
  Reader reader(data);
  if (reader.text(kMagic.size()) != kMagic) return corrupt("this is not a Diapause manifest");
  const std::uint32_t version = reader.u32();
  reader.u32();
  const std::uint64_t length = reader.u64();
  if (length != data.size())
    return corrupt(fmt::format("{} bytes where it says {}", data.size(), length));
  const ByteView content = data.first(data.size() - kDigestBytes);
  if (Reader(data.last(kDigestBytes)).digest() != digest128(content))
    return corrupt("its bytes do not give its digest");
  if (version == 0 || version > kManifestFormatVersion) {
    return fail(Code::mismatch, fmt::format("manifest: written in format version {}, this library "
                                            "reads versions 1 to {}; restart with "
                                            "the Diapause release that wrote it",
                                            version, kManifestFormatVersion));
  }
  return version;
}

Status decode_nodes(Reader& reader, std::uint32_t count, Manifest& manifest) {
  if (!reader.has_items(count, kNodeFixedBytes))
    return corrupt(fmt::format("{} nodes do not fit in it", count));
  manifest.node_names.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t length = reader.u32();
    if (length > kMaxNodeNameBytes)
      return corrupt(fmt::format("node {}: name of {} bytes", i, length));
    manifest.node_names.push_back(reader.text(length));
    // A name that is cut short reads as empty.
    if (!is_sound_node_name(manifest.node_names.back())) {
      return corrupt(fmt::format("node {}: its name is not one plain file name", i));
    }
  }
  return {};
}

Status check_shared(const RankRecord& rank, std::uint32_t number, std::uint32_t count) {
  if (rank.shared_file == kOwnFile && rank.shared_offset == 0) return {};
  if (rank.shared_file >= count) {
    return corrupt(
        fmt::format("rank {}: shared file {} of {} ranks", number, rank.shared_file, count));
  }
  if (rank.shared_offset % kPageBytes != 0 ||
      rank.shared_offset > kMaxFileBytes - rank.in_global().file_bytes) {
    return corrupt(
        fmt::format("rank {}: image at byte {} of a shared file", number, rank.shared_offset));
  }
  return {};
}

Status check_encoded(const RankRecord& rank, std::uint32_t number) {
  const double error = rank.greatest_error;
  if (!std::isfinite(error) || std::signbit(error) || (error != 0 && !rank.is_encoded())) {
    return corrupt(fmt::format("rank {}: greatest error {}", number, error));
  }
  if (!rank.is_encoded() && rank.encoded != ImageRecord{}) {
    return corrupt(fmt::format("rank {}: digest of a compressed image that has no bytes", number));
  }
  if (!rank.is_encoded() || is_sound_size(rank.encoded)) return {};
  return corrupt(
      fmt::format("rank {}: compressed image of {} bytes", number, rank.encoded.file_bytes));
}

Status decode_ranks(Reader& reader, std::uint32_t count, std::uint32_t version,
                    Manifest& manifest) {
  if (count == 0 || !reader.has_items(count, kRankBytes[version])) {
    return corrupt(fmt::format("{} ranks in {} bytes", count, reader.remaining()));
  }
  manifest.ranks.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    RankRecord rank;
    rank.image = decode_record(reader);
    rank.protected_bytes = reader.u64();
    rank.node = reader.u32();
    rank.partner = reader.u32();
    if (version > 1) {
      rank.shared_file = reader.u32();
      rank.shared_offset = reader.u64();
    }
    if (version > 2) {
      rank.encoded = decode_record(reader);
      rank.greatest_error = std::bit_cast<double>(reader.u64());
      DIAPAUSE_TRY(check_encoded(rank, i));
    }
    if (!is_sound_size(rank.image)) {
      return corrupt(fmt::format("rank {}: image of {} bytes", i, rank.image.file_bytes));
    }
    if (rank.node >= manifest.node_names.size()) {
      return corrupt(
          fmt::format("rank {}: node {} of {}", i, rank.node, manifest.node_names.size()));
    }
    if (rank.partner != kNoRank && rank.partner >= count) {
      return corrupt(fmt::format("rank {}: partner {} of {} ranks", i, rank.partner, count));
    }
    DIAPAUSE_TRY(check_shared(rank, i, count));
    manifest.ranks.push_back(rank);
  }
  return {};
}

Result<Group> decode_group(Reader& reader, std::uint32_t number) {
  const std::uint32_t members = reader.u32();
  Group group;
  group.parity = reader.u32();
  group.chunk_bytes = reader.u64();
  if (!reader.has_items(members, kMemberBytes)) {
    return corrupt(fmt::format("group {}: {} members do not fit in it", number, members));
  }
  if (members > kMaxGroupMembers || group.parity == 0 || group.parity >= members) {
    return corrupt(
        fmt::format("group {}: {} parities among {} members", number, group.parity, members));
  }
  if (group.chunk_bytes == 0 || group.chunk_bytes % kPageBytes != 0 ||
      group.chunk_bytes > kMaxFileBytes / members) {
    return corrupt(fmt::format("group {}: chunks of {} bytes", number, group.chunk_bytes));
  }
  group.members.reserve(members);
  group.nodes.reserve(members);
  group.parities.reserve(members);
  for (std::uint32_t i = 0; i < members; ++i) {
    group.members.push_back(reader.u32());
    group.nodes.push_back(reader.u32());
    group.parities.push_back(decode_record(reader));
    if (!is_sound_size(group.parities.back())) {
      return corrupt(
          fmt::format("group {}: parity of {} bytes", number, group.parities.back().file_bytes));
    }
  }
  return group;
}

// Follows every reference of every group. A rank may be in one group only, and a node only once in
// a group.
class GroupCheck {
 public:
  explicit GroupCheck(const Manifest& manifest)
      : manifest_(manifest),
        grouped_(manifest.ranks.size()),
        last_group_(manifest.node_names.size()) {}

  Status check(const Group& group, std::uint32_t number) {
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      const std::uint32_t node = group.nodes[i];
      if (node >= last_group_.size() || last_group_[node] == number + 1ULL) {
        return corrupt(fmt::format("group {}: node {} is missing or there twice", number, node));
      }
      last_group_[node] = number + 1ULL;
      DIAPAUSE_TRY(check_member(group, i, number));
    }
    return {};
  }

 private:
  Status check_member(const Group& group, std::size_t i, std::uint32_t number) {
    const std::uint32_t rank = group.members[i];
    if (rank == kNoRank) return {};
    if (rank >= grouped_.size() || grouped_[rank]) {
      return corrupt(
          fmt::format("group {}: rank {} is missing or in a group already", number, rank));
    }
    grouped_[rank] = true;
    const RankRecord& record = manifest_.ranks[rank];
    if (record.node != group.nodes[i]) {
      return corrupt(fmt::format("group {}: rank {} is on node {}, not {}", number, rank,
                                 record.node, group.nodes[i]));
    }
    const std::uint64_t covered = group.chunk_bytes * (group.members.size() - group.parity);
    if (record.image.file_bytes > covered) {
      return corrupt(fmt::format("group {}: chunks cover {} of the {} bytes of rank {}", number,
                                 covered, record.image.file_bytes, rank));
    }
    return {};
  }

  const Manifest& manifest_;
  std::vector<bool> grouped_;
  // For each node: one more than the number of the last group it was seen in.
  std::vector<std::uint64_t> last_group_;
};

Status decode_groups(Reader& reader, std::uint32_t count, Manifest& manifest) {
  if (!reader.has_items(count, kGroupFixedBytes))
    return corrupt(fmt::format("{} groups do not fit in it", count));
  manifest.groups.reserve(count);
  GroupCheck check(manifest);
  for (std::uint32_t i = 0; i < count; ++i) {
    DIAPAUSE_TRY_ASSIGN(Group group, decode_group(reader, i));
    DIAPAUSE_TRY(check.check(group, i));
    manifest.groups.push_back(std::move(group));
  }
  return {};
}

std::uint32_t format_version_of(const Manifest& manifest) {
  const bool is_plain = manifest.lossy_restarts == 0 && manifest.lossy_in_a_row == 0 &&
                        std::ranges::none_of(manifest.ranks, &RankRecord::is_encoded);
  return is_plain ? 2 : 3;
}

std::uint64_t encoded_bytes(const Manifest& manifest, std::uint32_t format_version) {
  std::uint64_t bytes = kFixedBytes + manifest.job.size() +
                        manifest.ranks.size() * kRankBytes[format_version] + kDigestBytes;
  if (format_version > 2) bytes += kLineageBytes;
  for (const std::string& name : manifest.node_names) bytes += kNodeFixedBytes + name.size();
  for (const Group& group : manifest.groups)
    bytes += kGroupFixedBytes + group.members.size() * kMemberBytes;
  return bytes;
}

// A group whose parts differ in size is a mistake of the caller. It is encoded so that the decoder
// refuses it.
void encode_group(const Group& group, Writer& writer) {
  writer.u32(static_cast<std::uint32_t>(group.members.size()));
  writer.u32(group.parity);
  writer.u64(group.chunk_bytes);
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    writer.u32(group.members[i]);
    writer.u32(i < group.nodes.size() ? group.nodes[i] : kNoRank);
    encode_record(i < group.parities.size() ? group.parities[i] : ImageRecord{}, writer);
  }
}

}  // namespace

std::uint64_t Manifest::protected_bytes() const {
  std::uint64_t bytes = 0;
  for (const RankRecord& rank : ranks) bytes += rank.protected_bytes;
  return bytes;
}

double Manifest::greatest_error() const {
  double greatest = 0;
  for (const RankRecord& rank : ranks) greatest = std::max(greatest, rank.greatest_error);
  return greatest;
}

int Manifest::deepest_level() const {
  for (int level = 4; level >= 1; --level) {
    if (has_level(level)) return level;
  }
  return 0;
}

ByteVector encode_manifest(const Manifest& manifest) {
  const std::uint32_t format_version = format_version_of(manifest);
  const std::uint64_t total = encoded_bytes(manifest, format_version);
  Writer writer(total);
  writer.text(kMagic);
  writer.u32(format_version);
  writer.u32(manifest.levels);
  writer.u64(total);
  writer.u64(manifest.created_unix_ns);
  writer.u64(manifest.version.number);
  writer.commit(manifest.version.commit);
  writer.u32(manifest.version.incarnation);
  writer.u32(static_cast<std::uint32_t>(manifest.node_names.size()));
  writer.u32(static_cast<std::uint32_t>(manifest.ranks.size()));
  writer.u32(static_cast<std::uint32_t>(manifest.groups.size()));
  writer.u32(static_cast<std::uint32_t>(manifest.job.size()));
  writer.text(manifest.job);
  for (const std::string& name : manifest.node_names) {
    writer.u32(static_cast<std::uint32_t>(name.size()));
    writer.text(name);
  }
  for (const RankRecord& rank : manifest.ranks) {
    encode_record(rank.image, writer);
    writer.u64(rank.protected_bytes);
    writer.u32(rank.node);
    writer.u32(rank.partner);
    writer.u32(rank.shared_file);
    writer.u64(rank.shared_offset);
    if (format_version < 3) continue;
    encode_record(rank.encoded, writer);
    writer.u64(std::bit_cast<std::uint64_t>(rank.greatest_error));
  }
  for (const Group& group : manifest.groups) encode_group(group, writer);
  if (format_version > 2) {
    writer.u32(manifest.lossy_restarts);
    writer.u32(manifest.lossy_in_a_row);
  }
  writer.digest(digest128(writer.written()));
  return writer.take();
}

Result<Manifest> decode_manifest(ByteView data) {
  DIAPAUSE_TRY_ASSIGN(const std::uint32_t format_version, check_frame(data));
  Reader reader(data.first(data.size() - kDigestBytes));
  Manifest manifest;
  reader.take(kMagic.size() + 4);  // includes the format version, which is checked
  manifest.levels = reader.u32();
  reader.u64();  // the length, which is checked
  manifest.created_unix_ns = reader.u64();
  manifest.version.number = reader.u64();
  manifest.version.commit = reader.commit();
  manifest.version.incarnation = reader.u32();
  const std::uint32_t nodes = reader.u32(), ranks = reader.u32(), groups = reader.u32(),
                      job_bytes = reader.u32();
  if ((manifest.levels & ~kLevelBits) != 0)
    return corrupt(fmt::format("unknown levels {:#x}", manifest.levels));
  if (manifest.version.number == UINT64_MAX) return corrupt("version number is not below 2^64-1");
  if (job_bytes > kMaxJobBytes) return corrupt(fmt::format("job name of {} bytes", job_bytes));
  manifest.job = reader.text(job_bytes);
  if (!is_sound_job(manifest.job))
    return corrupt("the job name is not letters, digits, '.', '_' and '-'");
  DIAPAUSE_TRY(decode_nodes(reader, nodes, manifest));
  DIAPAUSE_TRY(decode_ranks(reader, ranks, format_version, manifest));
  DIAPAUSE_TRY(decode_groups(reader, groups, manifest));
  if (format_version > 2) {
    manifest.lossy_restarts = reader.u32();
    manifest.lossy_in_a_row = reader.u32();
  }
  if (!reader.ok()) return corrupt("ends before its last number");
  if (reader.remaining() != 0)
    return corrupt(fmt::format("{} bytes behind its end", reader.remaining()));
  if (format_version > 2 && format_version_of(manifest) < format_version) {
    return corrupt("format version 3 says no more than version 2 does");
  }
  return manifest;
}

}  // namespace diapause::format
