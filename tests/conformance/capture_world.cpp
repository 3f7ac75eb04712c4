#include "conformance/capture_world.hpp"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "support/same_bytes.hpp"

namespace diapause::capture {
namespace {

using test_support::are_same;

constexpr std::size_t kPieceBytes = 65536;

}  // namespace

Arena::Arena(std::size_t bytes) : size_(round_up(std::max<std::size_t>(bytes, 1), kPageBytes)) {
  void* memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  data_ = static_cast<std::byte*>(memory);
}

Arena::~Arena() { ::munmap(data_, size_); }

std::uint64_t Dice::next() {
  state_ = state_ * 6364136223846793005U + 1442695040888963407U;
  return state_ >> 16;
}

// Each piece comes from another place of the same noise.
void Dice::fill(MutableBytes bytes) {
  static const std::vector<std::uint64_t> noise = [] {
    std::vector<std::uint64_t> made(2 * kPieceBytes / sizeof(std::uint64_t));
    Dice dice;
    for (std::uint64_t& one : made) one = dice.next() * 0x9e3779b97f4a7c15U;
    return made;
  }();
  for (std::size_t done = 0; done < bytes.size(); done += kPieceBytes) {
    const std::size_t length = std::min(kPieceBytes, bytes.size() - done);
    std::memcpy(bytes.data() + done, as_bytes(std::span(noise)).data() + below(kPieceBytes),
                length);
  }
}

CaptureWorld::CaptureWorld(const CaptureWay& by, double audit_percent)
    : way(by), audit_percent_(audit_percent) {
  restart(options());
}

CapturerOptions CaptureWorld::options() const {
  CapturerOptions options;
  options.settings.strategy = way.strategy;
  options.settings.threads = 2;
  options.cores = 2;
  options.settings.audit_percent = audit_percent_;
  options.drain_host = way.drain_host;
  auto& warnings = const_cast<std::vector<std::string>&>(warnings_);
  options.log = [&warnings](Severity, const std::string& message) { warnings.push_back(message); };
  return options;
}

MutableBytes CaptureWorld::add(std::size_t bytes, std::size_t shift) {
  arenas_.push_back(std::make_unique<Arena>(bytes + shift));
  const MutableBytes memory = arenas_.back()->bytes().subspan(shift, bytes);
  dice_.fill(memory);
  add_at(memory);
  return memory;
}

void CaptureWorld::add_at(MutableBytes memory) {
  regions_.push_back({fmt::format("r{}", named_++), memory});
}

void CaptureWorld::replace(std::size_t region, MutableBytes memory) {
  regions_.at(region).memory = memory;
}

void CaptureWorld::remove(std::size_t region) {
  regions_.erase(regions_.begin() + static_cast<std::ptrdiff_t>(region));
}

void CaptureWorld::scribble() {
  const MutableBytes memory = regions_[dice_.below(regions_.size())].memory;
  if (memory.empty()) return;
  const std::size_t begin = dice_.below(memory.size());
  dice_.fill(
      memory.subspan(begin, std::min<std::size_t>(memory.size() - begin, 1 + dice_.below(3000))));
}

format::ImageIndex CaptureWorld::laid_out(std::uint64_t& index_offset) const {
  format::ImageIndex index;
  for (const Protected& region : regions_) {
    index.regions.emplace_back();
    index.regions.back().name = region.name;
    index.regions.back().count = region.memory.size();
  }
  index_offset = *format::lay_out(index);
  return index;
}

Status CaptureWorld::begin(std::size_t slot) {
  CaptureRequest request;
  request.index = laid_out(request.index_offset);
  request.identity.version = {2, 17, {}};
  request.identity.owner = 3;
  request.identity.rank_count = 5;
  std::vector<const std::byte*> pointers;
  for (const Protected& region : regions_) {
    request.regions.push_back({region.memory.data(), way.declaration, way.devices});
    pointers.push_back(region.memory.data());
  }
  const std::uint64_t bytes =
      round_up(image_bytes(request.index, request.index_offset), kPageBytes);
  ByteVector expected(bytes);
  MemorySource source(pointers);
  EXPECT_TRUE(
      capture_to_mapping(source, request.index, request.index_offset, request.identity, expected));
  if (slots_[slot].size() < bytes) {
    forget(slot);
    slots_[slot].assign(bytes, std::byte{0xab});
  }
  request.to = slots_[slot];
  request.slot_id = slot_ids_[slot];
  const std::uint64_t image = image_bytes(request.index, request.index_offset);
  DIAPAUSE_TRY(capturer_->begin(std::move(request)));
  open_slot_ = slot;
  expected_ = std::move(expected);
  expected_bytes_ = image;
  return {};
}

void CaptureWorld::expect_drained() {
  const auto captured = capturer_->drain();
  ASSERT_TRUE(captured) << captured.error().message;
  const ByteView image = ByteView(slots_[open_slot_]).first(expected_bytes_);
  const ByteView expected = ByteView(expected_).first(expected_bytes_);
  if (!are_same(image, expected)) {
    const auto [at, other] = std::mismatch(image.begin(), image.end(), expected.begin());
    ADD_FAILURE() << "the image differs at " << at - image.begin() << " of " << expected_bytes_;
  }
  EXPECT_TRUE(are_same(captured->header_page, expected.first(kPageBytes)));
}

void CaptureWorld::expect_captured(std::size_t slot) {
  const Status begun = begin(slot);
  ASSERT_TRUE(begun) << begun.error().message;
  expect_drained();
}

}  // namespace diapause::capture
