#include "format/identity.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "format/checksum.hpp"
#include "format/wire.hpp"

namespace diapause::format {
namespace {

constexpr std::string_view kIdentityMagic = "DIAPIDE1";
constexpr std::uint64_t kIdentityDigestBytes = 16;
constexpr std::uint64_t kIdentityFixedBytes = 72;  // without the three texts and the digest
constexpr std::uint64_t kMaxNameBytes = 64;
constexpr std::uint64_t kMaxKeyBytes = kMaxNameBytes + 9;
constexpr std::uint64_t kMaxHomeBytes = 4096;

auto corrupt_identity(const std::string& what) { return fail(Code::corrupt, "identity: " + what); }

bool is_sound_text(std::string_view name, std::uint64_t most_bytes) {
  return !name.empty() && name.size() <= most_bytes && name != "." && name != ".." &&
         name.find('\0') == std::string_view::npos;
}

bool is_sound_component(std::string_view name, std::uint64_t most_bytes) {
  return is_sound_text(name, most_bytes) && name.find('/') == std::string_view::npos;
}

void put_id(Writer& writer, const JobId& id) { writer.append(as_byte_view(id.bytes)); }

JobId get_id(Reader& reader) {
  JobId id;
  const ByteView data = reader.take(id.bytes.size());
  for (std::size_t i = 0; i < data.size(); ++i) id.bytes[i] = static_cast<std::uint8_t>(data[i]);
  return id;
}

void put_counted(Writer& writer, const std::string& text) {
  writer.u32(static_cast<std::uint32_t>(text.size()));
  writer.text(text);
}

std::string get_counted(Reader& reader) {
  const std::uint32_t length = reader.u32();
  return reader.text(length);
}

Status check_identity_frame(ByteView data) {
  if (data.size() < kIdentityFixedBytes + kIdentityDigestBytes) {
    return corrupt_identity(fmt::format("{} bytes are too few", data.size()));
  }
  Reader reader(data);
  if (reader.text(kIdentityMagic.size()) != kIdentityMagic) {
    return corrupt_identity("this is not the identity of a job");
  }
  const std::uint32_t version = reader.u32();
  const std::uint32_t length = reader.u32();
  if (length != data.size())
    return corrupt_identity(fmt::format("{} bytes where it says {}", data.size(), length));
  const ByteView content = data.first(data.size() - kIdentityDigestBytes);
  if (Reader(data.last(kIdentityDigestBytes)).digest() != digest128(content)) {
    return corrupt_identity("its bytes do not give its digest");
  }
  if (version >= 1 && version <= kIdentityFormatVersion) return {};
  return fail(
      Code::mismatch,
      fmt::format(
          "identity: written in format version {}, this library reads versions 1 to {}; use the "
          "Diapause release that wrote it",
          version, kIdentityFormatVersion));
}

}  // namespace

std::string JobId::hex() const {
  std::string digits;
  for (const std::uint8_t byte : bytes) digits += fmt::format("{:02x}", byte);
  return digits;
}

ByteVector encode_identity(const JobIdentity& identity) {
  const std::size_t length = kIdentityFixedBytes + identity.job.size() + identity.key.size() +
                             identity.home.size() + kIdentityDigestBytes;
  Writer writer(length);
  writer.text(kIdentityMagic);
  writer.u32(kIdentityFormatVersion);
  writer.u32(static_cast<std::uint32_t>(length));
  put_id(writer, identity.id);
  put_id(writer, identity.copied_from);
  writer.u64(identity.created_unix_ns);
  writer.u32(0);  // reserved
  put_counted(writer, identity.job);
  put_counted(writer, identity.key);
  put_counted(writer, identity.home);
  writer.digest(digest128(writer.written()));
  return writer.take();
}

Result<JobIdentity> decode_identity(ByteView data) {
  DIAPAUSE_TRY(check_identity_frame(data));
  Reader reader(data.first(data.size() - kIdentityDigestBytes));
  reader.take(16);
  JobIdentity identity;
  identity.id = get_id(reader);
  identity.copied_from = get_id(reader);
  identity.created_unix_ns = reader.u64();
  const std::uint32_t reserved = reader.u32();
  identity.job = get_counted(reader);
  identity.key = get_counted(reader);
  identity.home = get_counted(reader);
  if (!reader.ok() || reader.remaining() > 0 || reserved != 0)
    return corrupt_identity("its fields do not fill it");
  if (!identity.id.is_set()) return corrupt_identity("it names no job");
  if (!is_sound_component(identity.job, kMaxNameBytes))
    return corrupt_identity("its job's name is no plain name");
  if (!is_sound_component(identity.key, kMaxKeyBytes))
    return corrupt_identity("its directory's name is no plain name");
  if (!is_sound_text(identity.home, kMaxHomeBytes))
    return corrupt_identity("the path of its home is no path");
  return identity;
}

}  // namespace diapause::format
