// The step of level 4: decides which images go to the global tier, and in which form.
#include <memory>
#include <optional>

#include "engine/accounting/ledger_lines.hpp"
#include "engine/node/levels/flush.hpp"
#include "engine/node/node_engine.hpp"
#include "sys/process.hpp"

namespace diapause::engine {
namespace {

class LimitedBytes : public ByteSource {
 public:
  LimitedBytes(ByteSource& bytes, sys::RateLimiter& limiter) : bytes_(bytes), limiter_(limiter) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Result<ByteView> view(std::uint64_t offset, MutableBytes scratch) override {
    DIAPAUSE_TRY(limiter_.pass(scratch.size()));
    return bytes_.view(offset, scratch);
  }

 private:
  ByteSource& bytes_;
  sys::RateLimiter& limiter_;
};

// An image that was captured into a tier. If that is the global tier, it already has its slot.
class CapturedImage : public RawImageSource {
 public:
  enum class Lies { on_node, in_global };
  CapturedImage(Image& image, sys::RateLimiter& limiter, Lies where)
      : image_(image), limiter_(limiter), where_(where) {
    if (where_ == Lies::in_global) return;
    // An image whose index cannot be read is damaged. It is written as it is, and readers refuse
    // it.
    if (auto description = describe(*image_.bytes)) index_ = std::move(description->index);
  }

  std::uint32_t rank() const override { return image_.facts.rank; }
  std::uint64_t bytes() const override { return image_.bytes->size(); }
  Result<GlobalFacts> write(const GlobalTarget& to) override {
    LimitedBytes limited(*image_.bytes, limiter_);
    DIAPAUSE_TRY(capture::write_bytes(limited, to.range));
    return GlobalFacts{image_.facts, {}, 0};
  }
  store::Slot* slot() override { return where_ == Lies::in_global ? &image_.slot : nullptr; }
  ImageFacts facts() const override { return image_.facts; }

  const format::ImageIndex* index() const override { return index_ ? &*index_ : nullptr; }
  Result<ByteView> read(std::size_t region, std::uint64_t offset, MutableBytes scratch) override {
    return image_.bytes->view(index_->regions[region].offset + offset, scratch);
  }
  Result<Whole> open() override { return Whole{image_.facts, image_.bytes.get()}; }

 private:
  Image& image_;
  sys::RateLimiter& limiter_;
  const Lies where_;
  std::optional<format::ImageIndex> index_;
};

// Compresses another image while it is written.
class CompressedImage : public ImageSource {
 public:
  struct With {
    Encoding& encoding;
    sys::RateLimiter& limiter;
    std::vector<EncodedImage>& done;  // receives the result
  };
  CompressedImage(RawImageSource& raw, EncodingPlan plan, With with)
      : raw_(raw), plan_(std::move(plan)), with_(with) {}

  std::uint32_t rank() const override { return raw_.rank(); }
  std::uint64_t bytes() const override { return most_encoded_bytes(*raw_.index()); }
  Result<GlobalFacts> write(const GlobalTarget& to) override {
    DIAPAUSE_TRY_ASSIGN(const RawImageSource::Whole whole, raw_.open());
    DIAPAUSE_TRY_ASSIGN(EncodedImage encoded,
                        with_.encoding.write(*whole.bytes, plan_, to.range, with_.limiter));
    const GlobalFacts written{whole.facts, encoded.record, encoded.greatest_error,
                              encoded.encode_s};
    with_.done.push_back(std::move(encoded));
    return written;
  }

