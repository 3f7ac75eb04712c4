// Input: the starts of a job. They are decoded as they are, and again with their length and digest
// made sound.
#include "format/starts.hpp"
#include "seal.hpp"

using namespace diapause;

namespace {

constexpr std::size_t kLengthOffset = 16;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteVector bytes = fuzz::copy_of(data, size);
  (void)format::decode_starts(bytes);

  fuzz::seal(bytes, kLengthOffset);
  const auto starts = format::decode_starts(bytes);
  if (!starts) {
    fuzz::must_hold(!starts.error().message.empty(), "a refusal says why");
    return 0;
  }
  fuzz::must_hold(format::encode_starts(*starts) == bytes, "starts have one encoding");
  for (const format::Start& start : starts->list) {
    fuzz::must_hold(starts->root_of(start.incarnation) <= start.incarnation,
                    "a start goes on from earlier ones");
  }
  return 0;
}
