// Input: the first bytes of a compressed block. The header is decoded as it is, and again with a
// sound checksum.
#include "codec/block.hpp"
#include "format/checksum.hpp"
#include "fuzz.hpp"

using namespace diapause;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteVector bytes = fuzz::copy_of(data, size);
  (void)codec::decode_block_header(bytes);

  bytes.resize(codec::kBlockHeaderBytes);
  fuzz::put_u64(bytes, bytes.size() - 8,
                format::checksum64(ByteView(bytes).first(bytes.size() - 8)));
  const auto header = codec::decode_block_header(bytes);
  if (!header) {
    fuzz::must_hold(!header.error().message.empty(), "a refusal says why");
    return 0;
  }
  fuzz::must_hold(codec::encode_block_header(*header) == bytes, "a header has one encoding");
  fuzz::must_hold(header->shape.bytes() <= codec::kMaxBlockBytes, "a block is not too large");
  fuzz::must_hold(header->payload_bytes <= header->shape.bytes(),
                  "a payload is not larger than its data");
  return 0;
}
