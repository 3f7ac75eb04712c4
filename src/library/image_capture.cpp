#include "library/image_capture.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "engine/accounting/ledger_lines.hpp"
#include "engine/node/publish.hpp"
#include "sys/devices.hpp"

namespace diapause::library {
namespace {

// The source for level 4 read directly from the data, used if there is no image in a tier or none
// is wanted.
class DirectImage : public engine::RawImageSource {
 public:
  DirectImage(const engine::Context& context, capture::BlockSource& source,
              const engine::ImagePlan& plan)
      : context_(context), source_(source), plan_(plan) {}

  std::uint32_t rank() const override { return context_.rank(); }
  std::uint64_t bytes() const override { return plan_.bytes(); }
  Result<engine::GlobalFacts> write(const engine::GlobalTarget& to) override {
    if (is_written_by_mpi()) return write_by_mpi(to);
    DIAPAUSE_TRY_ASSIGN(const capture::Captured captured,
                        capture::capture_to_file(source_, plan_.index, plan_.index_offset,
                                                 plan_.identity, to.range));
    return engine::GlobalFacts{engine::facts_of(captured.header, captured.index), {}, 0};
  }

  // Writes by MPI are collective and must have a size that is known in advance, so nothing is
  // compressed.
  const format::ImageIndex* index() const override {
    return is_written_by_mpi() ? nullptr : &plan_.index;
  }
  Result<ByteView> read(std::size_t region, std::uint64_t offset, MutableBytes scratch) override {
    DIAPAUSE_TRY(source_.copy(region, offset, scratch));
    return ByteView(scratch);
  }
  Result<Whole> open() override {
    DIAPAUSE_TRY_ASSIGN(
        capture::Captured captured,
        capture::capture_in_place(source_, plan_.index, plan_.index_offset, plan_.identity));
    const engine::ImageFacts facts = engine::facts_of(captured.header, captured.index);
    bytes_ = capture::captured_bytes(std::move(captured), source_);
    return Whole{facts, bytes_.get()};
  }

 private:
  bool is_written_by_mpi() const {
    return context_.settings.global_mode == config::GlobalMode::mpi_io;
  }

  Result<engine::GlobalFacts> write_by_mpi(const engine::GlobalTarget& to) {
    const auto image = open();
    DIAPAUSE_TRY(agree(context_, image ? Status{} : fail(image.error())));
    const auto writer = context_.comm->file_writer();
    DIAPAUSE_TRY(writer->write({to.range.file.path(), to.file, to.range.begin}, *image->bytes));
    return engine::GlobalFacts{image->facts, {}, 0};
  }

