// Makes images of a job in slots that hold older ones: what has not changed since stays where it
// is. Every image is complete (docs/decisions/0045-increments-from-outside.md).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "capture/block_source.hpp"
#include "format/image.hpp"
#include "process/changes.hpp"
#include "process/dump.hpp"

namespace diapause::agent {

class Increments : public capture::BlockSource {
 public:
  // That percentage of the blocks found unchanged is copied all the same and compared with the
  // checksums they had.
  explicit Increments(double audit_percent) : audit_part_(audit_percent / 100) {}

  // Notes what has changed and begins a capture of `dump`, whose blocks `source` copies. The job
  // stands still. Both must live until the capture has ended. Fails if the job cannot be restored,
  // see process::Changes::note(). Memory is put into an order in which its place in the image
  // changes as little as possible.
  Status begin(process::FrozenJob& frozen, process::Dump& dump);
  // Returns about how many bytes will be copied of the memory that a copy of a process has.
  std::uint64_t changed_bytes(const process::Dump& dump) const;

  // Says that the image is to be made in a slot that holds the image with that number. 0 stands for
  // another slot.
  void use(const process::Dump& dump, capture::BlockSource& source, std::uint64_t content,
           const format::ImageIndex& laid_out);
  // Fails with Code::again if a block has changed that counts as unchanged. Nothing is watched from
  // the next begin() on.
  Result<std::uint64_t> copy(std::size_t region, std::uint64_t offset, MutableBytes to) override;
  unsigned threads() const override { return source_->threads(); }
  // The image is complete, and the slot holds it from now on under that number.
  void keep(std::uint64_t content);

  const process::Changes& changes() const { return changes_; }

 private:
  // This is memory of one process in an image.
  struct Held {
    std::uint64_t offset = 0;  // place in the image
    std::uint64_t bytes = 0;
    std::vector<std::uint64_t> checksums;  // of the blocks
    bool has_block(std::uint64_t at, std::uint64_t length) const;
  };
  using Name = std::pair<std::uint32_t, std::uint64_t>;  // the process and the address
  struct Content {
    std::uint64_t capture = 0;
    std::map<Name, Held> held;
  };
  // Returns the checksum of the block if the slot holds it, or null.
  const std::uint64_t* held_checksum(const process::Contents& contents, std::uint64_t offset,
                                     std::uint64_t length) const;
  bool is_to_be_audited();

  process::Changes changes_;
  std::uint64_t capture_ = 0;
  std::map<std::uint64_t, Content> slots_;
  double audit_part_;
  std::mutex audit_;      // held to change what follows
  double audit_due_ = 0;  // blocks
  bool is_refuted_ = false;

  // These belong to the capture under way.
  const process::Dump* dump_ = nullptr;
  capture::BlockSource* source_ = nullptr;
  const Content* old_ = nullptr;
  Content made_;
};

}  // namespace diapause::agent
