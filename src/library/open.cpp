// Opens and closes an instance, and protects regions.
#include <fmt/format.h>

#include <algorithm>

#include "engine/accounting/ledger_lines.hpp"
#include "engine/job/gather.hpp"
#include "engine/job/identity.hpp"
#include "library/engine.hpp"
#include "store/identity.hpp"
#include "store/names.hpp"
#include "sys/process.hpp"
#include "sys/text_file.hpp"

namespace diapause::library {
namespace {

Status check_name(const std::string& name) {
  const bool sound = !name.empty() && name.size() <= 64 && name != "." && name != ".." &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
                     });
  if (sound) return {};
  return fail(
      Code::argument,
      fmt::format("'{}' cannot name an instance: use 1 to 64 letters, digits, '.', '_' and '-'",
                  name));
}

// Only rank 0 reads the file, so that thousands of ranks do not.
Result<std::string> shared_config_text(OpenRequest& request) {
  Status mine;
  std::string text = request.config_text;
  if (request.comm->rank() == 0 && !request.config_path.empty()) {
    auto read = sys::read_text_file(*request.kernel, request.config_path);
    if (read) text = std::move(*read);
    if (!read) mine = fail(Code::config, read.error().message);
  }
  // The message is one byte of status and the text.
  std::string message = (mine ? "+" + text : "-" + mine.error().message);
  if (request.comm->rank() != 0) message.clear();
  DIAPAUSE_TRY_ASSIGN(const std::vector<std::string> all,
                      engine::gather_one(*request.comm, message));
  const std::string& from_root = all[0];
  if (from_root.empty() || from_root[0] == '-')
    return fail(Code::config, from_root.empty() ? "" : from_root.substr(1));
  return from_root.substr(1);
}

Status make_absolute(std::string& path, const Result<std::string>& working_directory) {
  if (path.starts_with('/')) return {};
  if (!working_directory) return fail(working_directory.error());
  path = *working_directory + "/" + path;
  return {};
}

}  // namespace

Engine::Engine(std::unique_ptr<engine::Context> context)
    : context_(std::move(context)),
      schedule_(context_->settings),
      flips_(context_->settings.flips, context_->rank()),
      opened_s_(sys::monotonic_s()) {}

namespace {

// Direct writing reads the program's memory, and must therefore happen in the program's calls.
bool writes_directly(const engine::Context& context) {
  return context.settings.global_mode != config::GlobalMode::staged;
}

Result<std::unique_ptr<engine::Host>> open_inline_host(engine::Context& context,
                                                       engine::LedgerWriter& ledger,
                                                       const std::string& why) {
  if (context.rank() == 0) {
    context.log(Severity::warning, "checkpoints hold the program up until they are done: " + why);
  }
  return open_inline_host(context, ledger);
}

// Opens a host in the background if that is asked for and possible. Otherwise opens one that works
// in the program's calls, and logs why.
Result<std::unique_ptr<engine::Host>> open_host(engine::Context& context,
                                                engine::LedgerWriter& ledger) {
  if (context.settings.async.mode == config::AsyncMode::off || writes_directly(context)) {
    return open_inline_host(context, ledger);
  }
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t all,
                      context.comm->all_min(context.comm->is_concurrent() ? 1 : 0));
  auto host = open_thread_host(
      context, ledger,
      all == 1 ? engine::ThreadsMay::communicate : engine::ThreadsMay::not_communicate);
  // On a single node the background has nobody to communicate with.
  if (host && all == 0 && context.rank() == 0 && context.topology.node_names.size() > 1) {
    context.log(Severity::warning,
                "MPI was not initialised with MPI_THREAD_MULTIPLE: what the background has to "
                "communicate is done in "
                "the program's next calls of Diapause; to have it done beside the program, "
                "initialise MPI with "
                "MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) or set async.mode = "
                "\"rank\"");
  }
  if (host || !engine::can_go_inline(host.error())) return host;
  return open_inline_host(context, ledger, host.error().message);
}