  const engine::Context& context_;
  capture::BlockSource& source_;
  const engine::ImagePlan& plan_;
  std::unique_ptr<ByteSource> bytes_;
};

}  // namespace

std::unique_ptr<ImageCapture> ImageCapture::open(const engine::Context& context, engine::Host& host,
                                                 engine::LedgerWriter& ledger) {
  capture::CapturerOptions options;
  options.settings = context.settings.capture;
  options.cores = context.share.cores;
  options.drain_host =
      host.is_background() ? capture::DrainHost::own_thread : capture::DrainHost::caller;
  options.log = [&context](Severity severity, const std::string& text) {
    context.log(severity, text);
  };
  std::unique_ptr<ImageCapture> capture(new ImageCapture(context, host, ledger));
  capture->capturer_ = std::make_unique<capture::Capturer>(std::move(options));
  const std::string device = sys::device_that_writes_memory("");
  capture->are_devices_about_ = !device.empty();
  if (capture->are_devices_about_ && context.rank() == 0) {
    context.log(Severity::information,
                device +
                    " may write to memory behind the processor's back: captures use neither "
                    "write protection nor write tracking");
  }
  return capture;
}

// Begins the capture of this rank's memory; end() completes it.
Status ImageCapture::begin(const Subject& subject, const engine::ImagePlan& plan, store::Slot slot,
                           engine::Captures& captures) {
  const bool is_memory = subject.memory.size() == plan.index.regions.size();
  if (slot.mapping().empty() || !is_memory)
    return engine::add_image(captures, plan, subject.source, std::move(slot));
  if (slot.content() == 0) slot.set_content(++slot_contents_);
  captures.images.push_back({{}, std::move(slot), nullptr});
  const store::Slot& to = captures.images.front().slot;
  if (ledger_.is_open()) unreported_ = plan.identity.version;
  return capturer_->begin(
      {subject.memory, plan.index, plan.index_offset, plan.identity, to.mapping(), to.content()});
}

// Completes the capture, unless that was done before. Errors are returned and not thrown, because
// the other ranks wait for what this rank hands over.
Status ImageCapture::end(engine::Captures& captures) try {
  if (captures.images.empty() || captures.images.front().bytes != nullptr) return {};
  engine::Image& image = captures.images.front();
  DIAPAUSE_TRY_ASSIGN(const capture::Captured captured, capturer_->drain());
  image.facts = engine::facts_of(captured.header, captured.index);
  image.bytes = capture::memory_bytes(image.slot.mapping(), captured.header.file_bytes);
  return {};
} catch (const std::exception& error) {
  return fail(Code::internal, std::string("the capture: ") + error.what());
}

// Does the part of a capture that the program waits for: all of it, unless the rest can be done in
// the background.
void ImageCapture::capture_now(const Subject& subject, const engine::ImagePlan& plan,
                               store::Slot slot, engine::Captures& captures) {
  governor::PhaseGuard phase = host_.begin_capture(plan.bytes());
  captures.result = begin(subject, plan, std::move(slot), captures);
  if (captures.result && !goes_on_behind()) captures.result = end(captures);
  if (captures.result) phase.succeeded();
  captures.times.ratios = phase.ratios();
}

// Writes the ledger's line on how the last capture was made, once it is complete.
void ImageCapture::report() {
  if (!unreported_ || !drain_.is_done()) return;
  ledger_.append(context_, engine::capture_line(*unreported_, capturer_->report()));
  unreported_.reset();
}

// Completes the capture and submits it. Returns the job's number.
std::uint64_t ImageCapture::complete(engine::Captures captures) {
  const double start = sys::monotonic_s();
  if (captures.result) captures.result = end(captures);
  const double took_s = sys::monotonic_s() - start;
  captures.capture_s += took_s;
  if (captures.times.blocked_s > 0) {  // the program has continued before
    captures.times.drain_begun_s = start;
    captures.times.drain_s = took_s;
  }
  return host_.submit(std::move(captures));
}

// Completes the capture and submits it. This happens in the background if the program would have to
// wait for something.
std::uint64_t ImageCapture::hand_over(engine::Captures captures) {
  if (!captures.result || !goes_on_behind()) return complete(std::move(captures));
  const std::uint64_t number = host_.next_number();
  const double blocked_s = captures.blocked_s();
  captures.times.blocked_s = blocked_s;
  captures.blocked_s = [blocked_s] { return blocked_s; };
  const auto pending = std::make_shared<engine::Captures>(std::move(captures));
  drain_.start(context_.settings.async, [this, pending] { complete(std::move(*pending)); });
  return number;
}

// Returns the tier that a capture is made into if it has room. With work in the background that is
// the memory tier; otherwise it is the tier where the image is to lie finally.
config::TierKind ImageCapture::first_tier(const engine::Captures& captures) const {
  return host_.is_background() ? config::TierKind::memory : captures.node_tier;
}

Result<store::Slot> ImageCapture::acquire_slot(engine::Captures& captures, std::uint64_t bytes,
                                               store::SlotUse use) {
  const auto acquire = [&](config::TierKind kind) -> Result<store::Slot> {
    if (captures.decision.suspect != 0) DIAPAUSE_TRY(host_.check_tier(kind));
    return host_.acquire(kind, bytes, use);
  };
  return engine::find_slot(context_, captures,
                           {first_tier(captures), host_.is_background(), told_of_capture_in_},
                           acquire);
}

bool ImageCapture::prepare(format::ImageIndex index, int level) {
  forget_prepared();
  end_preparation();
  auto plan = engine::lay_out_image(std::move(index));
  if (!plan) return false;
  engine::Decision wanted;
  wanted.level = level;
  const engine::Captures like = engine::begin_captures(context_, wanted, 0);
  Prepared prepared{std::move(*plan), first_tier(like), {}};
  if (!like.is_direct) {
    prepared.slot = host_.try_acquire(prepared.tier, prepared.plan.bytes());
    if (!prepared.slot) return false;
  }
  prepared_.emplace(std::move(prepared));
  return true;
}

void ImageCapture::forget_prepared() {
  std::optional<Prepared> prepared = std::exchange(prepared_, std::nullopt);
  if (prepared) give_back(std::move(*prepared));
}

void ImageCapture::give_back(Prepared prepared) const {
  store::Tier* const tier = context_.tiers.find(prepared.tier);
  if (prepared.slot && tier != nullptr) tier->give_back(std::move(*prepared.slot));
}

// Prepares a capture after the decision. Each rank tries alone once more, because what it was not
// prepared for may be there by now. If that is not enough, the ranks find out together whose fault
// it is, and where there is room for all. An image for which there is none is given up.
Result<ImageCapture::Prepared> ImageCapture::prepare_together(Subject& subject,
                                                              engine::Captures& captures) {
  forget_prepared();
  using Planned = Result<engine::ImagePlan>;
  Planned planned = subject.ready ? engine::lay_out_image(std::move(subject.index))
                                  : Planned(fail(subject.ready.error()));
  Prepared prepared;
  prepared.tier = first_tier(captures);
  const bool may_try = planned && captures.decision.suspect == 0 && !captures.is_direct;
  if (may_try) prepared.slot = host_.try_acquire(prepared.tier, planned->bytes());
  const bool is_done = planned && (captures.is_direct || prepared.slot);
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t are_all_done, context_.comm->all_min(is_done ? 1 : 0));
  if (are_all_done == 0) {
    give_back(std::move(prepared));
    DIAPAUSE_TRY(agree(context_, planned ? Status{} : fail(planned.error())));
    auto slot = acquire_slot(captures, planned->bytes(), store::SlotUse::capture);
    if (!slot && slot.error().code == Code::comm) return fail(std::move(slot.error()));
    if (!slot) give_up(captures, slot.error());
    prepared = {{}, captures.capture_tier, {}};
    if (slot) prepared.slot = std::move(*slot);
  }
  prepared.plan = std::move(*planned);
  return prepared;
}

