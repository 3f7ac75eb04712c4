#include "capture/capturer.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/name_search.hpp"
#include "capture/copy_on_write.hpp"
#include "capture/incremental.hpp"
#include "format/checksum.hpp"
#include "sys/memory.hpp"
#include "sys/process.hpp"

namespace diapause::capture {
namespace {

using policy::CaptureMethod;

// More threads would wait for the memory.
constexpr unsigned kMostThreads = 16;
// The number of slots whose content is remembered; more than are used in turn.
constexpr std::size_t kMostSlots = 32;

Status check(const CaptureRequest& request) {
  if (request.regions.size() != request.index.regions.size()) {
    return fail(Code::internal, "a capture has an index of other regions");
  }
  if (request.to.size() < image_bytes(request.index, request.index_offset)) {
    return fail(Code::internal, "a capture does not fit into its slot");
  }
  return {};
}

// Finds what a slot holds. Regions in unchanged order are found without a search.
class OldRegions {
 public:
  explicit OldRegions(const SlotContent& content) : content_(content), names_(content.regions) {}

  // Returns the checksums of sound old content of the same memory at the same place; null if there
  // is none. `number` is that of the region in its image.
  const std::uint64_t* find(std::size_t number, const format::Region& region,
                            const std::byte* data) {
    const auto place = names_.find(region.name, number);
    if (!place) return nullptr;
    const SlotRegion& old = content_.regions[*place];
    const bool same =
        old.data == data && old.bytes == region.stored_bytes && old.offset == region.offset;
    return same ? content_.checksums.data() + old.first_checksum : nullptr;
  }

