// An image that its rank lacks goes straight into the program's memory: first its header and index,
// by which the ranks find out whether it fits, then its data.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/recovery/rebuild.hpp"
#include "format/checksum.hpp"
#include "store/image_reader.hpp"

namespace diapause::engine {

// What a rank knows of its image before its data come. Equal on all ranks that a Rebuild involves.
struct ImageHead {
  ImageRange data;  // the bytes between header and index
  ByteVector header_page;
  ByteVector index;  // empty but for the target, like header_page
};

// Brings the head of an image of `file_bytes` bytes to its rank, and tells the ranks that will send
// its data where these end. Called like execute_rebuild(). Code::corrupt on the target alone.
struct FetchedHead {
  ImageHead head;
  Status sound;
};
Result<FetchedHead> fetch_head(const Context& context, const Rebuild& rebuild, FileCache& files,
                               std::uint64_t file_bytes);

// Gives header and index; all other bytes are somewhere else.
std::unique_ptr<ByteSource> head_bytes(const ImageHead& head, std::uint64_t file_bytes);

// Puts the data of an image, which come from front to back, where its regions belong, and checks
// every block of the wanted ones.
class Placement {
 public:
  // Takes every region r with targets[r] not null; all regions are raw. The arguments must outlive
  // the object. `name` is used in messages.
  Placement(const format::ImageIndex& index, std::span<std::byte* const> targets,
            const std::string& name)
      : index_(index), targets_(targets), name_(name) {}

  void take(std::uint64_t offset, ByteView bytes);
  // Code::corrupt names the first damaged block.
  const Status& result() const { return result_; }

 private:
  void put(const format::Region& region, std::uint64_t within, ByteView bytes);
  void end_block(const format::Region& region, std::uint64_t number);

  const format::ImageIndex& index_;
  std::span<std::byte* const> targets_;
  const std::string& name_;
  std::size_t region_ = 0;  // the first that still lacks bytes
  format::Checksum64 checksum_;
  Status result_;
};

}  // namespace diapause::engine
