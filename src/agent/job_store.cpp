#include "agent/job_store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "capture/capture.hpp"
#include "comm/self_comm.hpp"
#include "engine/accounting/ledger_lines.hpp"
#include "engine/job/identity.hpp"
#include "engine/job/inventory.hpp"
#include "store/image_reader.hpp"
#include "store/names.hpp"
#include "sys/path.hpp"
#include "sys/process.hpp"
#include "sys/text_file.hpp"

namespace diapause::agent {
namespace {

bool is_sound_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && name != "." && name != ".." &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

}  // namespace

Result<config::Settings> read_settings(const std::string& config_path,
                                       const config::Environment& environment) {
  std::string path = config_path;
  for (const auto& [name, value] : environment) {
    if (path.empty() && name == "DIAPAUSE_CONFIG") path = value;
  }
  std::string text;
  if (!path.empty()) {
    DIAPAUSE_TRY_ASSIGN(text, sys::read_text_file(sys::real_kernel(), path));
  }
  DIAPAUSE_TRY_ASSIGN(config::Settings settings,
                      config::parse_settings(text, path, environment, sys::user_id()));
  DIAPAUSE_TRY_ASSIGN(settings.global_path, sys::absolute_path(settings.global_path));
  return settings;
}

std::string door_directory(const config::Settings& settings) {
  return settings.memory_path + "-agents";
}

std::string door_name(const std::string& job, const config::Settings& settings) {
  return store::old_job_key(job, settings.global_path);
}

Status JobStore::open_context(const StoreRequest& request, Ranks ranks) {
  if (!is_sound_name(request.name)) {
    return fail(Code::argument,
                fmt::format("'{}' cannot name a job: use 1 to 64 letters, digits, '.', '_' and '-'",
                            request.name));
  }
  DIAPAUSE_TRY_ASSIGN(config::Settings settings,
                      read_settings(request.config_path, request.environment));
  // This process runs beside the job and is not part of it.
  settings.async.mode = config::AsyncMode::off;
  settings.global_mode = config::GlobalMode::staged;
  settings.ranks_per_node = ranks.emulated_nodes.empty() ? 0 : 1;
  settings.node_names = std::move(ranks.emulated_nodes);
  if (ranks.comm == nullptr) ranks.comm = comm::make_self_comm();
  context_ = std::make_unique<engine::Context>(engine::Context{sys::real_kernel(),
                                                               std::move(ranks.comm),
                                                               std::move(settings),
                                                               {},
                                                               {},
                                                               request.log,
                                                               request.name});
  DIAPAUSE_TRY_ASSIGN(context_->topology,
                      engine::find_topology(*context_->comm, context_->settings, sys::host_name()));
  DIAPAUSE_TRY_ASSIGN(context_->identity, engine::find_identity(*context_));
  context_->share.cores = sys::usable_cores();
  return {};
}

Result<std::unique_ptr<JobStore>> JobStore::open(const StoreRequest& request, Ranks ranks) {
  std::unique_ptr<JobStore> store(new JobStore);
  DIAPAUSE_TRY(store->open_context(request, std::move(ranks)));
  engine::Context& context = *store->context_;
  DIAPAUSE_TRY_ASSIGN(store->engine_, engine::NodeEngine::open(context, store->ledger_));
  if (store->engine_->other_rank_count() != 0) {
    return fail(Code::mismatch, fmt::format("'{}' names a job of {} nodes or ranks, and this one "
                                            "has {}: give as many hosts, or use another "
                                            "name",
                                            request.name, store->engine_->other_rank_count(),
                                            context.rank_count()));
  }
  store->ledger_.open(context);
  if (store->ledger_.is_open()) {
    store->ledger_.append(
        context, engine::open_line({store->engine_->incarnation(), context.rank_count(),
                                    context.topology.node_names.size(), engine::Worker::call,
                                    engine::slurm_job()}));
  }
  DIAPAUSE_TRY_ASSIGN(const engine::Inventory inventory, engine::take_inventory(context));
  store->doubts_.emplace(door_directory(context.settings) + "/" +
                         door_name(request.name, context.settings) + "-doubted");
  for (const engine::StoredVersion& one : inventory.versions) {
    store->next_version_ = std::max(store->next_version_, one.id.number + 1);
  }
  return store;
}

JobStore::~JobStore() {
  if (engine_ != nullptr) engine_->end_period();
  if (ledger_.is_open() && !was_killed_ && engine_ != nullptr)
    ledger_.append(*context_, engine::close_line(engine_->incarnation()));
  if (context_ != nullptr) ledger_.write_last(*context_);
}

Result<engine::Captures> JobStore::capture(int level, format::ImageIndex index,
                                           capture::BlockSource& source,
                                           std::optional<Incremental> incremental) {
  const double called_s = sys::monotonic_s();
  engine::DecisionRequest request;
  request.number = next_version_;
  request.level = level;
  request.ends_period = true;
  DIAPAUSE_TRY_ASSIGN(const engine::Decision decision, decider_.decide(*context_, request));
  ++next_version_;
  engine::Captures captures = engine::begin_captures(*context_, decision, called_s);
  auto planned = engine::plan_image(*context_, engine_->incarnation(), decision, std::move(index));
  DIAPAUSE_TRY(engine::agree(*context_, planned ? Status{} : fail(planned.error())));
  const engine::ImagePlan& plan = *planned;
  DIAPAUSE_TRY_ASSIGN(store::Slot slot, acquire_slot(captures, plan.bytes()));
  Status added = incremental ? add_increment(captures, plan, source, *incremental, std::move(slot))
                             : add_image(captures, plan, source, std::move(slot));
  if (!added) {
    engine::give_up(captures, std::move(added.error()));
  }
  captures.capture_s = sys::monotonic_s() - captures.times.begun_s;
  captures.blocked_s = [blocked_s = captures.capture_s] { return blocked_s; };
  return captures;
}

Result<store::Slot> JobStore::acquire_slot(engine::Captures& captures, std::uint64_t bytes) {
  const auto acquire = [&](config::TierKind kind) -> Result<store::Slot> {
    DIAPAUSE_TRY(engine_->suspect_if_lost(kind));
    DIAPAUSE_TRY_ASSIGN(std::vector<store::Slot> slots, engine_->acquire(kind, {bytes}));
    return std::move(slots.front());
  };
  auto slot = engine::find_slot(*context_, captures,
                                {captures.node_tier, true, told_of_capture_in_}, acquire);
  captures.is_direct = captures.capture_tier == config::TierKind::global;
  return slot;
}

Status JobStore::add_increment(engine::Captures& captures, const engine::ImagePlan& plan,
                               capture::BlockSource& source, const Incremental& incremental,
                               store::Slot slot) {
  if (slot.mapping().empty())
    return add_image(captures, plan, source, std::move(slot));  // it is written front to back
  const std::uint64_t content = slot.content() != 0 ? slot.content() : ++contents_;
  incremental.increments.use(incremental.dump, source, slot.content(), plan.index);
  DIAPAUSE_TRY(add_image(captures, plan, incremental.increments, std::move(slot)));
  incremental.increments.keep(content);
  captures.images.front().slot.set_content(content);
  return {};
}

Status JobStore::add_image(engine::Captures& captures, const engine::ImagePlan& plan,
                           capture::BlockSource& source, store::Slot slot) {
  DIAPAUSE_TRY(engine::add_image(captures, plan, source, std::move(slot)));
  engine::Image& image = captures.images.front();
  if (!image.slot.mapping().empty()) return {};
  // The source is gone when the job runs on. All that it gave is in the file, so the image is read
  // from there.
  DIAPAUSE_TRY_ASSIGN(sys::File again, sys::open_again(image.slot.file()));
  image.bytes = store::file_bytes(std::move(again), 0, image.bytes->size());
  return {};
}

Status JobStore::give_up_older(bool is_doubtful) {
  if (!older_) return {};
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t any_doubtful,
                      context_->comm->all_max(is_doubtful ? 1 : 0));
  if (any_doubtful != 0) return {};
  older_.reset();
  engine_->spare(std::nullopt);
  return {};
}

