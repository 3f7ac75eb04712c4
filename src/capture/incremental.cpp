#include "capture/incremental.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "format/checksum.hpp"
#include "sys/process.hpp"

namespace diapause::capture {
namespace {

std::uint64_t block_at(const RegionCapture& region, std::uintptr_t address) {
  return (address - reinterpret_cast<std::uintptr_t>(region.source->data)) / format::kBlockBytes;
}

}  // namespace

Incremental::~Incremental() { keep_only({}); }

const std::string& Incremental::refusal() {
  if (!refusal_.empty() || userfault_) return refusal_;
  userfault_.emplace(sys::Userfault::open(sys::Userfault::Mode::note_writes));
  scan_.emplace(sys::PageScan::open());
  if (!*userfault_) {
    refusal_ = userfault_->error().message;
  } else if (!*scan_) {
    refusal_ = scan_->error().message;
  }
  return refusal_;
}

void Incremental::refuse(const std::string& reason) {
  keep_only({});
  refusal_ = reason;
}

void Incremental::keep_only(const std::vector<std::string>& regions) {
  std::erase_if(tracked_, [&](const auto& entry) {
    if (std::ranges::find(regions, entry.first) != regions.end()) return false;
    (*userfault_)->remove(entry.second.pages);
    return true;
  });
}

// Begins to track a region. All blocks count as changed now.
Result<Incremental::Tracked*> Incremental::track(const RegionCapture& region,
                                                 std::uint64_t capture) {
  Tracked& tracked = tracked_[region.description->name];
  if (!tracked.pages.is_empty()) (*userfault_)->remove(tracked.pages);
  tracked = {region.source->data, region.memory().size(), sys::whole_pages_in(region.memory()),
             std::vector<std::uint64_t>(region.blocks(), capture)};
  Status status = (*userfault_)->add(tracked.pages);
  // This protects like Userfault::protect(), in a third of the time.
  if (status) {
    if (const auto all = (*scan_)->written_and_protect(tracked.pages); !all)
      status = fail(all.error());
  }
  if (status) return &tracked;
  (*userfault_)->remove(tracked.pages);
  tracked_.erase(region.description->name);
  return fail(std::move(status.error()));
}

Result<Incremental::Tracked*> Incremental::note_changes(const RegionCapture& region,
                                                        std::uint64_t capture) {
  const auto found = tracked_.find(region.description->name);
  if (found == tracked_.end()) return track(region, capture);
  Tracked& tracked = found->second;
  if (tracked.data != region.source->data || tracked.bytes != region.memory().size())
    return track(region, capture);
  const auto written = (*scan_)->written_and_protect(tracked.pages);
  if (!written) return track(region, capture);  // the program has mapped other memory there
  const auto mark = [&](std::uintptr_t begin, std::uintptr_t end) {
    if (begin >= end) return;
    const auto first =
        tracked.changed_in.begin() + static_cast<std::ptrdiff_t>(block_at(region, begin));
    const auto last =
        tracked.changed_in.begin() + static_cast<std::ptrdiff_t>(block_at(region, end - 1));
    std::fill(first, last + 1, capture);
  };
  for (const sys::PageRange& range : *written) mark(range.begin, range.end);
  // Pages that the region shares with other memory are not tracked.
  const auto begin = reinterpret_cast<std::uintptr_t>(tracked.data);
  mark(begin, tracked.pages.begin);
  mark(tracked.pages.end, begin + tracked.bytes);
  return &tracked;
}

Result<Incremental::Finding> Incremental::take_tracked(RegionCapture& region,
                                                       std::uint64_t capture) {
  const double start_s = sys::monotonic_s();
  DIAPAUSE_TRY_ASSIGN(const Tracked* tracked, note_changes(region, capture));
  const double scan_s = sys::monotonic_s() - start_s;
  std::vector<std::uint64_t> changed;
  std::vector<std::uint64_t> unchanged;
  for (std::uint64_t block = 0; block < region.blocks(); ++block) {
    const bool holds = region.old != nullptr && tracked->changed_in[block] <= region.old_capture;
    (holds ? unchanged : changed).push_back(block);
  }
  pool_.run(changed.size(), [&](std::uint64_t i) { region.copy_block(changed[i]); });
  for (const std::uint64_t block : unchanged)
    region.description->block_checksums[block] = region.old[block];
  for (const std::uint64_t block : changed)
    region.report->copied_in_begin += region.block(block).size();
  Finding finding = audit(region, unchanged);
  finding.scan_s = scan_s;
  return finding;
}

Incremental::Finding Incremental::take_by_checksum(RegionCapture& region) {
  // The element type is not bool, because several threads write to it.
  std::vector<std::uint8_t> changed(region.blocks(), 1);
  pool_.run(region.blocks(), [&](std::uint64_t block) {
    if (region.old != nullptr && format::checksum64(region.block(block)) == region.old[block]) {
      region.description->block_checksums[block] = region.old[block];
      changed[block] = 0;
    } else {
      region.copy_block(block);
    }
  });
  std::vector<std::uint64_t> unchanged;
  for (std::uint64_t block = 0; block < region.blocks(); ++block) {
    if (changed[block] == 0) unchanged.push_back(block);
    if (changed[block] != 0) region.report->copied_in_begin += region.block(block).size();
  }
  return audit(region, unchanged);
}

Incremental::Finding Incremental::take_unchanged(RegionCapture& region) {
  region.description->block_checksums.assign(region.old, region.old + region.blocks());
  std::vector<std::uint64_t> all(region.blocks());
  std::iota(all.begin(), all.end(), 0);
  return audit(region, all);
}

// Verifies a sample of the blocks found unchanged. Memory may change without the tracking noticing,
// and a slot may rot between two captures; the wrong blocks would be carried over from then on.
Incremental::Finding Incremental::audit(RegionCapture& region,
                                        const std::vector<std::uint64_t>& unchanged) {
  const auto count =
      static_cast<std::uint64_t>(std::ceil(audit_part_ * static_cast<double>(unchanged.size())));
  if (count == 0) return {};
  std::uint64_t& audited = audited_[region.description->name];
  const std::uint64_t start = audited;
  audited += count;
  std::atomic<bool> missed = false;
  std::atomic<std::uint64_t> damaged = 0;
  pool_.run(count, [&](std::uint64_t i) {
    const std::uint64_t block = unchanged[(start + i) % unchanged.size()];
    const std::uint64_t expected = region.old[block];
    if (format::checksum64(region.block(block)) != expected) {
      missed = true;
    } else if (format::checksum64(region.block_in_slot(block)) != expected) {
      region.copy_block(block);
      ++damaged;
    }
  });
  return {missed, damaged, 0};
}

}  // namespace diapause::capture