 private:
  RawImageSource& raw_;
  const EncodingPlan plan_;
  With with_;
};

}  // namespace

// Adds an image to what is written: uncompressed, or compressed if there is something to compress.
void NodeEngine::add_outgoing(Outgoing& outgoing, RawImageSource& image) {
  const format::ImageIndex* const index = image.index();
  if (index == nullptr) {
    outgoing.images.push_back({&image, 0});
    return;
  }
  const auto read = [&image](std::size_t region, std::uint64_t offset, MutableBytes scratch) {
    return image.read(region, offset, scratch);
  };
  EncodingPlan plan = planner_.plan(*index, read, loss_allowed());
  note_what_stays(*index, plan);
  outgoing.images.push_back({&image, plan.sampling_s});
  if (!plan.has_work()) return;
  outgoing.shrinks = true;
  const CompressedImage::With with{encoding_, flush_limiter_, encoded_};
  outgoing.owned.push_back(std::make_unique<CompressedImage>(image, std::move(plan), with));
  outgoing.images.back().source = outgoing.owned.back().get();
}

// Returns the images in the node tier, or those captured into the global tier; if there are none,
// the sources that read the data in place. Collective.
Result<Outgoing> NodeEngine::outgoing_images(Work& work, const Captures& captures) {
  using Lies = CapturedImage::Lies;
  Outgoing outgoing;
  const auto add_captured = [&](Lies where) {
    for (Image& image : work.images) {
      auto source = std::make_unique<CapturedImage>(image, flush_limiter_, where);
      CapturedImage& captured = *source;
      outgoing.owned.push_back(std::move(source));
      add_outgoing(outgoing, captured);
    }
  };
  if (work.is_kept) {
    add_captured(Lies::on_node);
    return outgoing;
  }
  const bool is_there = captures.capture_tier == config::TierKind::global;
  if (is_there) add_captured(Lies::in_global);
  if (!is_there) {
    for (const auto& image : captures.direct) add_outgoing(outgoing, *image);
  }
  Status have = is_there ? captures.result : Status{};
  if (outgoing.images.empty())
    have = captures.result ? fail(Code::io, "there is no image to write") : captures.result;
  DIAPAUSE_TRY(agree(context_, have));
  return outgoing;
}

Loss NodeEngine::loss_allowed() const {
  return catalogue_.lossy_in_a_row() + 1 < context_.settings.codec.anchor_every ? Loss::allowed
                                                                                : Loss::refused;
}

void NodeEngine::note_what_stays(const format::ImageIndex& index, const EncodingPlan& plan) {
  if (context_.settings.codec.method != config::CodecMethod::automatic) return;
  for (std::size_t r = 0; r < plan.choices.size(); ++r) {
    const EncodingPlan::Choice& choice = plan.choices[r];
    if (choice.method.codec != codec::CodecId::raw || choice.reason.empty()) continue;
    const std::uint64_t bytes = index.regions[r].raw_bytes();
    stay_.push_back(
        {index.regions[r].name, choice, {.raw_bytes = bytes, .stored_bytes = bytes}, 0});
  }
}

void NodeEngine::write_down_compression(const format::VersionId& version) {
  if (!ledger_.is_open()) return;
  std::vector<EncodedRegion> regions = stay_;
  for (const EncodedImage& image : encoded_)
    regions.insert(regions.end(), image.regions.begin(), image.regions.end());
  if (!regions.empty()) ledger_.append(context_, compression_line(version, regions));
}

Conditions NodeEngine::conditions() const {
  Conditions conditions;
  if (context_.settings.codec.method != config::CodecMethod::automatic) return conditions;
  const store::Tier* const global = context_.tiers.find(config::TierKind::global);
  conditions.draw = step_power_.draw();
  conditions.global_is_memory = global != nullptr && global->is_in_memory();
  return conditions;
}

Status NodeEngine::write_level4(Work& work, const Captures& captures) {
  GlobalStep step;
  step.from_s = sys::monotonic_s();
  const sys::ProcessorTime before = sys::processor_time();
  encoded_.clear();
  stay_.clear();
  planner_.begin_version(conditions());
  DIAPAUSE_TRY_ASSIGN(const Outgoing outgoing, outgoing_images(work, captures));
  DIAPAUSE_TRY_ASSIGN(const GlobalTimes times,
                      write_to_global(context_, catalogue_, work.manifest, outgoing));
  const sys::ProcessorTime after = sys::processor_time();
  step.processor = {after.had_s - before.had_s, after.waited_s - before.waited_s};
  step.to_s = sys::monotonic_s();
  parts_.published_from_s = times.published_from_s;
  parts_.encode_share = account_.share_here(times.encode_s, times.published_from_s - step.from_s);
  learn_from(step, work.manifest);
  write_down_compression(work.manifest.version);
  // The nodes' manifests should record level 4 as well: if the global manifest is lost, the images
  // there are still found.
  if (!work.manifest.has_level(1)) return {};
  return publish(work, 4);
}

// Learns from what this process has just written to the global tier.
void NodeEngine::learn_from(GlobalStep step, const format::Manifest& manifest) {
  for (const std::uint32_t rank : context_.topology.acted_for)
    step.bytes += manifest.ranks[rank].image.file_bytes;
  step.how = encoded_.empty() ? Stored::as_it_is : Stored::compressed;
  for (const EncodedImage& image : encoded_) step.encode_s += image.encode_s;
  planner_.learn(step);
  step_power_.learn(step);
}

}  // namespace diapause::engine