Result<std::uint64_t> JobStore::doubt() {
  if (!newest_) return fail(Code::not_found, "the job has no version");
  DIAPAUSE_TRY(doubts_->add(*newest_));
  return newest_->number;
}

Result<Stored> JobStore::store(engine::Captures captures) {
  DIAPAUSE_TRY(engine_->suspect_if_lost(config::TierKind::global));
  engine_->revive_tiers();
  const std::uint64_t version = captures.decision.number;
  if (!older_) older_ = newest_;
  if (older_) engine_->spare(older_);
  engine::Outcome outcome = engine_->checkpoint(std::move(captures), [](std::uint32_t) {});
  if (outcome.manifest.levels != 0) {
    newest_ = outcome.manifest.version;
    doubts_->clear();
  }
  if (!outcome.result) return fail(std::move(outcome.result.error()));
  return Stored{version, outcome.manifest.deepest_level(), outcome.manifest.protected_bytes()};
}

// An image that turns out to be damaged is replaced by one from elsewhere, until nothing is left.
Result<engine::FetchedVersion> JobStore::get_usable(const Check& check) {
  while (true) {
    DIAPAUSE_TRY_ASSIGN(engine::FetchedVersion fetched, fetch_->get());
    const double fetched_s = sys::monotonic_s();
    const Status own = check(fetched.image);
    fetched.phases.push_back(engine::make_phase("verify", fetched_s, sys::monotonic_s()));
    const bool is_damaged = !own && own.error().code == Code::corrupt;
    DIAPAUSE_TRY_ASSIGN(const bool sound, fetch_->was_sound(is_damaged ? own : Status{}));
    if (!sound) continue;
    DIAPAUSE_TRY(engine::agree(*context_, own));
    return fetched;
  }
}