// Opens the host of a computing rank if each node has a dedicated rank. The dedicated ranks make
// the same collective calls over `whole` in DedicatedRank::open().
Result<std::unique_ptr<engine::Host>> open_host_of_rank(engine::Context& context,
                                                        engine::LedgerWriter& ledger,
                                                        const engine::Context& whole) {
  std::string why = "global.mode asks for direct writing";
  if (!writes_directly(context)) {
    auto host = open_rank_host(context, whole);
    if (host || !engine::can_go_inline(host.error())) return host;
    why = host.error().message;
  }
  DIAPAUSE_TRY(agree(whole, {}));  // from here on the dedicated ranks hold no tier
  return open_inline_host(context, ledger, why);
}

}  // namespace

namespace {

void tell_of_unknown_variables(const engine::Context& context) {
  const std::vector<std::string>& names = context.settings.unknown_variables;
  if (names.empty()) return;
  context.log(Severity::information,
              fmt::format("nothing is known of the environment variable{} {}: not used "
                          "(docs/configuration.md lists "
                          "those that are)",
                          names.size() == 1 ? "" : "s", fmt::join(names, ", ")));
}

// Another user can make a directory with the default name of this user's memory tier. If so,
// another name is chosen.
void choose_memory_root(engine::Context& context, std::uint32_t user_id) {
  std::string& path = context.settings.memory_path;
  if (path != config::default_settings(user_id).memory_path) return;
  const std::string own = store::own_root(context.kernel, path);
  if (own != path && context.comm->node_leader() == context.comm->rank()) {
    context.log(Severity::warning,
                fmt::format("{} is not this user's: the memory tier is {}", path, own));
  }
  path = own;
}

// Prepares everything that ranks must agree on before any tier is touched.
Result<std::unique_ptr<engine::Context>> open_context(OpenRequest& request) {
  // Until the topology is known, errors are agreed on with a context that has none.
  auto context = std::make_unique<engine::Context>(
      engine::Context{*request.kernel, nullptr, {}, {}, {}, request.log, request.name});
  auto text = shared_config_text(request);
  if (!text) return fail(std::move(text.error()));
  Status mine = check_name(request.name);
  if (mine) {
    auto settings =
        config::parse_settings(*text, request.config_path, request.environment, request.user_id);
    if (settings) context->settings = std::move(*settings);
    if (!settings) mine = fail(std::move(settings.error()));
  }
  if (mine) mine = make_absolute(context->settings.global_path, request.working_directory);
  if (context->settings.global_mode == config::GlobalMode::mpi_io &&
      request.comm->file_writer() == nullptr) {
    mine = fail(Code::config,
                "global.mode is \"mpi-io\", and this instance is opened without MPI; set it to "
                "\"direct\", or open "
                "the instance on a communicator");
  }
  context->comm = std::move(request.comm);
  DIAPAUSE_TRY(agree(*context, mine));
  if (context->comm->rank() == 0) tell_of_unknown_variables(*context);
  choose_memory_root(*context, request.user_id);
  DIAPAUSE_TRY_ASSIGN(context->topology,
                      engine::find_topology(*context->comm, context->settings, request.host_name));
  const std::string key = fmt::format(
      "{}/{}/{}/{}", request.name, static_cast<int>(context->settings.async.mode),
      static_cast<int>(context->settings.governor.policy), context->settings.global_path);
  DIAPAUSE_TRY_ASSIGN(const std::vector<std::string> keys, engine::gather_one(*context->comm, key));
  const bool same =
      std::all_of(keys.begin(), keys.end(), [&](const std::string& one) { return one == keys[0]; });
  if (!same) {
    return fail(Code::argument,
                "ranks disagree on the instance's name, the global directory, async.mode or "
                "governor.policy; they must "
                "be the same on all");
  }
  DIAPAUSE_TRY_ASSIGN(context->identity, engine::find_identity(*context));
  DIAPAUSE_TRY(find_neighbours(*context));
  return context;
}

}  // namespace

