// Opening and closing an instance, and what is protected.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/engine.hpp"
#include "engine/inventory.hpp"
#include "store/names.hpp"
#include "sys/process.hpp"
#include "sys/text_file.hpp"

namespace diapause::engine {
namespace {

Status check_name(const std::string& name) {
  const bool sound = !name.empty() && name.size() <= 64 && name != "." && name != ".." &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                              c == '_' || c == '-';
                     });
  if (sound) return {};
  return fail(Code::argument,
              fmt::format("'{}' cannot name an instance: use 1 to 64 letters, digits, '.', '_' and '-'", name));
}

// Rank 0 reads the file, so that thousands of ranks do not.
Result<std::string> shared_config_text(OpenRequest& request) {
  Status mine;
  std::string text = request.config_text;
  if (request.comm->rank() == 0 && !request.config_path.empty()) {
    auto read = sys::read_text_file(*request.kernel, request.config_path);
    if (read) text = std::move(*read);
    if (!read) mine = fail(Code::config, read.error().message);
  }
  // One byte of status before the text.
  std::string message = (mine ? "+" + text : "-" + mine.error().message);
  if (request.comm->rank() != 0) message.clear();
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all, request.comm->all_gather(as_byte_view(message)));
  const std::string from_root(reinterpret_cast<const char*>(all[0].data()), all[0].size());
  if (from_root.empty() || from_root[0] == '-') return fail(Code::config, from_root.empty() ? "" : from_root.substr(1));
  return from_root.substr(1);
}

std::string absolute(const std::string& path, const std::string& working_directory) {
  return path.starts_with('/') ? path : working_directory + "/" + path;
}

}  // namespace

Engine::Engine(std::unique_ptr<Context> context)
    : context_(std::move(context)), schedule_(context_->settings), opened_s_(sys::monotonic_s()) {
  flip_random_ = context_->settings.flips.seed + context_->rank();
}

Result<std::unique_ptr<Engine>> Engine::open(OpenRequest request) {
  // Until the topology is known, errors are agreed with a context that has none.
  auto context =
      std::make_unique<Context>(Context{*request.kernel, nullptr, {}, {}, {}, request.log, request.name, {}});
  auto text = shared_config_text(request);
  if (!text) return fail(std::move(text.error()));
  Status mine = check_name(request.name);
  if (mine) {
    auto settings = config::parse_settings(*text, request.config_path, request.environment, request.user_id);
    if (settings) context->settings = std::move(*settings);
    if (!settings) mine = fail(std::move(settings.error()));
  }
  context->comm = std::move(request.comm);
  DIAPAUSE_TRY(agree(*context, mine));
  context->settings.global_path = absolute(context->settings.global_path, request.working_directory);
  DIAPAUSE_TRY_ASSIGN(context->topology, find_topology(*context->comm, context->settings, request.host_name));
  context->job_key = store::job_key(request.name, context->settings.global_path);
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> keys,
                      agree_and_gather(*context, {}, as_byte_view(context->job_key)));
  const bool same = std::all_of(keys.begin(), keys.end(), [&](const ByteVector& key) { return key == keys[0]; });
  if (!same) {
    return fail(Code::argument,
                "ranks disagree on the instance's name or the global directory; both must be the same on all");
  }
  std::unique_ptr<Engine> engine(new Engine(std::move(context)));
  DIAPAUSE_TRY(engine->start());
  return engine;
}

Status Engine::start() {
  DIAPAUSE_TRY(open_tiers());
  DIAPAUSE_TRY(lock_tiers());
  DIAPAUSE_TRY(read_catalogue());
  write_open_record();
  return {};
}

