// The input is the identity of a job. It is decoded as it is, and again with its length and digest
// made sound.
#include "format/identity.hpp"
#include "seal.hpp"

using namespace diapause;

namespace {

constexpr std::size_t kLengthOffset = 12;

void seal(ByteVector& bytes) {
  if (bytes.size() < kLengthOffset + 4 + fuzz::kDigestBytes) return;
  for (std::size_t i = 0; i < 4; ++i)
    bytes[kLengthOffset + i] = static_cast<std::byte>(bytes.size() >> (8 * i));
  fuzz::seal_digest(bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteVector bytes = fuzz::copy_of(data, size);
  (void)format::decode_identity(bytes);

  seal(bytes);
  const auto identity = format::decode_identity(bytes);
  if (!identity) {
    fuzz::must_hold(!identity.error().message.empty(), "a refusal says why");
    return 0;
  }
  fuzz::must_hold(format::encode_identity(*identity) == bytes, "an identity has one encoding");
  fuzz::must_hold(identity->key.find('/') == std::string::npos,
                  "a key names an entry of a directory");
  return 0;
}
