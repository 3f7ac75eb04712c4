#include "engine/restart/placement.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

namespace diapause::engine {
namespace {

// Copies what comes to where it belongs in `to`, which begins at byte `begin` of the image.
TakeBytes copy_to(ByteVector& to, std::uint64_t begin) {
  return [&to, begin](std::uint64_t offset, ByteView bytes) {
    std::memcpy(to.data() + (offset - begin), bytes.data(), bytes.size());
  };
}

// Tells the servers of a rebuild which part of the image is the index.
Status tell_servers(const Context& context, const Rebuild& rebuild, ImageRange& index) {
  const bool is_target = rebuild.target == context.rank();
  std::set<std::uint32_t> servers;
  for (const ServedFile& file : rebuild.files()) servers.insert(file.server);
  servers.erase(rebuild.target);
  const MutableBytes message = std::as_writable_bytes(std::span(&index, 1));
  std::vector<comm::Send> sends;
  std::vector<comm::Receive> receives;
  for (const std::uint32_t server : servers) {
    if (is_target) sends.push_back({server, message});
    if (server == context.rank()) receives.push_back({rebuild.target, message});
  }
  return context.comm->exchange(sends, receives);
}

class HeadBytes : public ByteSource {
 public:
  HeadBytes(const ImageHead& head, std::uint64_t file_bytes)
      : head_(head), file_bytes_(file_bytes) {}
  std::uint64_t size() const override { return file_bytes_; }
  Result<ByteView> view(std::uint64_t offset, MutableBytes scratch) override {
    const bool is_index = offset >= head_.data.end;
    const ByteView part = is_index ? ByteView(head_.index) : ByteView(head_.header_page);
    const std::uint64_t within = is_index ? offset - head_.data.end : offset;
    if (within > part.size() || scratch.size() > part.size() - within)
      return fail(Code::internal, "the data of an image are asked for where only its index is");
    return part.subspan(within, scratch.size());
  }

 private:
  ImageHead head_;
  std::uint64_t file_bytes_;
};

}  // namespace

Result<FetchedHead> fetch_head(const Context& context, const Rebuild& rebuild, FileCache& files,
                               std::uint64_t file_bytes) {
  const bool is_target = rebuild.target == context.rank();
  FetchedHead fetched;
  ImageHead& head = fetched.head;
  head.header_page.resize(is_target ? format::kHeaderBytes : 0);
  DIAPAUSE_TRY(execute_rebuild(context, rebuild, files, {0, format::kHeaderBytes},
                               copy_to(head.header_page, 0)));
  ImageRange index{file_bytes, file_bytes};  // none, where the header does not say
  if (is_target) {
    const auto header = format::decode_header(head.header_page);
    if (!header) fetched.sound = fail(header.error());
    if (header && header->file_bytes == file_bytes)
      index = {header->index_offset, header->index_offset + header->index_bytes};
  }
  DIAPAUSE_TRY(tell_servers(context, rebuild, index));
  if (index.begin < format::kHeaderBytes || index.begin > index.end || index.end > file_bytes)
    return fail(Code::comm, "a rank asks for what no image has");
  head.data = {format::kHeaderBytes, index.begin};
  head.index.resize(is_target ? index.end - index.begin : 0);
  DIAPAUSE_TRY(execute_rebuild(context, rebuild, files, index, copy_to(head.index, index.begin)));
  return fetched;
}

std::unique_ptr<ByteSource> head_bytes(const ImageHead& head, std::uint64_t file_bytes) {
  return std::make_unique<HeadBytes>(head, file_bytes);
}

void Placement::take(std::uint64_t offset, ByteView bytes) {
  while (!bytes.empty() && region_ < index_.regions.size()) {
    const format::Region& region = index_.regions[region_];
    const std::uint64_t end = region.offset + region.stored_bytes;
    const std::uint64_t gap =
        std::min<std::uint64_t>(bytes.size(), region.offset - std::min(offset, region.offset));
    offset += gap;
    bytes = bytes.subspan(gap);
    const std::uint64_t length = std::min<std::uint64_t>(bytes.size(), end - offset);
    if (length > 0) put(region, offset - region.offset, bytes.first(length));
    offset += length;
    bytes = bytes.subspan(length);
    if (offset >= end) ++region_;
  }
}

// The bytes of one region, block by block.
void Placement::put(const format::Region& region, std::uint64_t within, ByteView bytes) {
  std::byte* const target = targets_[region_];
  if (target == nullptr) return;
  while (!bytes.empty()) {
    const std::uint64_t number = within / format::kBlockBytes;
    const std::uint64_t end =
        std::min<std::uint64_t>((number + 1) * format::kBlockBytes, region.stored_bytes);
    const ByteView part = bytes.first(std::min<std::uint64_t>(bytes.size(), end - within));
    checksum_.copy(MutableBytes(target + within, part.size()), part);
    within += part.size();
    bytes = bytes.subspan(part.size());
    if (within == end) end_block(region, number);
  }
}

void Placement::end_block(const format::Region& region, std::uint64_t number) {
  const bool is_sound = checksum_.value() == region.block_checksums[number];
  checksum_ = {};
  if (is_sound || !result_) return;
  result_ = fail(Code::corrupt,
                 fmt::format("{}: block {} of region '{}' is damaged", name_, number, region.name));
}

}  // namespace diapause::engine