// What the first agent has noted counts for all.
Status JobStore::put_last_what_is_doubted(engine::Inventory& inventory,
                                          std::vector<std::string>& reasons) const {
  std::vector<std::uint64_t> trusted(inventory.versions.size(), 1);
  for (std::size_t i = 0; i < trusted.size(); ++i) {
    const engine::StoredVersion& one = inventory.versions[i];
    if (context_->rank() == 0 && one.manifest && doubts_->hold(one.id)) trusted[i] = 0;
  }
  DIAPAUSE_TRY(context_->comm->all_min(trusted));
  std::vector<engine::StoredVersion> last;
  std::vector<engine::StoredVersion> sorted;
  for (std::size_t i = 0; i < trusted.size(); ++i) {
    (trusted[i] != 0 ? sorted : last).push_back(std::move(inventory.versions[i]));
  }
  const bool is_other = std::ranges::any_of(
      sorted, [](const engine::StoredVersion& one) { return one.manifest.has_value(); });
  for (engine::StoredVersion& one : last) {
    if (is_other) {
      reasons.push_back(fmt::format(
          "version {0}: the job failed soon after it, so an older one is taken if there is one; "
          "'diapause restart {1} {0}' takes it all the same",
          one.id.number, context_->job));
    }
    sorted.push_back(std::move(one));
  }
  inventory.versions = std::move(sorted);
  return {};
}

Result<bool> JobStore::was_sound(const Status& mine) { return fetch_->was_sound(mine); }

Result<engine::FetchedVersion> JobStore::fetch_other_copy(const Status& mine) {
  DIAPAUSE_TRY(fetch_->was_sound(mine));
  return fetch_->get();
}

Result<engine::FetchedVersion> JobStore::fetch(std::optional<std::uint64_t> version,
                                               const Check& check, engine::Purpose purpose) {
  if (fetched_) {
    auto again = get_usable(check);
    if (again) return again;
    lost_.emplace(*std::exchange(fetched_, std::nullopt), again.error().message);
  }
  const double asked_s = sys::monotonic_s();
  DIAPAUSE_TRY_ASSIGN(engine::Inventory inventory, engine::take_inventory(*context_));
  const engine::Phase listing = engine::make_phase("inventory", asked_s, sys::monotonic_s());
  std::vector<std::string> reasons;
  if (inventory.unread) reasons.push_back(inventory.unread->message);
  bool is_any = false;
  if (!version) DIAPAUSE_TRY(put_last_what_is_doubted(inventory, reasons));
  for (engine::StoredVersion& candidate : inventory.versions) {
    if (version && candidate.id.number != *version) continue;
    if (!candidate.manifest && candidate.problems.empty()) continue;  // it never became a version
    is_any = true;
    std::string why = candidate.manifest ? "" : candidate.problems.front();
    const auto lost = lost_.find(candidate.id);
    if (lost != lost_.end()) {
      why = lost->second;
    } else if (candidate.manifest) {
      fetch_.emplace(*context_, candidate, purpose);
      auto fetched = get_usable(check);
      if (fetched) {
        if (!reasons.empty() && context_->rank() == 0)
          context_->log(Severity::warning, fmt::format("{}", fmt::join(reasons, "\n")));
        passed_over_ = fmt::format("{}", fmt::join(reasons, "; "));
        fetched_ = candidate.id;
        fetched->phases.insert(fetched->phases.begin(), listing);
        return fetched;
      }
      // What is lacking now says nothing about the version: an older one is no way out.
      const Code code = fetched.error().code;
      if (code == Code::again || code == Code::memory) return fail(std::move(fetched.error()));
      why = fetched.error().message;
    }
    reasons.push_back(fmt::format("version {}: {}", candidate.id.number, why));
  }
  if (is_any || inventory.unread)
    return fail(Code::corrupt,
                fmt::format("nothing of the job can be restored:\n{}", fmt::join(reasons, "\n")));
  return fail(Code::not_found, fmt::format("there are no checkpoints of '{}' yet", context_->job));
}

void JobStore::note_restart(const engine::FetchedVersion& fetched, const RestartTimes& times) {
  newest_ = fetched.manifest.version;
  const double now_s = sys::monotonic_s();
  std::vector<engine::Phase> phases = fetched.phases;
  phases.push_back(engine::make_phase("restore", times.restoring_s, now_s));
  for (engine::Phase& phase : phases) {
    phase.version = fetched.manifest.version.number;
    phase.bytes = fetched.manifest.protected_bytes();
    engine_->add(phase);
  }
  if (!ledger_.is_open()) return;
  engine::RestartLine line;
  line.incarnation = engine_->incarnation();
  line.manifest = &fetched.manifest;
  line.stepped_back = !passed_over_.empty();
  line.reason = passed_over_;
  line.sources = fetched.sources;
  line.seconds = now_s - times.begun_s;
  ledger_.append(*context_, engine::restart_line(line));
}

Status JobStore::finish() {
  doubts_->clear();
  return engine_->finish();
}

void JobStore::note_end(int status) {
  constexpr int kNoSignal = 128, kSignals = 64;
  was_killed_ = status > kNoSignal && status <= kNoSignal + kSignals;
}

}  // namespace diapause::agent