namespace {

std::string root_of(const config::Settings& settings, config::TierKind kind) {
  switch (kind) {
    case config::TierKind::memory:
      return settings.memory_path;
    case config::TierKind::local:
      return settings.local_path;
    case config::TierKind::global:
      return settings.global_path;
  }
  return "";
}

// First whoever acts for the tier makes what is missing, then the others open it. Open on all ranks or on none.
Status open_tier(Context& context, config::TierKind kind) {
  const std::string root = root_of(context.settings, kind);
  std::optional<store::Tier>& tier = context.tiers.tiers[static_cast<std::size_t>(kind)];
  tier.reset();
  const std::string node = kind == config::TierKind::global ? "" : context.topology.node_names[context.topology.node];
  const auto open = [&](bool create) -> Status {
    if (!node.empty() && !sys::is_plain_name(node)) {
      return fail(Code::config, fmt::format("'{}' cannot name a node: set node.name", node));
    }
    DIAPAUSE_TRY_ASSIGN(tier, store::Tier::open(context.kernel, kind, root, context.job_key, node, create));
    return {};
  };
  Status mine;
  if (root.empty())
    mine = fail(Code::config,
                fmt::format("there is no {} tier: set {}.path", store::tier_name(kind), store::tier_name(kind)));
  if (mine && context.acts_for(kind)) mine = open(true);
  Status all = agree(context, mine);
  if (all) {
    if (!context.acts_for(kind)) mine = open(false);
    all = agree(context, mine);
  }
  if (!all) {
    tier.reset();
    context.tiers.why_not[static_cast<std::size_t>(kind)] = all.error();
  }
  return all;
}

std::string holder_text(const Context& context) {
  return fmt::format("process {} on {}\n", sys::process_id(), context.topology.node_names[context.topology.node]);
}

Status lock_tier(Context& context, config::TierKind kind, double wait_s) {
  store::Tier* tier = context.tiers.find(kind);
  Status mine;
  if (tier != nullptr && context.acts_for(kind)) mine = tier->lock(holder_text(context), wait_s);
  if (!mine && mine.error().code == Code::busy) {
    mine.error().message +=
        "; if that is an earlier run, wait for its end; another program needs another name or directory";
  }
  return agree(context, mine);
}

}  // namespace

// A tier that cannot be opened costs only the levels that need it; without any there is nothing to do.
Status Engine::open_tiers() {
  Context& context = *context_;
  std::string problems;
  bool any = false;
  for (const config::TierKind kind : kAllTiers) {
    Status opened = open_tier(context, kind);
    if (opened) any = true;
    if (opened || root_of(context.settings, kind).empty()) continue;
    if (opened.error().code == Code::comm) return opened;
    problems += opened.error().message + "\n";
    if (context.rank() == 0) {
      context.log(Severity::warning,
                  fmt::format("the {} tier cannot be used: {}", store::tier_name(kind), opened.error().message));
    }
  }
  if (!any) return fail(Code::io, "no tier can be used:\n" + problems);
  return {};
}

Status Engine::lock_tiers() {
  for (const config::TierKind kind : kAllTiers) {
    Status locked = lock_tier(*context_, kind, context_->settings.lock_wait_s);
    if (locked) continue;
    if (locked.error().code == Code::busy || locked.error().code == Code::comm) return locked;
    context_->tiers.tiers[static_cast<std::size_t>(kind)].reset();
    context_->tiers.why_not[static_cast<std::size_t>(kind)] = locked.error();
    if (context_->rank() == 0) context_->log(Severity::warning, locked.error().message);
  }
  return {};
}

// Tiers whose last use failed are opened anew: a directory that was deleted or a file system that came back must not
// need the program's help.
void Engine::revive_tiers() {
  for (const config::TierKind kind : kAllTiers) {
    bool& suspect = suspect_[static_cast<std::size_t>(kind)];
    if (!suspect || root_of(context_->settings, kind).empty()) continue;
    suspect = false;
    if (!open_tier(*context_, kind)) continue;
    const Status locked = lock_tier(*context_, kind, 0);
    if (locked) continue;
    context_->tiers.tiers[static_cast<std::size_t>(kind)].reset();
    context_->tiers.why_not[static_cast<std::size_t>(kind)] = locked.error();
  }
}

