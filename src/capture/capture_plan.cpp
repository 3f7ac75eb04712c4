#include "capture/capture_plan.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "sys/mappings.hpp"
#include "sys/unseen_writers.hpp"

namespace diapause::capture {
namespace {

using policy::CaptureMethod;

// Returns the regions that share bytes with another region. Their pages cannot be tracked or
// protected for both.
std::set<const RegionCapture*> overlapping(const std::vector<RegionCapture>& regions) {
  std::vector<const RegionCapture*> by_address;
  for (const RegionCapture& region : regions) {
    if (!region.memory().empty()) by_address.push_back(&region);
  }
  std::ranges::sort(by_address, {},
                    [](const RegionCapture* region) { return region->source->data; });
  const auto end = [](const RegionCapture* region) {
    return region->source->data + region->memory().size();
  };
  std::set<const RegionCapture*> found;
  const RegionCapture* furthest = nullptr;
  for (const RegionCapture* region : by_address) {
    if (furthest != nullptr && region->source->data < end(furthest))
      found.insert({region, furthest});
    if (furthest == nullptr || end(region) > end(furthest)) furthest = region;
  }
  return found;
}

// The state of this process before anything is protected, so that later changes must cause faults.
struct Environment {
  Result<sys::Mappings> mappings = sys::Mappings::read();
  sys::UnseenWriters writers = sys::find_unseen_writers();
};

// Returns why pages of the region can be neither protected nor tracked; empty if they can.
std::string refusal_of(const RegionCapture& region, const Environment& environment) {
  if (region.source->may_be_written_by_devices) return "devices may write to it";
  const sys::PageRange pages = sys::whole_pages_in(region.memory());
  if (pages.is_empty()) return "it has no whole page";
  if (!environment.mappings) return environment.mappings.error().message;
  if (!environment.mappings->is_private_anonymous(pages))
    return "it is not private anonymous memory";
  return environment.writers.past_protection;
}

CopyMode mode_of(CaptureMethod method, bool tracked) {
  switch (method) {
    case CaptureMethod::copy:
      return CopyMode::copy;
    case CaptureMethod::copy_on_write:
      return CopyMode::copy_on_write;
    case CaptureMethod::incremental:
      return tracked ? CopyMode::track : CopyMode::compare;
    case CaptureMethod::background:
      return CopyMode::background;
  }
  return CopyMode::copy;
}

void set(RegionCapture& region, CopyMode mode, policy::CaptureChoice choice) {
  region.mode = mode;
  region.report->method = choice.method;
  region.report->reason = std::move(choice.reason);
}

// Plans a region whose declaration leaves no choice. Returns false for any other.
bool plan_declared(RegionCapture& region, DrainHost drain_host) {
  const Declaration declaration = region.source->declaration;
  if (declaration == Declaration::constant && region.old != nullptr) {
    set(region, CopyMode::carry,
        {CaptureMethod::incremental, "declared constant, and the slot holds it"});
    return true;
  }
  if (declaration == Declaration::changing || drain_host == DrainHost::caller) return false;
  const char* reason =
      declaration == Declaration::constant ? "declared constant" : "declared stable";
  set(region, CopyMode::background, {CaptureMethod::background, reason});
  return true;
}

}  // namespace

void plan_captures(std::vector<RegionCapture>& regions, const PlanInputs& inputs) {
  std::optional<Environment> environment;
  const std::set<const RegionCapture*> shared = overlapping(regions);
  for (RegionCapture& region : regions) {
    if (plan_declared(region, inputs.drain_host)) continue;
    policy::RegionFacts facts;
    facts.bytes = region.memory().size();
    facts.present = region.history->method;
    facts.changed = region.history->changed;
    if (!policy::asks_for_refusals(inputs.strategy, facts)) {
      set(region, CopyMode::copy, policy::choose_capture(inputs.strategy, facts, inputs.costs));
      continue;
    }
    if (!environment) environment.emplace();
    std::string refusal = refusal_of(region, *environment);
    if (shared.contains(&region)) refusal = "another region has some of its bytes";
    facts.tracking_refusal = refusal.empty() ? inputs.tracking_refusal : refusal;
    facts.copy_on_write_refusal = refusal.empty() ? inputs.protection_refusal : refusal;
    if (facts.copy_on_write_refusal.empty())
      facts.copy_on_write_refusal = environment->writers.cannot_wait;
    if (inputs.drain_host == DrainHost::caller)
      facts.copy_on_write_refusal = "the program waits for the whole copy";
    policy::CaptureChoice choice = policy::choose_capture(inputs.strategy, facts, inputs.costs);
    const CopyMode mode = mode_of(choice.method, facts.tracking_refusal.empty());
    set(region, mode, std::move(choice));
  }
}

}  // namespace diapause::capture
