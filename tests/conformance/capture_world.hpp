// A program with regions, slots that are used again, and a check of every image against a plain
// copy of the memory.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "capture/capturer.hpp"
#include "sys/file.hpp"

namespace diapause::capture {

// Anonymous memory of its own, whole pages, not populated.
class Arena {
 public:
  explicit Arena(std::size_t bytes);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();
  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  MutableBytes bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_;
};

// A sequence of numbers that is the same in every run.
class Dice {
 public:
  std::uint64_t below(std::uint64_t end) { return next() % end; }
  void fill(MutableBytes bytes);

 private:
  std::uint64_t next();
  std::uint64_t state_ = 1;
};

struct CaptureWay {
  std::string name;
  config::CaptureStrategy strategy = config::CaptureStrategy::automatic;
  bool devices = false;
  Declaration declaration = Declaration::changing;
  DrainHost drain_host = DrainHost::own_thread;
};

inline constexpr double kNoAudit = 0;

class CaptureWorld {
 public:
  // Audits would mend what tracking gets wrong.
  explicit CaptureWorld(const CaptureWay& way = {}, double audit_percent = kNoAudit);

  // A region whose first byte lies `shift` bytes behind a page boundary, full of noise.
  MutableBytes add(std::size_t bytes, std::size_t shift = 0);
  void add_at(MutableBytes memory);
  void replace(std::size_t region, MutableBytes memory);
  void remove(std::size_t region);
  // Some bytes at a place by chance, in a region by chance.
  void scribble();

  // Begins a capture into that slot (0..3); what the memory holds now is what is expected.
  Status begin(std::size_t slot);
  // Drains and compares the image with what is expected.
  void expect_drained();
  void expect_captured(std::size_t slot);

  Capturer& capturer() { return *capturer_; }
  // Ends the capturer and begins anew with a process that knows nothing.
  void restart(const CapturerOptions& options) { capturer_.emplace(options); }
  CapturerOptions options() const;
  const RegionReport& report(std::size_t region = 0) { return capturer_->report().at(region); }
  MutableBytes region(std::size_t number) const { return regions_.at(number).memory; }
  std::size_t regions() const { return regions_.size(); }
  MutableBytes slot(std::size_t number) { return slots_.at(number); }
  // The contents of the slot are no capture any more.
  void forget(std::size_t slot) { slot_ids_.at(slot) = ++slot_ids_given_; }
  std::vector<std::string>& warnings() { return warnings_; }
  Dice& dice() { return dice_; }
  CaptureWay way;

 private:
  const double audit_percent_;
  struct Protected {
    std::string name;
    MutableBytes memory;
  };
  format::ImageIndex laid_out(std::uint64_t& index_offset) const;

  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<Protected> regions_;
  std::vector<ByteVector> slots_{4};
  std::vector<std::uint64_t> slot_ids_ = {1, 2, 3, 4};
  std::uint64_t slot_ids_given_ = 4;
  ByteVector expected_;
  std::uint64_t expected_bytes_ = 0;
  std::size_t open_slot_ = 0;
  std::vector<std::string> warnings_;
  Dice dice_;
  int named_ = 0;
  std::optional<Capturer> capturer_;
};

}  // namespace diapause::capture
