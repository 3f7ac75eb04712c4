// The input is the beginning of a header page. It is decoded as it is, and again as a page with a
// sound checksum.
#include "format/checksum.hpp"
#include "format/image.hpp"
#include "fuzz.hpp"

using namespace diapause;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteVector page = fuzz::copy_of(data, size);
  (void)format::decode_header(page);

  page.resize(format::kHeaderBytes);
  fuzz::put_u64(page, page.size() - 8, format::checksum64(ByteView(page).first(page.size() - 8)));
  const auto header = format::decode_header(page);
  if (!header) {
    fuzz::must_hold(!header.error().message.empty(), "a refusal says why");
    return 0;
  }
  fuzz::must_hold(format::encode_header(*header) == page, "a header has one encoding");
  const auto again = format::decode_header(format::encode_header(*header));
  fuzz::must_hold(again && *again == *header, "decode(encode(x)) == x");
  fuzz::must_hold(header->index_offset + header->index_bytes <= header->file_bytes,
                  "the index lies in the file");
  return 0;
}
