// Lost redundancy: the version that was restored is taken once more, behind the program where that
// is possible.
#include <fmt/core.h>

#include <cstring>
#include <memory>
#include <utility>

#include "format/checksum.hpp"
#include "library/engine.hpp"
#include "store/image_reader.hpp"

namespace diapause::library {
namespace {

// The data of an image that was fetched, to be captured again. Every whole block is compared with
// the checksum that it had when it was fetched: damage that came since must not be given a new
// checksum.
class FetchedSource : public capture::BlockSource {
 public:
  explicit FetchedSource(store::ImageReader image) : image_(std::move(image)) {}

  Result<std::uint64_t> copy(std::size_t region, std::uint64_t offset, MutableBytes to) override {
    const format::Region& stored = image_.index().regions[region];
    if (!stored.is_raw()) {
      return fail(Code::internal,
                  image_.name() + ": a compressed image cannot be captured again as it lies");
    }
    DIAPAUSE_TRY_ASSIGN(const ByteView view, image_.bytes().view(stored.offset + offset, to));
    if (view.data() != to.data()) std::memcpy(to.data(), view.data(), to.size());
    const std::uint64_t checksum = format::checksum64(to);
    const std::uint64_t block_end = std::min(offset + format::kBlockBytes, stored.stored_bytes);
    const bool is_block = offset % format::kBlockBytes == 0 && offset + to.size() == block_end;
    if (is_block && checksum != stored.block_checksums[offset / format::kBlockBytes]) {
      return fail(Code::corrupt, fmt::format("{}: region '{}' was damaged since it was restored",
                                             image_.name(), stored.name));
    }
    return checksum;
  }

 private:
  store::ImageReader image_;
};

}  // namespace

// Every level that the version had holds again once this is published, and until then the old files
// stay: they are pinned while they are read.
Status Engine::take_again() {
  DIAPAUSE_TRY(scrub_wait());
  engine::Restart& restart = session_->get();
  const format::Manifest& old = restart.fetched.manifest;
  CheckpointInfo info;
  info.version = old.version.number;
  info.level_asked = old.deepest_level();
  DIAPAUSE_TRY_ASSIGN(const engine::Decision decision, begin(CaptureFollows::later, info));
  format::ImageIndex index = restart.image().index();
  const auto source = std::make_shared<FetchedSource>(std::move(restart.image()));
  if (!host_->is_background()) {
    Status taken = checkpoint_from({*source, std::move(index), {}}, decision, info);
    host_->pin(std::nullopt);
    return taken;
  }
  DIAPAUSE_TRY_ASSIGN(const Taken taken,
                      capture_->take_behind(source, std::move(index), decision,
                                            [this] { host_->pin(std::nullopt); }));
  flights_->add({taken.request, decision.number, decision.level, taken.image_bytes, {}, true});
  return {};
}

// Only what is missing: what the other nodes have stays where it is, and is neither copied nor kept
// twice. The image that was fetched has served its purpose, and its memory may be needed.
Status Engine::put_back(config::TierKind tier) {
  DIAPAUSE_TRY(scrub_wait());
  engine::FetchedVersion& fetched = session_->get().fetched;
  { const store::ImageReader no_longer_needed = std::move(fetched.image); }
  const std::uint64_t request = capture_->put_back(fetched.manifest, tier);
  host_->pin(std::nullopt);
  flights_->add(
      {request, fetched.manifest.version.number, fetched.manifest.deepest_level(), 0, {}, true});
  catch_up();
  return {};
}

void Engine::heal() {
  const auto incomplete_in = session_->get().fetched.incomplete_in;
  const Status begun = incomplete_in ? put_back(*incomplete_in) : take_again();
  if (begun) return;
  host_->pin(std::nullopt);
  context_->log(Severity::warning,
                "the redundancy that was lost could not be put back: " + begun.error().message);
}

}  // namespace diapause::library
