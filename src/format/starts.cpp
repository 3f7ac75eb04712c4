#include "format/starts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "format/checksum.hpp"
#include "format/wire.hpp"

namespace diapause::format {
namespace {

constexpr std::string_view kStartsMagic = "DIAPSTA1";
constexpr std::uint64_t kStartsDigestBytes = 16;
constexpr std::uint64_t kStartsFixedBytes = 24;  // before the number of starts
constexpr std::uint64_t kStartFixedBytes = 48;
constexpr std::size_t kMaxNodesBytes = 4096;

auto corrupt_starts(const std::string& what) { return fail(Code::corrupt, "starts: " + what); }

Status check_starts_frame(ByteView data) {
  if (data.size() < kStartsFixedBytes + kStartsDigestBytes) {
    return corrupt_starts(fmt::format("{} bytes are too few", data.size()));
  }
  Reader reader(data);
  if (reader.text(kStartsMagic.size()) != kStartsMagic)
    return corrupt_starts("this does not hold the starts of a job");
  const std::uint32_t version = reader.u32();
  reader.u32();
  const std::uint64_t length = reader.u64();
  if (length != data.size())
    return corrupt_starts(fmt::format("{} bytes where it says {}", data.size(), length));
  const ByteView content = data.first(data.size() - kStartsDigestBytes);
  if (Reader(data.last(kStartsDigestBytes)).digest() != digest128(content)) {
    return corrupt_starts("its bytes do not give its digest");
  }
  if (version >= 1 && version <= kStartsFormatVersion) return {};
  return fail(
      Code::mismatch,
      fmt::format(
          "starts: written in format version {}, this library reads versions 1 to {}; use the "
          "Diapause release that wrote it",
          version, kStartsFormatVersion));
}

void encode_start(const Start& start, Writer& writer) {
  const VersionId from = start.from.value_or(VersionId{});
  writer.u32(start.incarnation);
  writer.u32(start.has_versions ? 1 : 0);
  writer.u64(start.begun_unix_ns);
  writer.u32(from.incarnation);
  writer.u64(from.number);
  writer.commit(from.commit);
  const std::string nodes = start.nodes.substr(0, kMaxNodesBytes);
  writer.u32(static_cast<std::uint32_t>(nodes.size()));
  writer.text(nodes);
}

Result<Start> decode_start(Reader& reader, std::uint32_t after) {
  Start start;
  start.incarnation = reader.u32();
  const std::uint32_t flags = reader.u32();
  start.has_versions = flags == 1;
  start.begun_unix_ns = reader.u64();
  VersionId from;
  from.incarnation = reader.u32();
  from.number = reader.u64();
  from.commit = reader.commit();
  const std::uint32_t length = reader.u32();
  if (length > kMaxNodesBytes || flags > 1) return corrupt_starts("a start is none");
  start.nodes = reader.text(length);
  if (!reader.ok()) return corrupt_starts("it ends in the middle of a start");
  if (start.incarnation <= after) return corrupt_starts("its starts are not in their order");
  if (from.incarnation >= start.incarnation)
    return corrupt_starts("a start goes on from a later one");
  if (from.incarnation != 0) {
    start.from = from;
  } else if (from != VersionId{}) {
    return corrupt_starts("a start that began anew goes on from a version");
  }
  return start;
}

}  // namespace

Start* Starts::find(std::uint32_t incarnation) {
  const auto found = std::ranges::find(list, incarnation, &Start::incarnation);
  return found == list.end() ? nullptr : &*found;
}

const Start* Starts::find(std::uint32_t incarnation) const {
  const auto found = std::ranges::find(list, incarnation, &Start::incarnation);
  return found == list.end() ? nullptr : &*found;
}

std::uint32_t Starts::root_of(std::uint32_t incarnation) const {
  const Start* start = find(incarnation);
  while (start != nullptr && start->from) {
    incarnation = start->from->incarnation;  // always smaller, so that the loop ends
    start = find(incarnation);
  }
  return incarnation;
}

ByteVector encode_starts(const Starts& starts) {
  const std::size_t skipped = starts.list.size() - std::min(starts.list.size(), Starts::kMost);
  Writer body(1024);
  for (std::size_t i = skipped; i < starts.list.size(); ++i) encode_start(starts.list[i], body);
  const std::size_t length = kStartsFixedBytes + body.written().size() + 4 + kStartsDigestBytes;
  Writer writer(length);
  writer.text(kStartsMagic);
  writer.u32(kStartsFormatVersion);
  writer.u32(0);  // reserved
  writer.u64(length);
  writer.u32(static_cast<std::uint32_t>(starts.list.size() - skipped));
  writer.append(body.written());
  writer.digest(digest128(writer.written()));
  return writer.take();
}

Result<Starts> decode_starts(ByteView data) {
  DIAPAUSE_TRY(check_starts_frame(data));
  Reader reader(data.first(data.size() - kStartsDigestBytes));
  reader.take(12);
  const std::uint32_t reserved = reader.u32();
  reader.u64();
  const std::uint32_t count = reader.u32();
  if (!reader.ok()) return corrupt_starts("it ends before the number of its starts");
  if (count > Starts::kMost || !reader.has_items(count, kStartFixedBytes)) {
    return corrupt_starts(fmt::format("{} starts do not fit in it", count));
  }
  Starts starts;
  for (std::uint32_t i = 0; i < count; ++i) {
    DIAPAUSE_TRY_ASSIGN(Start start, decode_start(reader, starts.last_incarnation()));
    starts.list.push_back(std::move(start));
  }
  if (reader.remaining() > 0 || reserved != 0) return corrupt_starts("its fields do not fill it");
  return starts;
}

}  // namespace diapause::format