// Learns what there is, and removes what never became a version.
Status Engine::read_catalogue() {
  Context& context = *context_;
  DIAPAUSE_TRY_ASSIGN(const std::vector<StoredVersion> stored, take_inventory(context));
  std::vector<KnownVersion> known;
  for (const StoredVersion& version : stored) {
    incarnation_ = std::max(incarnation_, version.id.incarnation + 1);
    if (!version.manifest) {
      if (!version.problems.empty()) continue;  // was one once: a restart has to say so
      for (const config::TierKind kind : kAllTiers) {
        store::Tier* tier = context.tiers.find(kind);
        if (tier == nullptr || !context.acts_for(kind)) continue;
        if (Status removed = tier->remove_version(version.id); !removed) {
          context.log(Severity::warning, removed.error().message);
        }
      }
      continue;
    }
    const auto ranks = static_cast<std::uint32_t>(version.manifest->ranks.size());
    if (ranks != context.rank_count()) {
      other_rank_count_ = ranks;
      continue;
    }
    KnownVersion one{*version.manifest, {}, false};
    for (const config::TierKind kind : kAllTiers) {
      one.in[static_cast<std::size_t>(kind)] = !version.published_on[static_cast<std::size_t>(kind)].empty();
    }
    known.push_back(std::move(one));
  }
  catalogue_.replace_all(std::move(known));
  return {};
}

// The record of this start, and, in each node's directory, which process is which rank.
void Engine::write_open_record() {
  Context& context = *context_;
  const std::int64_t pid = sys::process_id();
  const auto pids = context.comm->all_gather(as_byte_view(pid));
  if (!pids) return;
  std::string ranks;
  for (std::uint32_t r = 0; r < context.rank_count(); ++r) {
    if (context.topology.node_of_rank[r] != context.topology.node) continue;
    std::int64_t of_rank = 0;
    std::copy((*pids)[r].begin(), (*pids)[r].end(), reinterpret_cast<std::byte*>(&of_rank));
    ranks += fmt::format("{} {}\n", r, of_rank);
  }
  for (const config::TierKind kind : kNodeTiers) {
    store::Tier* tier = context.tiers.find(kind);
    if (tier == nullptr || !context.topology.is_leader()) continue;
    auto file = tier->directory().create_file(store::kRanksName);
    if (file) (void)file->write_all(as_byte_view(ranks), 0);  // for people and tools; nothing depends on it
  }
  store::Tier* global = context.tiers.find(config::TierKind::global);
  if (global == nullptr || context.rank() != 0) return;
  auto ledger = energy::Ledger::open(global->directory());
  if (!ledger) {
    context.log(Severity::warning, ledger.error().message);
    return;
  }
  ledger_ = std::move(*ledger);
  const nlohmann::json line = {{"schema", 1},
                               {"event", "open"},
                               {"time_unix_s", static_cast<double>(sys::unix_time_ns()) * 1e-9},
                               {"incarnation", incarnation_},
                               {"ranks", context.rank_count()},
                               {"nodes", context.topology.node_names.size()}};
  (void)ledger_->append(line.dump());
}

Engine::~Engine() {
  if (!ledger_) return;
  try {
    const nlohmann::json line = {
        {"schema", 1}, {"event", "close"}, {"time_unix_s", static_cast<double>(sys::unix_time_ns()) * 1e-9}};
    (void)ledger_->append(line.dump());
  } catch (...) {
    // Out of memory. A line less on the bill must not take the program down.
  }
}

Status Engine::protect(ProtectedRegion region) {
  format::Region& description = region.description;
  if (description.name.empty() || description.name.size() > 255) {
    return fail(Code::argument, "a region's name has 1 to 255 bytes");
  }
  if (description.element_bytes == 0) {
    return fail(Code::argument, fmt::format("region '{}': an element has at least 1 byte", description.name));
  }
  constexpr std::uint64_t kAddressSpaceBytes = std::uint64_t{1} << 47;
  if (description.count > kAddressSpaceBytes / description.element_bytes) {
    return fail(Code::argument, fmt::format("region '{}': {} elements of {} bytes are more than there can be",
                                            description.name, description.count, description.element_bytes));
  }
  if (region.data == nullptr && description.count > 0) {
    return fail(Code::argument,
                fmt::format("region '{}': no address for {} elements", description.name, description.count));
  }
  description.stored_bytes = description.element_bytes * description.count;
  for (ProtectedRegion& known : regions_) {
    if (known.description.name != description.name) continue;
    known = std::move(region);
    return {};
  }
  regions_.push_back(std::move(region));
  return {};
}

Status Engine::unprotect(const std::string& name) {
  const auto erased =
      std::erase_if(regions_, [&](const ProtectedRegion& region) { return region.description.name == name; });
  if (erased == 0) return fail(Code::not_found, fmt::format("region '{}' is not protected", name));
  return {};
}

}  // namespace diapause::engine
