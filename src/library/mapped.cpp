// Restart without reading: stored regions as memory of the program, checked before or while it runs.
#include <fmt/core.h>

#include <algorithm>

#include "library/engine.hpp"

namespace diapause::library {

// A new restart makes what the one before left open, or found, unimportant.
void Engine::begin_scrub(engine::Purpose purpose) {
  scrub_.reset();
  scrub_found_.reset();
  is_scrubbed_ = purpose != engine::Purpose::map_unchecked;
  std::optional<store::ImageReader>& unchecked = restart_->fetched.unchecked;
  if (unchecked) scrub_ = std::make_unique<engine::Scrub>(std::move(*unchecked));
  unchecked.reset();
}

Result<std::byte*> Engine::map(const std::string& region) {
  if (off_) return fail(usable().error());
  if (!restart_) return fail(Code::argument, "no restart is open: regions are mapped between its begin and its end");
  const auto& stored = restart_->image().index().regions;
  const auto found = std::find_if(stored.begin(), stored.end(),
                                  [&](const format::Region& candidate) { return candidate.name == region; });
  if (found == stored.end()) {
    return fail(Code::not_found,
                fmt::format("version {} holds no region '{}'", restart_->fetched.manifest.version.number, region));
  }
  DIAPAUSE_TRY_ASSIGN(sys::PrivateMemory memory,
                      restart_->image().own_memory(static_cast<std::size_t>(found - stored.begin())));
  std::byte* const data = memory.bytes().data();
  mapped_.emplace(data, std::move(memory));
  return data;
}

Status Engine::unmap(std::byte* data) {
  const auto found = mapped_.find(data);
  if (found == mapped_.end()) return fail(Code::argument, "this is no address that was mapped, or it was unmapped");
  if (const ProtectedRegion* const region = regions_.find_in(found->second.bytes())) {
    return fail(Code::argument,
                fmt::format("region '{}' is protected in this memory: unprotect it first", region->description.name));
  }
  mapped_.erase(found);
  return {};
}

Status Engine::scrub_wait() {
  if (!is_scrubbed_) {
    Status found = agree(*context_, scrub_ ? scrub_->wait() : Status{});
    scrub_.reset();
    is_scrubbed_ = true;
    if (!found) scrub_found_ = std::move(found.error());
  }
  if (!scrub_found_) return {};
  return fail(scrub_found_->code, scrub_found_->message +
                                      "; what was mapped by the last restart may be wrong, and no checkpoint is taken "
                                      "of it: restart again");
}

}  // namespace diapause::library