namespace {

// Tells `diapause run --finish` the job and its places: a line of words separated by tabs. If that
// fails, the versions of the job stay.
void tell_launcher(const engine::Context& context, const OpenRequest& request) {
  const auto file = std::ranges::find_if(request.environment, [](const auto& variable) {
    return variable.first == "DIAPAUSE_RUN_JOBS_FILE";
  });
  if (file == request.environment.end() || context.rank() != 0) return;
  const config::Settings& settings = context.settings;
  const std::string line = fmt::format(
      "{}\t{}\t{}\t{}\t{}", context.job_key(), settings.memory_path, settings.local_path,
      settings.global_path, static_cast<int>(settings.finish_keep));
  if (std::ranges::count(line, '\t') != 4) return;
  const Status told = sys::append_line(context.kernel, file->second, line);
  if (!told) context.log(Severity::warning, told.error().message);
}

}  // namespace

Status Engine::start(std::unique_ptr<engine::Host> host, OpenRequest& request) {
  host_ = std::move(host);
  capture_ = ImageCapture::open(*context_, *host_, ledger_);
  flights_ = std::make_unique<VersionsInFlight>(
      *context_, *host_, [this](int level, std::uint64_t bytes, double seconds) {
        deadline_.learn(level, bytes, seconds);
      });
  session_ = std::make_unique<RestartSession>(*context_, *host_, regions_, again_note_);
  write_open_record();
  if (context_->settings.auto_schedule.is_on && context_->rank() == 0) {
    pacemaker_ = std::make_unique<Pacemaker>(*context_, ledger_, host_->incarnation());
  }
  tell_launcher(*context_, request);
  return watch_deadline(request);
}

Result<Opened> Engine::open(OpenRequest request) {
  AgainNote note;
  if (request.comm->rank() == 0) note.open(*request.kernel, request.environment);
  auto opened = open_instance(request);
  if (!opened && is_of_the_moment(opened.error().code)) note.leave(opened.error().message);
  if (opened && opened->engine) opened->engine->again_note_ = std::move(note);
  return opened;
}

Result<Opened> Engine::open_instance(OpenRequest& request) {
  DIAPAUSE_TRY_ASSIGN(std::unique_ptr<engine::Context> context, open_context(request));
  if (context->settings.async.mode == config::AsyncMode::rank)
    return open_beside_dedicated(std::move(context), request);
  Opened opened;
  opened.engine.reset(new Engine(std::move(context)));
  DIAPAUSE_TRY_ASSIGN(std::unique_ptr<engine::Host> host,
                      open_host(*opened.engine->context_, opened.engine->ledger_));
  DIAPAUSE_TRY(opened.engine->start(std::move(host), request));
  return opened;
}

Result<Opened> Engine::open_beside_dedicated(std::unique_ptr<engine::Context> whole,
                                             OpenRequest& request) {
  DIAPAUSE_TRY_ASSIGN(engine::Parted parted, dedicate_last_ranks(whole->topology));
  using Part = comm::Comm::Part;
  const auto part = [](bool joins, Part as) { return joins ? std::optional(as) : std::nullopt; };
  const Part worker{whole->topology.node, comm::Waiting::patient};
  DIAPAUSE_TRY_ASSIGN(auto workers, whole->comm->split(part(parted.is_dedicated, worker)));
  DIAPAUSE_TRY_ASSIGN(auto ranks,
                      whole->comm->split(part(!parted.is_dedicated, {0, comm::Waiting::alert})));
  auto context = std::make_unique<engine::Context>(engine::Context{whole->kernel,
                                                                   std::move(ranks),
                                                                   whole->settings,
                                                                   std::move(parted.computing),
                                                                   {},
                                                                   whole->log,
                                                                   whole->job,
                                                                   std::move(whole->neighbours),
                                                                   whole->share,
                                                                   whole->identity});
  Opened opened;
  Status mine;
  if (parted.is_dedicated) {
    DIAPAUSE_TRY_ASSIGN(opened.dedicated,
                        engine::DedicatedRank::open(*whole, *context, std::move(workers),
                                                    std::move(request.stop_signals)));
  } else {
    opened.engine.reset(new Engine(std::move(context)));
    Engine& engine = *opened.engine;
    DIAPAUSE_TRY_ASSIGN(std::unique_ptr<engine::Host> host,
                        open_host_of_rank(*engine.context_, engine.ledger_, *whole));
    mine = engine.start(std::move(host), request);
  }
  DIAPAUSE_TRY(agree(*whole, mine));
  return opened;
}