Result<Taken> ImageCapture::take(Subject subject, const engine::Decision& decision) {
  end_preparation();
  engine::Captures captures = engine::begin_captures(context_, decision, subject.called_s);
  captures.times.waited_s = subject.waited_s;
  const double start = captures.times.begun_s;
  DIAPAUSE_TRY_ASSIGN(Prepared prepared, decision.is_prepared != 0
                                             ? std::move(*std::exchange(prepared_, std::nullopt))
                                             : prepare_together(subject, captures));
  if (prepared.slot) captures.capture_tier = prepared.tier;
  engine::ImagePlan& plan = prepared.plan;
  engine::assign(plan, context_, host_.incarnation(), decision);
  Taken taken;
  taken.image_bytes = plan.bytes();
  if (prepared.slot) capture_now(subject, plan, std::move(*prepared.slot), captures);
  if (decision.level == 4 && !host_.is_background()) {
    captures.direct.push_back(std::make_unique<DirectImage>(context_, subject.source, plan));
  }
  captures.capture_s = sys::monotonic_s() - start;
  captures.blocked_s = [start] { return sys::monotonic_s() - start; };
  taken.captured = captures.result;
  taken.request = hand_over(std::move(captures));
  return taken;
}

// All ranks of the machine prepare a slot at about the same time, and its memory is lost to the
// program. A slot is prepared only if as much memory is left after that.
void ImageCapture::keep_slot_ready(format::ImageIndex index) {
  // The program loses the same processor time whether the slot is ready in time or not, but if not,
  // it waits for the rest. So this gives way to it less than other work does.
  config::AsyncSettings async = context_.settings.async;
  async.nice /= 2;
  const auto of_next = std::make_shared<format::ImageIndex>(std::move(index));
  preparation_.start(async, [this, of_next] {
    const auto index_offset = format::lay_out(*of_next);
    if (!index_offset) return;  // the checkpoint will report the error
    const std::uint64_t bytes = capture::image_bytes(*of_next, *index_offset);
    const std::uint64_t least_free = 2 * bytes * context_.share.ranks;
    host_.keep_slot_ready(bytes, least_free, stops_preparing_);
  });
}