 private:
  const SlotContent& content_;
  NameSearch<SlotRegion> names_;
};

// Returns the fraction of the blocks that differ from the former content of the slot.
std::optional<double> changed_part(const RegionCapture& region) {
  if (region.old == nullptr || region.blocks() == 0) return std::nullopt;
  std::uint64_t changed = 0;
  for (std::uint64_t block = 0; block < region.blocks(); ++block) {
    changed += region.old[block] != region.description->block_checksums[block] ? 1 : 0;
  }
  return static_cast<double>(changed) / static_cast<double>(region.blocks());
}

// Returns whether the region copies at most one block.
bool is_small_copy(const RegionCapture& region) {
  return region.mode == CopyMode::copy && !region.memory().empty() &&
         region.memory().size() < format::kBlockBytes;
}

// Updates a cost per byte. Small pieces are ignored, because the time of the call would dominate.
void learn(std::optional<double>& s_per_byte, double seconds, std::uint64_t bytes) {
  if (bytes < 4 * kMiB) return;
  const double now = seconds / static_cast<double>(bytes);
  s_per_byte = s_per_byte ? (*s_per_byte + now) / 2 : now;
}

}  // namespace

unsigned copying_threads(const config::CaptureSettings& settings, unsigned cores) {
  return settings.threads > 0 ? settings.threads : std::min(kMostThreads, cores);
}

Capturer::Capturer(CapturerOptions options)
    : options_(std::move(options)),
      pool_(std::make_unique<sys::ThreadPool>(copying_threads(options_.settings, options_.cores))),
      copy_on_write_(std::make_unique<CopyOnWrite>(*pool_)),
      incremental_(std::make_unique<Incremental>(*pool_, options_.settings.audit_percent / 100)) {
  costs_.fault_bytes = CopyOnWrite::kUnitBytes;
  costs_.core_to_spare = options_.cores > 1;
}

Capturer::~Capturer() { abandon(); }

Status Capturer::begin(CaptureRequest request) {
  if (open_) return fail(Code::internal, "a capture begins before the last one was drained");
  DIAPAUSE_TRY(check(request));
  open_.emplace(std::move(request));
  ++capture_;
  prepare_regions();
  plan_captures(regions_, {options_.settings.strategy, options_.drain_host, costs_,
                           copy_on_write_->refusal(), incremental_->refusal()});
  begin_regions();
  return {};
}

void Capturer::prepare_regions() {
  // From here on the content of the slot is no longer what it was.
  if (auto known = slots_.extract(open_->slot_id); !known.empty()) old_ = std::move(known.mapped());
  OldRegions old(old_);
  const std::size_t count = open_->regions.size();
  report_.assign(count, {});
  regions_.assign(count, {});
  for (std::size_t i = 0; i < count; ++i) {
    format::Region& region = open_->index.regions[i];
    const SourceRegion& source = open_->regions[i];
    report_[i].region = region.name;
    regions_[i] = {&source,
                   &region,
                   open_->to.subspan(region.offset, region.stored_bytes),
                   old.find(i, region, source.data),
                   old_.capture,
                   &history_[region.name],
                   &report_[i]};
  }
}

void Capturer::begin_regions() {
  std::vector<sys::PageRange> protect;
  std::vector<std::string> track;
  for (const RegionCapture& region : regions_) {
    if (region.mode == CopyMode::copy_on_write)
      protect.push_back(sys::whole_pages_in(region.memory()));
    if (region.mode == CopyMode::track) track.push_back(region.description->name);
  }
  // This comes before anything is watched, because the kernel grants memory to one watcher only.
  copy_on_write_->keep_only(protect);
  incremental_->keep_only(track);
  const bool trusted = std::ranges::all_of(
      regions_, [this](RegionCapture& region) { return begin_incremental(region); });
  if (!trusted) {
    const std::string reason = "a change was not noticed by tracking, which is off from now on";
    incremental_->refuse(reason);
    for (RegionCapture& region : regions_) {
      if (region.mode == CopyMode::track || region.mode == CopyMode::compare)
        copy_now(region, reason);
    }
  }
  copy_small_regions();
  for (RegionCapture& region : regions_) {
    if (!is_small_copy(region)) begin_region(region);
  }
}

// Returns false if tracking has missed a change, so that no result of it can be trusted.
bool Capturer::begin_incremental(RegionCapture& region) {
  if (region.mode != CopyMode::track && region.mode != CopyMode::compare &&
      region.mode != CopyMode::carry)
    return true;
  const double start_s = sys::monotonic_s();
  Incremental::Finding finding;
  if (region.mode == CopyMode::track) {
    auto taken = incremental_->take_tracked(region, capture_);
    if (!taken) {
      region.mode = CopyMode::compare;
      region.report->reason = "changes found by checksum: " + taken.error().message;
    } else {
      finding = *taken;
      learn(costs_.scan_s_per_byte, finding.scan_s, region.memory().size());
    }
  }
  if (region.mode == CopyMode::compare) finding = incremental_->take_by_checksum(region);
  if (region.mode == CopyMode::carry) finding = incremental_->take_unchanged(region);
  region.report->blocked_s += sys::monotonic_s() - start_s;
  if (finding.damaged_blocks > 0) {
    warn(
        fmt::format("{} damaged blocks of region {} were found in its slot and mended; older "
                    "versions from that slot "
                    "may hold damage too",
                    finding.damaged_blocks, region.description->name));
  }
  if (!finding.missed_change) return true;
  if (region.mode == CopyMode::carry) {
    warn(fmt::format("region {} is declared constant and has changed; it is copied anew",
                     region.description->name));
    copy_now(region, "declared constant, but it has changed");
    return true;
  }
  warn(
      fmt::format("region {} was written in a way that write tracking does not see (a device?): "
                  "everything is copied, "
                  "and tracking is off from now on; older versions of this run may hold old data "
                  "in that region",
                  region.description->name));
  return false;
}

void Capturer::copy_now(RegionCapture& region, std::string reason) {
  region.mode = CopyMode::copy;
  region.report->method = CaptureMethod::copy;
  region.report->reason = std::move(reason);
}

// Copies all small regions together. With a thousand variables, each takes less time than a look at
// the clock or waking a thread.
void Capturer::copy_small_regions() {
  constexpr std::size_t kTogether = 64;
  const double start_s = sys::monotonic_s();
  std::vector<RegionCapture*> small;
  for (RegionCapture& region : regions_) {
    if (is_small_copy(region)) small.push_back(&region);
  }
  if (small.empty()) return;
  pool_->run((small.size() + kTogether - 1) / kTogether, [&](std::uint64_t part) {
    const std::size_t end = std::min(small.size(), (part + 1) * kTogether);
    for (std::size_t i = part * kTogether; i < end; ++i) small[i]->copy_block(0);
  });
  const double each_s = (sys::monotonic_s() - start_s) / static_cast<double>(small.size());
  for (RegionCapture* region : small) {
    region->report->copied_in_begin = region->memory().size();
    region->report->blocked_s += each_s;
  }
}

void Capturer::begin_region(RegionCapture& region) {
  const double start_s = sys::monotonic_s();
  if (region.mode == CopyMode::copy_on_write) {
    const Status armed = copy_on_write_->arm(region);
    if (armed) learn(costs_.arm_s_per_byte, sys::monotonic_s() - start_s, region.memory().size());
    if (!armed) copy_now(region, "no copy-on-write: " + armed.error().message);
  }
  if (region.mode == CopyMode::copy) {
    const double copy_start_s = sys::monotonic_s();
    pool_->run(region.blocks(), [&](std::uint64_t block) { region.copy_block(block); });
    region.report->copied_in_begin = region.memory().size();
    learn(costs_.copy_s_per_byte, sys::monotonic_s() - copy_start_s, region.memory().size());
  }
  region.report->blocked_s += sys::monotonic_s() - start_s;
}

bool Capturer::has_bytes_left() const {
  return std::ranges::any_of(regions_, [](const RegionCapture& region) {
    return !region.memory().empty() &&
           (region.mode == CopyMode::copy_on_write || region.mode == CopyMode::background);
  });
}

Result<Captured> Capturer::drain() {
  if (!open_) return fail(Code::internal, "there is no capture to drain");
  if (Status drained = drain_regions(); !drained) {
    abandon();
    return fail(std::move(drained.error()));
  }
  remember();
  Captured captured =
      complete_mapping(std::move(open_->index), open_->index_offset, open_->identity, open_->to);
  end();
  return captured;
}

Status Capturer::drain_regions() {
  for (RegionCapture& region : regions_) DIAPAUSE_TRY(drain_region(region));
  return {};
}

Status Capturer::drain_region(RegionCapture& region) {
  if (region.mode == CopyMode::copy_on_write) {
    const double start_s = sys::monotonic_s();
    DIAPAUSE_TRY(copy_on_write_->drain(region));
    learn(costs_.drain_s_per_byte, sys::monotonic_s() - start_s, region.memory().size());
  }
  if (region.mode == CopyMode::background) {
    for (std::uint64_t block = 0; block < region.blocks(); ++block) {
      DIAPAUSE_TRY(sys::copy_if_mapped(region.block_in_slot(block), region.block(block)));
      region.description->block_checksums[block] = format::checksum64(region.block_in_slot(block));
    }
    region.report->copied_in_drain = region.memory().size();
  }
  return {};
}

void Capturer::remember() {
  for (RegionCapture& region : regions_) {
    region.report->changed = changed_part(region);
    region.history->method = region.report->method;
    if (region.report->changed) region.history->changed = region.report->changed;
  }
  costs_.fault_s = copy_on_write_->fault_s();
  if (open_->slot_id == 0) return;
  slots_[open_->slot_id] = content_now(std::move(old_));
  if (slots_.size() <= kMostSlots) return;
  slots_.erase(
      std::ranges::min_element(slots_, {}, [](const auto& slot) { return slot.second.capture; }));
}

// Returns what the slot of the open capture holds now. It reuses the memory of the former
// description.
SlotContent Capturer::content_now(SlotContent content) const {
  content.capture = capture_;
  content.regions.resize(regions_.size());
  content.checksums.clear();
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const format::Region& stored = *regions_[i].description;
    SlotRegion& held = content.regions[i];
    held.name = stored.name;
    held.data = regions_[i].source->data;
    held.bytes = stored.stored_bytes;
    held.offset = stored.offset;
    held.first_checksum = content.checksums.size();
    content.checksums.insert(content.checksums.end(), stored.block_checksums.begin(),
                             stored.block_checksums.end());
  }
  return content;
}

void Capturer::abandon() {
  if (open_) end();
}

void Capturer::end() {
  copy_on_write_->end();
  regions_.clear();
  old_ = {};
  open_.reset();
}

void Capturer::warn(const std::string& message) const {
  if (options_.log) options_.log(Severity::warning, message);
}

}  // namespace diapause::capture