namespace {

// Signals of this process, and of the process that acts for its node.
class SignalsOfNode final : public sys::StopSignals {
 public:
  SignalsOfNode(std::unique_ptr<sys::StopSignals> own, const engine::Host& host)
      : own_(std::move(own)), host_(host) {}

  Status take(std::span<const int> numbers) override { return own_->take(numbers); }
  int received() const override {
    const int own = own_->received();
    return own != 0 ? own : host_.stop_signal();
  }

 private:
  std::unique_ptr<sys::StopSignals> own_;
  const engine::Host& host_;
};

}  // namespace

Status Engine::watch_deadline(OpenRequest& request) {
  auto& signals = request.stop_signals;
  if (signals && host_->worker() == engine::Worker::rank)
    signals = std::make_unique<SignalsOfNode>(std::move(signals), *host_);

  DIAPAUSE_TRY(deadline_.open(*context_, std::move(request.stop_signals),
                              config::value_in(request.environment, "DIAPAUSE_RUN_STOP_FILE")));
  if (deadline_.watches()) schedule_.agree_every(Deadline::kAgreeEvery_s);
  return {};
}

// Writes the record of this start, and, in each node's directory, which process is which rank.
void Engine::write_open_record() {
  engine::Context& context = *context_;
  if (context.topology.is_leader()) {
    for (const config::TierKind kind : engine::kNodeTiers) {
      if (const store::Tier* const tier = context.tiers.find(kind)) Files::clear(*tier);
    }
  }
  const std::int64_t pid = sys::process_id();
  const auto pids = engine::gather_one(*context.comm, pid);
  if (!pids) return;
  std::string ranks;
  for (std::uint32_t r = 0; r < context.rank_count(); ++r) {
    if (context.topology.node_of_rank[r] != context.topology.node) continue;
    ranks += fmt::format("{} {}\n", r, (*pids)[r]);
  }
  for (const config::TierKind kind : engine::kNodeTiers) {
    store::Tier* tier = context.tiers.find(kind);
    if (tier == nullptr || !context.topology.is_leader()) continue;
    auto file = tier->directory().create_file(store::kRanksName);
    // The file is for people and tools; nothing depends on it.
    if (file) (void)file->write_all(as_byte_view(ranks), 0);
  }
  ledger_.open(context);
  if (!ledger_.is_open()) return;
  ledger_.append(context, engine::open_line({host_->incarnation(), context.rank_count(),
                                             context.topology.node_names.size(), host_->worker(),
                                             engine::slurm_job()}));
}

Engine::~Engine() {
  pacemaker_.reset();  // it writes to the ledger as well
  if (capture_) capture_->wait();
  try {
    if (capture_) capture_->report();
    if (ledger_.is_open()) ledger_.append(*context_, engine::close_line(host_->incarnation()));
    ledger_.write_last(*context_);
  } catch (...) {
    // Memory was short. A missing line in the ledger must not take the program down.
  }
}

Status Engine::protect(ProtectedRegion region) {
  capture_->wait();  // the region's former memory may be freed now
  is_slot_ready_ = false;
  return regions_.protect(std::move(region));
}

Status Engine::declare(const std::string& name, capture::Declaration declaration) {
  DIAPAUSE_TRY_ASSIGN(ProtectedRegion* const region, regions_.get(name));
  region->declaration = declaration;
  return {};
}

Status Engine::unprotect(const std::string& name) {
  is_slot_ready_ = false;
  capture_->wait();  // the memory may be freed now
  return regions_.unprotect(name);
}

}  // namespace diapause::library
