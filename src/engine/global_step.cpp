// The step of level 4: what goes to the global tier, and in which form.
#include "engine/ledger_lines.hpp"
#include "engine/node_engine.hpp"
#include "sys/process.hpp"

namespace diapause::engine {
namespace {

class PacedBytes : public ByteSource {
 public:
  PacedBytes(ByteSource& bytes, sys::Pacer& pacer) : bytes_(bytes), pacer_(pacer) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Result<ByteView> view(std::uint64_t offset, MutableBytes scratch) override {
    pacer_.pass(scratch.size());
    return bytes_.view(offset, scratch);
  }

 private:
  ByteSource& bytes_;
  sys::Pacer& pacer_;
};

}  // namespace

OutgoingImage NodeEngine::as_it_is(Image& image) {
  OutgoingImage outgoing{image.facts.rank, image.bytes->size(), nullptr};
  outgoing.facts = image.facts;
  outgoing.write = [this, &image](const GlobalTarget& to) -> Result<GlobalFacts> {
    PacedBytes paced(*image.bytes, flush_pacer_);
    DIAPAUSE_TRY(capture::write_bytes(paced, to.range));
    return GlobalFacts{image.facts, {}, 0};
  };
  return outgoing;
}

Result<GlobalFacts> NodeEngine::write_encoded(const ImageFacts& facts, ByteSource& bytes, const EncodingPlan& plan,
                                              const GlobalTarget& to) {
  DIAPAUSE_TRY_ASSIGN(EncodedImage encoded, encoding_.write(bytes, plan, to.range, flush_pacer_));
  const GlobalFacts written{facts, encoded.record, encoded.greatest_error, encoded.encode_s};
  encoded_.push_back(std::move(encoded));
  return written;
}

// The images in the node tier, compressed where there is something to compress.
Outgoing NodeEngine::kept_images(Work& work) {
  Outgoing outgoing;
  for (Image& image : work.images) {
    outgoing.images.push_back(as_it_is(image));
    // What cannot be described is damaged: it stays as it is, and a reader refuses it.
    const auto description = describe(*image.bytes);
    if (!description) continue;
    const auto read = [&](std::size_t region, std::uint64_t offset, MutableBytes scratch) {
      return image.bytes->view(description->index.regions[region].offset + offset, scratch);
    };
    EncodingPlan plan = planner_.plan(description->index, read, loss_allowed());
    note_what_stays(description->index, plan);
    outgoing.images.back().plan_s = plan.sampling_s;
    if (!plan.has_work()) continue;
    outgoing.shrinks = true;
    outgoing.images.back().bytes = most_encoded_bytes(description->index);
    outgoing.images.back().write = [this, &image, plan = std::move(plan)](const GlobalTarget& to) {
      return write_encoded(image.facts, *image.bytes, plan, to);
    };
  }
  return outgoing;
}

// Straight from where the data are, compressed where there is something to compress.
Outgoing NodeEngine::direct_images(const Captures& captures) {
  Outgoing outgoing{captures.direct, false};
  for (OutgoingImage& image : outgoing.images) {
    if (image.index == nullptr) continue;
    const auto read = [&](std::size_t region, std::uint64_t offset, MutableBytes scratch) -> Result<ByteView> {
      DIAPAUSE_TRY(image.source->copy(region, offset, scratch));
      return ByteView(scratch);
    };
    EncodingPlan plan = planner_.plan(*image.index, read, loss_allowed());
    note_what_stays(*image.index, plan);
    image.plan_s = plan.sampling_s;
    if (!plan.has_work()) continue;
    outgoing.shrinks = true;
    image.bytes = most_encoded_bytes(*image.index);
    image.write = [this, in_place = image.in_place,
                   plan = std::move(plan)](const GlobalTarget& to) -> Result<GlobalFacts> {
      DIAPAUSE_TRY_ASSIGN(const ImageInPlace taken, in_place());
      return write_encoded(taken.facts, *taken.bytes, plan, to);
    };
  }
  return outgoing;
}

// From the images in the node tier, or captured into the global one; or, if there are none, straight from where the
// data are. Collective.
Result<Outgoing> NodeEngine::outgoing_images(Work& work, const Captures& captures) {
  if (work.is_kept) return kept_images(work);
  const bool is_there = captures.capture_tier == config::TierKind::global;
  Outgoing outgoing;
  if (!is_there) outgoing = direct_images(captures);
  for (Image& image : work.images) {
    if (!is_there) break;
    outgoing.images.push_back(as_it_is(image));
    outgoing.images.back().slot = &image.slot;
  }
  Status have = is_there ? captures.result : Status{};
  if (outgoing.images.empty()) have = captures.result ? fail(Code::io, "there is no image to write") : captures.result;
  DIAPAUSE_TRY(agree(context_, have));
  return outgoing;
}

Loss NodeEngine::loss_allowed() const {
  return catalogue_.lossy_in_a_row() + 1 < context_.settings.codec.anchor_every ? Loss::allowed : Loss::refused;
}

void NodeEngine::note_what_stays(const format::ImageIndex& index, const EncodingPlan& plan) {
  if (context_.settings.codec.method != config::CodecMethod::automatic) return;
  for (std::size_t r = 0; r < plan.choices.size(); ++r) {
    const EncodingPlan::Choice& choice = plan.choices[r];
    if (choice.method.codec != codec::CodecId::raw || choice.reason.empty()) continue;
    const std::uint64_t bytes = index.regions[r].raw_bytes();
    stay_.push_back({index.regions[r].name, choice, {.raw_bytes = bytes, .stored_bytes = bytes}, 0});
  }
}

void NodeEngine::write_down_compression(const format::VersionId& version) {
  if (!bill_.is_open()) return;
  std::vector<EncodedRegion> regions = stay_;
  for (const EncodedImage& image : encoded_) regions.insert(regions.end(), image.regions.begin(), image.regions.end());
  if (!regions.empty()) bill_.append(context_, compression_line(version, regions));
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
  DIAPAUSE_TRY_ASSIGN(const GlobalTimes times, write_to_global(context_, catalogue_, work.manifest, outgoing));
  const sys::ProcessorTime after = sys::processor_time();
  step.processor = {after.had_s - before.had_s, after.waited_s - before.waited_s};
  step.to_s = sys::monotonic_s();
  parts_.published_from_s = times.published_from_s;
  parts_.encode_share = account_.share_here(times.encode_s, times.published_from_s - step.from_s);
  learn_from(step, work.manifest);
  write_down_compression(work.manifest.version);
  // The nodes' manifests should know of it too: should the global one be lost, the images there are still found.
  if (!work.manifest.has_level(1)) return {};
  return publish(work, 4);
}

// What this process has just written there.
void NodeEngine::learn_from(GlobalStep step, const format::Manifest& manifest) {
  for (const std::uint32_t rank : context_.topology.acted_for) step.bytes += manifest.ranks[rank].image.file_bytes;
  step.how = encoded_.empty() ? Stored::as_it_is : Stored::compressed;
  for (const EncodedImage& image : encoded_) step.encode_s += image.encode_s;
  planner_.learn(step);
  step_power_.learn(step);
}

}  // namespace diapause::engine
