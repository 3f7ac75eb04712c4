#include "agent/increments.hpp"

#include <algorithm>

namespace diapause::agent {
namespace {

constexpr std::size_t kSlots = 8;  // contents of slots that are remembered

bool is_of_one_process(const process::Contents& contents) {
  return contents.process != 0 && contents.descriptor < 0 && contents.shared == process::kNone;
}

process::Extent place_of(const process::Contents& contents, std::uint64_t offset,
                         std::uint64_t length) {
  return {contents.offset + offset, contents.offset + offset + length};
}

}  // namespace

// The largest regions come first. A region that follows one whose length has changed moves, and is
// copied again.
Status Increments::begin(process::FrozenJob& frozen, process::Dump& dump) {
  if (is_refuted_) {
    changes_.give_up("a page of a process was written to without a note of the kernel");
    slots_.clear();
  }
  DIAPAUSE_TRY(changes_.note(frozen, dump, ++capture_));
  std::ranges::stable_sort(dump.contents, std::greater{}, &process::Contents::bytes);
  return {};
}

// A slot is used for every other capture, so that it lacks what has changed in the last two
// intervals.
std::uint64_t Increments::changed_bytes(const process::Dump& dump) const {
  const std::uint64_t held = capture_ < 2 ? 0 : capture_ - 2;
  std::uint64_t bytes = 0;
  for (const process::Contents& one : dump.contents) {
    if (!one.is_forked) continue;
    bytes += is_of_one_process(one)
                 ? changes_.changed_bytes(one.process, place_of(one, 0, one.bytes), held)
                 : one.bytes;
  }
  return bytes;
}

void Increments::use(const process::Dump& dump, capture::BlockSource& source, std::uint64_t content,
                     const format::ImageIndex& laid_out) {
  dump_ = &dump;
  source_ = &source;
  const auto old = slots_.find(content);
  old_ = old == slots_.end() ? nullptr : &old->second;
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

bool Increments::is_to_be_audited() {
  const std::scoped_lock lock(audit_);
  audit_due_ += audit_part_;
  if (audit_due_ < 1) return false;
  audit_due_ -= 1;
  return true;
}

Result<std::uint64_t> Increments::copy(std::size_t region, std::uint64_t offset, MutableBytes to) {
  if (region == 0 || !is_of_one_process(dump_->contents[region - 1]))
    return source_->copy(region, offset, to);
  const process::Contents& contents = dump_->contents[region - 1];
  const std::uint64_t* const held = held_checksum(contents, offset, to.size());
  std::uint64_t checksum = 0;
  if (held != nullptr && !is_to_be_audited()) {
    checksum = *held;
  } else {
    DIAPAUSE_TRY_ASSIGN(checksum, source_->copy(region, offset, to));
  }
  if (held != nullptr && checksum != *held) {
    const std::scoped_lock lock(audit_);
    is_refuted_ = true;
    return fail(Code::again, "a block that counts as unchanged has changed");
  }
  Held& made = made_.held.at({contents.process, contents.offset});
  made.checksums[offset / format::kBlockBytes] = checksum;
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
