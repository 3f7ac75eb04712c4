#include "agent/increments.hpp"

#include <algorithm>

#include "agent/images.hpp"
#include "engine/node/captures.hpp"
#include "process/zeros.hpp"

namespace diapause::agent {
namespace {

constexpr std::size_t kSlots = 8;                   // contents of slots that are remembered
constexpr std::uint64_t kLeastSpared = 256 * 1024;  // bytes for which it is worth a call

bool is_of_one_process(const process::Contents& contents) {
  return contents.process != 0 && contents.descriptor < 0 && contents.shared == process::kNone;
}

process::Extent place_of(const process::Contents& contents, std::uint64_t offset,
                         std::uint64_t length) {
  return {contents.offset + offset, contents.offset + offset + length};
}

}  // namespace

Status Increments::begin(process::FrozenJob& frozen, const process::Dump& dump) {
  if (is_refuted_) {
    changes_.give_up("a page of a process was written to without a note of the kernel");
    slots_.clear();
  }
  return changes_.note(frozen, dump, ++capture_);
}

// A part of which no page was written to since arrange() is zero if it was so then.
std::optional<bool> Increments::is_zero(std::uint32_t process, std::uint64_t address) const {
  const process::Extent part{address, address + process::kZeroGroupBytes};
  if (changes_.last_change(process, part) > zeros_of_) return std::nullopt;
  const auto zeros = zeros_.find(process);
  return zeros != zeros_.end() &&
         std::ranges::binary_search(zeros->second, address, {}, &process::Extent::begin);
}

// The largest regions come first. A region that follows one whose length has changed moves, and is
// copied again.
void Increments::arrange(process::Dump& dump) {
  if (zeros_of_ == capture_) return;  // spare() has done it
  zeros_ = process::leave_out_zeros(dump, [&](std::uint32_t process, std::uint64_t address) {
    return is_zero(process, address);
  });
  zeros_of_ = capture_;
  std::ranges::stable_sort(dump.contents, std::greater{}, &process::Contents::bytes);
}

// Slots are used in turn.
const Increments::Content* Increments::likely_content() const {
  if (turn_ == 0 || turn_ > slots_.size()) return nullptr;
  std::vector<const Content*> contents;
  for (const auto& one : slots_) contents.push_back(&one.second);
  std::ranges::sort(contents, std::greater{}, &Content::capture);
  return contents[turn_ - 1];
}

process::Spared Increments::spare(process::Dump& dump) {
  spared_.clear();
  audited_.clear();
  process::Spared spared;
  const Content* const likely = likely_content();
  if (likely == nullptr) return spared;
  arrange(dump);
  const auto plan = engine::lay_out_image(DumpSource(dump, 1).index());
  if (!plan) return spared;
  lay(dump, likely, plan->index);
  for (std::size_t i = 0; i < dump.contents.size(); ++i) {
    const process::Contents& one = dump.contents[i];
    if (!is_of_one_process(one) || !one.is_forked) continue;
    const std::vector<process::Extent> extents = spare(one, i);
    spared[one.here].insert(spared[one.here].end(), extents.begin(), extents.end());
  }
  return spared;
}

// The first page of each run of blocks is not spared, so that every mapping has a part in the copy.
std::vector<process::Extent> Increments::spare(const process::Contents& contents,
                                               std::size_t number) {
  std::vector<process::Extent> extents;
  std::vector<bool>& blocks = spared_[number];
  for (std::uint64_t at = 0; at < contents.bytes; at += format::kBlockBytes) {
    const std::uint64_t length = std::min<std::uint64_t>(format::kBlockBytes, contents.bytes - at);
    const bool is_held = held_checksum(contents, at, length) != nullptr;
    const bool is_audited = is_held && is_due_for_audit();
    if (is_audited) audited_.insert({number, at / format::kBlockBytes});
    const bool goes_on = !blocks.empty() && blocks.back();
    blocks.push_back(is_held && !is_audited);
    if (!blocks.back()) continue;
    const std::uint64_t begin = contents.begin + at;
    if (!goes_on) extents.push_back({begin + kPageBytes, begin});
    extents.back().end = begin + length;
  }
  std::erase_if(extents,
                [](const process::Extent& one) { return one.end < one.begin + kLeastSpared; });
  return extents;
}

void Increments::use(const process::Dump& dump, capture::BlockSource& source, std::uint64_t content,
                     const format::ImageIndex& laid_out) {
  source_ = &source;
  const auto old = slots_.find(content);
  lay(dump, old == slots_.end() ? nullptr : &old->second, laid_out);
  turn_ = 0;
  if (old_ == nullptr) return;
  turn_ = static_cast<std::size_t>(std::ranges::count_if(
      slots_, [&](const auto& one) { return one.second.capture >= old_->capture; }));
}

// `held` is what the slot holds, or null.
void Increments::lay(const process::Dump& dump, const Content* held,
                     const format::ImageIndex& laid_out) {
  dump_ = &dump;
  old_ = held;
  made_ = {capture_, {}};
  for (std::size_t i = 0; i < dump.contents.size(); ++i) {
    const process::Contents& one = dump.contents[i];
    if (!is_of_one_process(one)) continue;
    made_.held[{one.process, one.offset}] = {
        laid_out.regions[i + 1].offset, one.bytes,
        std::vector<std::uint64_t>(laid_out.regions[i + 1].block_count())};
  }
}

bool Increments::Held::has_block(std::uint64_t at, std::uint64_t length) const {
  return at < bytes && length == std::min<std::uint64_t>(format::kBlockBytes, bytes - at);
}

const std::uint64_t* Increments::held_checksum(const process::Contents& contents,
                                               std::uint64_t offset, std::uint64_t length) const {
  const Name name{contents.process, contents.offset};
  if (old_ == nullptr || !old_->held.contains(name)) return nullptr;
  const Held& held = old_->held.at(name);
  const bool is_there = held.offset == made_.held.at(name).offset && held.has_block(offset, length);
  if (!is_there ||
      changes_.last_change(contents.process, place_of(contents, offset, length)) > old_->capture) {
    return nullptr;
  }
  return &held.checksums[offset / format::kBlockBytes];
}

bool Increments::is_due_for_audit() {
  const std::scoped_lock lock(audit_);
  audit_due_ += audit_part_;
  if (audit_due_ < 1) return false;
  audit_due_ -= 1;
  return true;
}

bool Increments::is_spared(std::size_t contents, std::uint64_t block) const {
  const auto blocks = spared_.find(contents);
  return blocks != spared_.end() && blocks->second[block];
}

// Returns it for an unchanged block. Where blocks are spared, those to be audited were chosen with
// them.
bool Increments::is_to_be_audited(std::size_t contents, std::uint64_t block) {
  return spared_.empty() ? is_due_for_audit() : audited_.contains({contents, block});
}

Result<std::uint64_t> Increments::copy(std::size_t region, std::uint64_t offset, MutableBytes to) {
  if (region == 0 || !is_of_one_process(dump_->contents[region - 1]))
    return source_->copy(region, offset, to);
  const process::Contents& contents = dump_->contents[region - 1];
  const std::uint64_t block = offset / format::kBlockBytes;
  const std::uint64_t* const held = held_checksum(contents, offset, to.size());
  if (held == nullptr && is_spared(region - 1, block))
    return fail(Code::again, "the slot does not hold the image that was expected there");
  std::uint64_t checksum = 0;
  if (held != nullptr && !is_to_be_audited(region - 1, block)) {
    checksum = *held;
  } else {
    DIAPAUSE_TRY_ASSIGN(checksum, source_->copy(region, offset, to));
  }
  if (held != nullptr && checksum != *held) {
    const std::scoped_lock lock(audit_);
    is_refuted_ = true;
    return fail(Code::again, "a block that counts as unchanged has changed");
  }
  made_.held.at({contents.process, contents.offset}).checksums[block] = checksum;
  return checksum;
}

void Increments::keep(std::uint64_t content) {
  slots_[content] = std::move(made_);
  while (slots_.size() > kSlots) {
    slots_.erase(
        std::ranges::min_element(slots_, {}, [](const auto& one) { return one.second.capture; }));
  }
}

}  // namespace diapause::agent