void ImageCapture::end_preparation() {
  stops_preparing_ = true;
  preparation_.wait();
  stops_preparing_ = false;
}

// Copies the image into the slot in `captures`, which returns to its tier if this fails.
Status ImageCapture::copy(engine::Captures& captures, const engine::ImagePlan& plan,
                          capture::BlockSource& source) try {
  engine::Image& image = captures.images.front();
  DIAPAUSE_TRY(image.slot.prepare());
  const MutableBytes mapping = image.slot.mapping();
  DIAPAUSE_TRY_ASSIGN(const capture::Captured captured,
                      mapping.empty()
                          ? capture::capture_to_file(source, plan.index, plan.index_offset,
                                                     plan.identity, image.slot.file())
                          : capture::capture_to_mapping(source, plan.index, plan.index_offset,
                                                        plan.identity, mapping));
  image.facts = engine::facts_of(captured.header, captured.index);
  return {};
} catch (const std::exception& error) {
  return fail(Code::internal, std::string("the copy of an image: ") + error.what());
}

Result<Taken> ImageCapture::take_behind(std::shared_ptr<capture::BlockSource> source,
                                        format::ImageIndex index, const engine::Decision& decision,
                                        std::function<void()> handed_over) {
  end_preparation();
  auto planned = engine::plan_image(context_, host_.incarnation(), decision, std::move(index));
  DIAPAUSE_TRY(agree(context_, planned ? Status{} : fail(planned.error())));
  const auto captures = std::make_shared<engine::Captures>(
      engine::begin_captures(context_, decision, sys::monotonic_s()));
  const double start = captures->times.begun_s;
  DIAPAUSE_TRY_ASSIGN(store::Slot slot,
                      acquire_slot(*captures, planned->bytes(), store::SlotUse::later));
  captures->images.push_back({{}, std::move(slot), nullptr});
  const double blocked_s = sys::monotonic_s() - start;
  captures->capture_s = captures->times.blocked_s = blocked_s;
  captures->blocked_s = [blocked_s] { return blocked_s; };
  Taken taken;
  taken.image_bytes = planned->bytes();
  taken.request = host_.next_number();
  const auto plan = std::make_shared<engine::ImagePlan>(std::move(*planned));
  drain_.start(context_.settings.async,
               [this, captures, plan, source, handed_over = std::move(handed_over)] {
                 const double copied_from_s = sys::monotonic_s();
                 captures->result = copy(*captures, *plan, *source);
                 captures->times.drain_begun_s = copied_from_s;
                 captures->times.drain_s = sys::monotonic_s() - copied_from_s;
                 captures->capture_s += captures->times.drain_s;
                 host_.submit(std::move(*captures));
                 handed_over();
               });
  return taken;
}

std::uint64_t ImageCapture::put_back(const format::Manifest& manifest, config::TierKind tier) {
  end_preparation();
  engine::Captures captures;
  captures.completes = manifest.version;
  captures.decision.number = manifest.version.number;
  captures.decision.level = manifest.deepest_level();
  captures.node_tier = captures.capture_tier = tier;
  captures.times.called_s = captures.times.begun_s = sys::monotonic_s();
  captures.blocked_s = [] { return 0.0; };
  return host_.submit(std::move(captures));
}

}  // namespace diapause::library
