// Makes images of a job in slots that hold older ones: what has not changed since stays where it
// is. Every image is complete (docs/decisions/0045-increments-from-outside.md).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "capture/block_source.hpp"
#include "format/image.hpp"
#include "process/changes.hpp"
#include "process/contents.hpp"
#include "process/copies.hpp"
#include "process/dump.hpp"

namespace diapause::agent {

class Increments : public capture::BlockSource {
 public:
  // That percentage of the blocks found unchanged is copied all the same and compared with the
  // checksums they had.
  explicit Increments(double audit_percent) : audit_part_(audit_percent / 100) {}

  // Notes what has changed and begins a capture of `dump`. The job stands still. Fails if the job
  // cannot be restored, see process::Changes::note().
  Status begin(process::FrozenJob& frozen, const process::Dump& dump);
  // Returns memory that a copy of its process need not have, because the slot that is likely to be
  // used holds it already. Does what arrange() does, if there is such memory. The job stands still.
  process::Spared spare(process::Dump& dump);
  // All memory of `dump` can be read all the same, because there are no copies.
  void spare_nothing() { spared_.clear(); }
  // Takes zeros out of `dump` and puts memory into an order in which its place in the image changes
  // as little as possible.
  void arrange(process::Dump& dump);

  // Says that the image is to be made in a slot that holds the image with that number, and that
  // `source` copies blocks of `dump`. 0 stands for another slot. Both must live until the capture
  // has ended.
  void use(const process::Dump& dump, capture::BlockSource& source, std::uint64_t content,
           const format::ImageIndex& laid_out);
  // Fails with Code::again if a block has changed that counts as unchanged, and nothing is watched
  // from the next begin() on; or if a block was spared that the slot does not hold.
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
  std::vector<process::Extent> spare(const process::Contents& contents, std::size_t number);
  void lay(const process::Dump& dump, const Content* held, const format::ImageIndex& laid_out);
  const Content* likely_content() const;
  std::optional<bool> is_zero(std::uint32_t process, std::uint64_t address) const;
  bool is_spared(std::size_t contents, std::uint64_t block) const;
  bool is_due_for_audit();
  bool is_to_be_audited(std::size_t contents, std::uint64_t block);

  process::Changes changes_;
  std::uint64_t capture_ = 0;
  std::map<std::uint64_t, Content> slots_;
  std::size_t turn_ = 0;        // the last slot held the last content but so many; 0: not known
  std::uint64_t zeros_of_ = 0;  // the last capture that has got as far as arrange()
  process::Zeros zeros_;        // parts of memory that were all zero then
  double audit_part_;
  std::mutex audit_;      // held to change what follows
  double audit_due_ = 0;  // blocks
  bool is_refuted_ = false;

  // These belong to the capture under way.
  const process::Dump* dump_ = nullptr;
  std::map<std::size_t, std::vector<bool>> spared_;          // blocks of contents of `dump_`
  std::set<std::pair<std::size_t, std::uint64_t>> audited_;  // blocks, if any are spared
  capture::BlockSource* source_ = nullptr;
  const Content* old_ = nullptr;
  Content made_;
};

}  // namespace diapause::agent
