// Input: 8 bytes of index offset, whose two lowest bits tell the format version, then the index.
// The header that goes with it is made here, digest included.
#include "format/checksum.hpp"
#include "format/image.hpp"
#include "format/wire.hpp"
#include "fuzz.hpp"

using namespace diapause;

namespace {

void check_regions(const format::ImageIndex& index, std::uint64_t index_offset) {
  std::uint64_t end = format::kHeaderBytes;
  for (const format::Region& region : index.regions) {
    fuzz::must_hold(region.offset >= end && region.offset <= index_offset, "regions are in order");
    fuzz::must_hold(region.stored_bytes <= index_offset - region.offset,
                    "a region ends before the index");
    fuzz::must_hold(region.block_checksums.size() == region.block_count(),
                    "every block has a checksum");
    std::uint64_t blocks = 0;
    for (const std::uint64_t size : region.encoded.sizes) blocks += size;
    fuzz::must_hold(region.is_raw() || blocks == region.stored_bytes,
                    "compressed blocks fill what is stored");
    fuzz::must_hold(!(region.encoded.greatest_error > region.compression.bound),
                    "no error is above its bound");
    end = region.offset + region.stored_bytes;
  }
}

// An index that was read can be laid out and written again.
void check_lay_out(format::ImageIndex index) {
  const auto offset = format::lay_out(index);
  fuzz::must_hold(offset.has_value(), "a sound index can be laid out");
  fuzz::must_hold(format::encode_index(index).size() == format::encoded_index_bytes(index),
                  "its size is known before");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteVector input = fuzz::copy_of(data, size);
  format::Reader reader(input);
  format::ImageHeader header;
  header.rank_count = 1;
  header.index_offset = reader.u64();
  header.format_version = 1 + static_cast<std::uint32_t>(header.index_offset & 3);
  header.index_offset &= ~std::uint64_t{3};
  header.index_bytes = reader.remaining();
  const ByteView bytes = reader.take(reader.remaining());
  header.index_digest = format::digest128(bytes);

  const auto index = format::decode_index(bytes, header);
  if (!index) {
    fuzz::must_hold(!index.error().message.empty(), "a refusal says why");
    return 0;
  }
  const ByteVector encoded = format::encode_index(*index);
  fuzz::must_hold(std::equal(encoded.begin(), encoded.end(), bytes.begin(), bytes.end()),
                  "an index has one encoding");
  const auto again = format::decode_index(encoded, header);
  fuzz::must_hold(again && *again == *index, "decode(encode(x)) == x");
  check_regions(*index, header.index_offset);
  check_lay_out(*index);
  return 0;
}
