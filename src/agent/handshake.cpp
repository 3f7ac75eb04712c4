#include "agent/handshake.hpp"

#include <algorithm>
#include <cstring>

#include "sys/process.hpp"

namespace diapause::agent {
namespace {

// These are sent by the connecting end, then by the accepting end, then by the connecting end
// again.
struct First {
  Digest random{};
  Hello hello;
};
struct Second {
  Digest random{};
  Digest proof{};
};

Digest proof_of(const Secret& secret, std::string_view end, const First& first,
                const Digest& random) {
  ByteVector message;
  for (const ByteView part : {as_byte_view(end), as_byte_view(first), as_byte_view(random)}) {
    message.insert(message.end(), part.begin(), part.end());
  }
  return hmac_sha256(secret.bytes, message);
}

Error stranger() {
  return {Code::denied, "the other end of a connection does not know the secret of the job"};
}

constexpr std::string_view kConnecting = "connecting", kAccepting = "accepting";
constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

Result<Secret> Secret::draw() {
  Secret made;
  DIAPAUSE_TRY(sys::random_bytes(made.bytes));
  return made;
}

Secret Secret::derive(const std::string& purpose) const {
  return Secret{hmac_sha256(bytes, as_byte_view(std::string_view(purpose)))};
}

std::string Secret::text() const {
  std::string text;
  for (const std::byte one : bytes) {
    text += kDigits[std::to_integer<std::size_t>(one) >> 4];
    text += kDigits[std::to_integer<std::size_t>(one) & 15];
  }
  return text;
}

Result<Secret> Secret::parse(const std::string& text) {
  Secret made;
  if (text.size() != 2 * made.bytes.size() ||
      text.find_first_not_of(kDigits) != std::string::npos) {
    return fail(Code::corrupt, "the secret of a job must be 64 hexadecimal digits");
  }
  for (std::size_t i = 0; i < made.bytes.size(); ++i) {
    made.bytes[i] =
        static_cast<std::byte>(kDigits.find(text[2 * i]) << 4 | kDigits.find(text[2 * i + 1]));
  }
  return made;
}

Status greet(sys::Stream& stream, const Secret& secret, const Hello& hello, double most_s) {
  First first{{}, hello};
  DIAPAUSE_TRY(sys::random_bytes(first.random));
  DIAPAUSE_TRY(stream.send_all(as_byte_view(first), most_s));
  Second second;
  DIAPAUSE_TRY(stream.receive_all(std::as_writable_bytes(std::span(&second, 1)), most_s));
  if (!is_equal_secret(second.proof, proof_of(secret, kAccepting, first, second.random)))
    return fail(stranger());
  DIAPAUSE_TRY(stream.send_all(proof_of(secret, kConnecting, first, second.random), most_s));
  std::byte agreed{0};
  return stream.receive_all({&agreed, 1}, most_s);
}

Result<Hello> welcome(sys::Stream& stream, const Secret& secret, double most_s) {
  First first;
  DIAPAUSE_TRY(stream.receive_all(std::as_writable_bytes(std::span(&first, 1)), most_s));
  Second second;
  DIAPAUSE_TRY(sys::random_bytes(second.random));
  second.proof = proof_of(secret, kAccepting, first, second.random);
  DIAPAUSE_TRY(stream.send_all(as_byte_view(second), most_s));
  Digest proof{};
  DIAPAUSE_TRY(stream.receive_all(proof, most_s));
  if (!is_equal_secret(proof, proof_of(secret, kConnecting, first, second.random)))
    return fail(stranger());
  const std::byte agreed{1};
  DIAPAUSE_TRY(stream.send_all({&agreed, 1}, most_s));
  return first.hello;
}

}  // namespace diapause::agent
