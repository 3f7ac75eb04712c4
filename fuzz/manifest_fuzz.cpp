// The input is a manifest. It is decoded as it is, and again with its length and digest made sound.
#include "format/manifest.hpp"
#include "seal.hpp"

using namespace diapause;

namespace {

constexpr std::size_t kVersionOffset = 8;
constexpr std::size_t kLengthOffset = 16;

void check_references(const format::Manifest& manifest) {
  for (const format::RankRecord& rank : manifest.ranks) {
    fuzz::must_hold(rank.node < manifest.node_names.size(), "a rank is on a node");
    fuzz::must_hold(rank.shared_offset + rank.image.file_bytes <= INT64_MAX,
                    "an image ends where a file can end");
    fuzz::must_hold(rank.shared_offset + rank.encoded.file_bytes <= INT64_MAX,
                    "so does a compressed one");
    fuzz::must_hold(
        rank.shared_file == format::kOwnFile || rank.shared_file < manifest.ranks.size(),
        "there are no more shared files than ranks");
  }
  for (const format::Group& group : manifest.groups) {
    fuzz::must_hold(
        group.members.size() == group.nodes.size() && group.members.size() == group.parities.size(),
        "a member has a node and a parity");
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      const std::uint32_t rank = group.members[i];
      fuzz::must_hold(rank == format::kNoRank || manifest.ranks.at(rank).node == group.nodes[i],
                      "a member is on its rank's node");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteVector bytes = fuzz::copy_of(data, size);
  (void)format::decode_manifest(bytes);

  fuzz::seal(bytes, kLengthOffset);
  const auto manifest = format::decode_manifest(bytes);
  if (!manifest) {
    fuzz::must_hold(!manifest.error().message.empty(), "a refusal says why");
    return 0;
  }
  const bool rewritten = bytes[kVersionOffset] > std::byte{1};
  fuzz::must_hold(!rewritten || format::encode_manifest(*manifest) == bytes,
                  "a manifest has one encoding");
  const auto again = format::decode_manifest(format::encode_manifest(*manifest));
  fuzz::must_hold(again && *again == *manifest, "decode(encode(x)) == x");
  check_references(*manifest);
  return 0;
}
