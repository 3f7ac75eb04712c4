// The restart: which version, its images, and back into the program's memory.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "engine/engine.hpp"
#include "engine/ledger_lines.hpp"
#include "format/checksum.hpp"
#include "sys/process.hpp"

namespace diapause::engine {
namespace {

// The data of an image that was fetched, to be captured again.
class ReaderSource : public capture::BlockSource {
 public:
  explicit ReaderSource(store::ImageReader& reader) : reader_(reader) {}
  Result<std::uint64_t> copy(std::size_t region, std::uint64_t offset, MutableBytes to) override {
    if (!reader_.index().regions[region].is_raw()) {
      return fail(Code::internal, reader_.name() + ": a compressed image cannot be captured again as it lies");
    }
    DIAPAUSE_TRY_ASSIGN(const ByteView view, reader_.bytes().view(reader_.index().regions[region].offset + offset, to));
    if (view.data() != to.data()) std::memcpy(to.data(), view.data(), to.size());
    return format::checksum64(to);
  }

 private:
  store::ImageReader& reader_;
};

Status check_fits(const format::Region& stored, const format::Region& wanted) {
  if (stored.type == wanted.type && stored.element_bytes == wanted.element_bytes && stored.count == wanted.count) {
    return {};
  }
  return fail(
      Code::mismatch,
      fmt::format(
          "region '{}' is stored as {} elements of {} ({} bytes each) and protected as {} of {} ({} bytes each)",
          stored.name, stored.count, format::element_type_name(stored.type), stored.element_bytes, wanted.count,
          format::element_type_name(wanted.type), wanted.element_bytes));
}

Status agree_on_call(Context& context, std::uint64_t version, Purpose purpose) {
  const std::uint64_t mine[] = {version, static_cast<std::uint64_t>(purpose)};
  std::uint64_t of_root[] = {mine[0], mine[1]};
  DIAPAUSE_TRY(context.comm->broadcast(std::as_writable_bytes(std::span(of_root)), 0));
  if (std::ranges::equal(mine, of_root)) return agree(context, {});
  return agree(context, fail(Code::argument,
                             "asks for another version, or another way to restart, than rank 0: all must ask alike"));
}

std::string sentence(const format::VersionId& id, const std::string& why) {
  return fmt::format("version {}: {}\n", id.number, why);
}

RestartInfo info_of(const Restart& restart, std::uint32_t rank) {
  const format::Manifest& manifest = restart.fetched.manifest;
  return {manifest.version.number, manifest.deepest_level(), restart.stepped_back, manifest.ranks[rank].protected_bytes,
          restart.fetched.greatest_error};
}

// `refusal`: of the versions that are there; Code::not_found: there are none.
Error why_nothing(const Context& context, std::uint64_t version, Code refusal, const std::optional<Error>& unread,
                  const std::string& reason) {
  if (refusal == Code::not_found && unread) {
    return {unread->code,
            fmt::format("{}\nit may hold checkpoints of '{}', and no other tier does: make it readable, or, to "
                        "start from the beginning, take it out of the configuration",
                        unread->message, context.job)};
  }
  if (refusal == Code::not_found) {
    return {refusal, version == Engine::kNewest ? fmt::format("there are no checkpoints of '{}' yet", context.job)
                                                : fmt::format("there is no version {} of '{}'", version, context.job)};
  }
  const std::string advice =
      refusal != Code::corrupt
          ? "make readable what cannot be read, and start again"
          : fmt::format("to start from the beginning, remove it with 'diapause prune {} --all', or use another name",
                        context.job);
  return {refusal, fmt::format("nothing of '{}' can be restored:\n{}{}", context.job, reason, advice)};
}

}  // namespace

Status Engine::restart_begin(std::uint64_t version, RestartInfo& info, Purpose purpose) {
  info = {};
  restart_reason_.clear();
  if (off_) return usable();
  if (restart_) return fail(Code::argument, "a restart is open already: end it with restart_end first");
  const double start = sys::monotonic_s();
  finish_flights();
  DIAPAUSE_TRY(agree_on_call(*context_, version, purpose));
  DIAPAUSE_TRY_ASSIGN(Inventory inventory, take_inventory(*context_));
  const double listed = sys::monotonic_s();

  Code refusal = Code::not_found;
  bool is_stepping_back = inventory.unread.has_value();
  std::vector<format::VersionId> damaged;
  if (inventory.unread) restart_reason_ += inventory.unread->message + "\n";
  // What cannot be read may be sound: it is not given up.
  const auto step_over = [&](const format::VersionId& id, const Error& why) {
    restart_reason_ += sentence(id, why.message);
    if (refusal == Code::not_found || why.code != Code::corrupt) refusal = why.code;
    if (why.code == Code::corrupt) damaged.push_back(id);
    is_stepping_back = true;
  };
  for (StoredVersion& candidate : inventory.versions) {
    if (version != kNewest && candidate.id.number != version) continue;
    if (!candidate.manifest) {
      // Without a manifest and without a damaged one it never was a version: a checkpoint that was cut short.
      if (candidate.problems.empty()) continue;
      step_over(candidate.id, {candidate.is_unreadable ? Code::io : Code::corrupt, candidate.problems.front()});
      continue;
    }
    if (candidate.manifest->ranks.size() != context_->rank_count()) {
      restart_reason_ += sentence(candidate.id, fmt::format("written by {} ranks, and this run has {}",
                                                            candidate.manifest->ranks.size(), context_->rank_count()));
      return fail(Code::mismatch, restart_reason_ + "run with as many ranks, or open it under another name");
    }
    auto fetched = fetch(*context_, candidate, purpose);
    if (!fetched) {
      if (fetched.error().code == Code::comm) {
        off_ = fetched.error();
        return fail(std::move(fetched.error()));
      }
      step_over(candidate.id, fetched.error());
      continue;
    }
    for (const format::VersionId& id : damaged) host_->reject(id);
    const format::VersionId id = fetched->manifest.version;
    fetched->phases.push_back(make_phase("inventory", start, listed));
    restart_.emplace(Restart{std::move(*fetched), start, is_stepping_back});
    begin_scrub(purpose);
    host_->pin(id);
    lossy_restarts_ = restart_->fetched.manifest.lossy_restarts;
    info = info_of(*restart_, context_->rank());
    return {};
  }
  return fail(why_nothing(*context_, version, refusal, inventory.unread, restart_reason_));
}

Status Engine::restore(const std::vector<std::string>& names) {
  if (off_) return usable();
  if (!restart_) return fail(Code::argument, "no restart is open: call restart_begin first");
  DIAPAUSE_TRY(scrub_wait());
  std::vector<std::byte*> targets(restart_->image().index().regions.size());
  const auto prepare = [&](const ProtectedRegion& region) -> Status {
    const auto& stored = restart_->image().index().regions;
    const auto found = std::find_if(stored.begin(), stored.end(), [&](const format::Region& candidate) {
      return candidate.name == region.description.name;
    });
    if (found == stored.end()) {
      return fail(Code::mismatch, fmt::format("region '{}' is protected, but version {} does not hold it",
                                              region.description.name, restart_->fetched.manifest.version.number));
    }
    DIAPAUSE_TRY(check_fits(*found, region.description));
    targets[static_cast<std::size_t>(found - stored.begin())] = region.data;
    return {};
  };
  Status mine;
  for (const ProtectedRegion& region : regions_) {
    const bool wanted = names.empty() || std::find(names.begin(), names.end(), region.description.name) != names.end();
    if (mine && wanted) mine = prepare(region);
  }
  for (const std::string& name : names) {
    const auto region = protected_region(name);
    if (mine && !region) mine = fail(region.error());
  }
  // Nothing is written on any rank unless everything fits on all.
  DIAPAUSE_TRY(agree(*context_, mine));
  const double start = sys::monotonic_s();
  Status restored = agree(*context_, restart_->image().deliver(targets));
  restart_->fetched.phases.push_back(make_phase("restore", start, sys::monotonic_s()));
  if (restored && on_restore_) restored = agree(*context_, on_restore_());
  return restored;
}

// Takes the fetched version again, as a checkpoint of the same number under the placement of today: every level it had
// holds again, and until that is published the old files stay.
Status Engine::heal() {
  DIAPAUSE_TRY(scrub_wait());
  const format::Manifest& old = restart_->fetched.manifest;
  CheckpointInfo info;
  DIAPAUSE_TRY_ASSIGN(const Decision decision, begin(old.version.number, old.deepest_level(), 0, info));
  format::ImageIndex index = restart_->image().index();
  ReaderSource source(restart_->image());
  DIAPAUSE_TRY(checkpoint_from({source, std::move(index), {}}, decision, info));
  finish_flights();
  return taken_.back().progress.result;
}

Status Engine::restart_end() {
  if (off_) return usable();
  if (!restart_) return fail(Code::argument, "no restart is open");
  drain_.wait();
  for (Phase& phase : restart_->fetched.phases) {
    phase.version = restart_->fetched.manifest.version.number;
    phase.bytes = restart_->fetched.manifest.protected_bytes();
  }
  // Before a checkpoint settles the account of the time in which they were.
  host_->add(restart_->fetched.phases);
  if (restart_->fetched.needs_healing) {
    if (const Status healed = heal(); !healed) {
      context_->log(Severity::warning,
                    "the redundancy lost in the failure could not be put back: " + healed.error().message);
    }
  }
  if (restart_->fetched.greatest_error > 0) ++lossy_restarts_;
  if (bill_.is_open()) {
    bill_.append(*context_, restart_line({host_->incarnation(), &restart_->fetched.manifest, restart_->stepped_back,
                                          restart_reason_, restart_->fetched.sources, restart_->fetched.needs_healing,
                                          sys::monotonic_s() - restart_->started_s, restart_->fetched.greatest_error}));
  }
  host_->pin(std::nullopt);
  restart_.reset();
  return {};
}

}  // namespace diapause::engine
