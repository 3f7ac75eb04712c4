#include "agent/agent.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <set>
#include <sstream>
#include <thread>

#include "agent/behind.hpp"
#include "agent/caretaker.hpp"
#include "agent/images.hpp"
#include "agent/team.hpp"
#include "fabric/foreign.hpp"
#include "fabric/pause.hpp"
#include "process/freeze.hpp"
#include "process/put_back_files.hpp"
#include "process/restore.hpp"
#include "process/sockets.hpp"
#include "process/translator.hpp"
#include "sys/child.hpp"
#include "sys/local_socket.hpp"
#include "sys/path.hpp"
#include "sys/process.hpp"
#include "sys/remote_command.hpp"

namespace diapause::agent {
namespace {

constexpr double kCheckInterval_s = 1;
constexpr double kAnswerLimit_s =
    24 * 3600;  // long, because a checkpoint takes as long as it takes

Result<sys::LocalSocket> open_door(const StoreRequest& request) {
  DIAPAUSE_TRY_ASSIGN(const config::Settings settings,
                      read_settings(request.config_path, request.environment));
  DIAPAUSE_TRY_ASSIGN(const sys::Directory directory,
                      sys::Directory::make_private(sys::real_kernel(), door_directory(settings)));
  return sys::LocalSocket::listen(directory, door_name(request.name, settings));
}

constexpr std::size_t kMostInvitationBytes = 1 << 20;

Result<std::unique_ptr<Team>> form_team(Company company, const Secret& secret,
                                        const StoreRequest& request) {
  DIAPAUSE_TRY_ASSIGN(const config::Settings settings,
                      read_settings(request.config_path, request.environment));
  const std::string directory =
      door_directory(settings) + "/" + door_name(request.name, settings) + "-nodes";
  return Team::form(std::move(company), secret.derive("commands"), directory);
}

// Starts agents on the other nodes, if there are any.
Result<std::unique_ptr<Team>> gather_team(const Nodes& nodes, const StoreRequest& request,
                                          const Task& task) {
  if (nodes.is_one()) return std::unique_ptr<Team>();
  Invitation invitation;
  invitation.nodes = nodes;
  DIAPAUSE_TRY_ASSIGN(invitation.secret, Secret::draw());
  invitation.job = request.name;
  invitation.config_path = request.config_path;
  DIAPAUSE_TRY_ASSIGN(invitation.directory, sys::current_directory());
  for (const auto& variable : request.environment) {
    if (variable.first.starts_with("DIAPAUSE_")) invitation.environment.push_back(variable);
  }
  invitation.task = task;
  DIAPAUSE_TRY_ASSIGN(Company company, invite(invitation, request.log));
  return form_team(std::move(company), invitation.secret, request);
}

Ranks ranks_of(Team* team) { return team == nullptr ? Ranks{} : team->ranks(); }
std::string emulated_name(const Team* team) { return team == nullptr ? "" : team->emulated_name(); }
// Where nobody sits at a terminal, signals come to the process group of this process: `diapause
// run` and `timeout` send them so. They are to reach the job through this process only.
process::Keeper::Place place_of(const Team* team) {
  const bool is_run = !config::value_in(sys::environment(), "DIAPAUSE_RUN_STOP_FILE").empty();
  const bool is_apart = is_run || !process::has_terminal();
  return {emulated_name(team), is_apart ? process::JobGroup::own : process::JobGroup::of_caller,
          team != nullptr && !team->is_first()};
}
bool is_first(const Team* team) { return team == nullptr || team->is_first(); }
Status agree(Team* team, const Status& own) { return team == nullptr ? own : team->agree(own); }

// Opens the door of the first agent.
Status open_door(const StoreRequest& request, const Team* team,
                 std::optional<sys::LocalSocket>& door) {
  if (!is_first(team)) return {};
  DIAPAUSE_TRY_ASSIGN(sys::LocalSocket opened, open_door(request));
  door.emplace(std::move(opened));
  return {};
}

// Ranks of Open MPI listen at the first free ports from 1024 on: when a job has ended, another one
// gets its ports and keeps it from being restarted. With 0 they get ports that the kernel chooses.
// Between machines a site may allow only some ports.
void let_kernel_choose_ports() {
  for (const char* const name : {"OMPI_MCA_btl_tcp_port_min_v4", "OMPI_MCA_btl_tcp_port_min_v6"}) {
    if (config::value_in(sys::environment(), name).empty()) sys::set_environment(name, "0");
  }
}

Result<process::Keeper> launch_alone(const LaunchRequest& request, const process::Watch& watch) {
  let_kernel_choose_ports();
  return process::Keeper::launch(request.command, watch, place_of(nullptr));
}

// Lets what is started here find the library for verbs that can be checkpointed, and returns what
// process 1 has to inherit.
Result<fabric::Board> offer_verbs() {
  const std::string folder = fabric::library_folder(sys::own_program());
  if (folder.empty()) return fabric::Board();
  sys::put_first_in_list("LD_LIBRARY_PATH", folder);
  return fabric::Board::make();
}

// Lets a restored job have the adapters of its machines. All agents call it together.
Status give_adapters(const process::Keeper& keeper, Team* team, process::TimedCalls& timed,
                     fabric::Board& board) {
  fabric::Pause verbs(gather_of(team), wake_in(keeper.process(), timed), board);
  DIAPAUSE_TRY_ASSIGN(const auto processes, process::processes_with(keeper.process()));
  DIAPAUSE_TRY(verbs.take_over(processes));
  Status connected = verbs.end();
  if (team != nullptr) team->set_patience(Team::Patience::long_);
  return connected;
}

// Starts the command on the first node, and on each other one the process that starts commands
// there.
Result<process::Keeper> launch_here(const LaunchRequest& request, Team* team,
                                    const process::Watch& watch) {
  if (team == nullptr) return launch_alone(request, watch);
  if (!emulated_name(team).empty()) let_kernel_choose_ports();
  std::optional<sys::Listener> listener;
  Status own;
  if (!team->is_first()) {
    auto opened = sys::Listener::open();
    if (opened) listener.emplace(std::move(*opened));
    if (!opened) own = fail(opened.error());
  }
  DIAPAUSE_TRY(team->agree(own));
  DIAPAUSE_TRY(team->share_ports(listener ? listener->port() : std::uint16_t{0}));
  std::vector<std::string> command = request.command;
  if (listener) {
    sys::let_inherit(listener->fd());
    command = {sys::own_program(), "serve", std::to_string(listener->fd()), team->remote_file()};
  }
  // The command on the first node begins when the others can be reached.
  const auto start = [&] { return process::Keeper::launch(command, watch, place_of(team)); };
  if (team->is_first()) {
    DIAPAUSE_TRY(team->agree({}));
    auto keeper = start();
    DIAPAUSE_TRY(team->agree(keeper ? Status{} : fail(keeper.error())));
    return keeper;
  }
  auto keeper = start();
  Status begun = team->agree(keeper ? Status{} : fail(keeper.error()));
  if (begun) begun = team->agree({});
  if (!begun && keeper) keeper->end();
  if (!begun) return fail(begun.error());
  return keeper;
}

// Returns the port at which the process that starts commands waits: the only one at which it
// listens.
std::uint16_t port_of_commands(const process::Job& job) {
  const auto server = std::ranges::find(job.processes, job.command, &process::Process::id);
  if (server == job.processes.end()) return 0;
  for (const process::Descriptor& one : server->descriptors) {
    const process::Description& description = job.descriptions[one.description];
    if (description.kind != process::DescriptionKind::socket) continue;
    const process::Socket& socket = job.sockets[description.which];
    if (socket.state == process::SocketState::listening) return process::port_of(socket.local);
  }
  return 0;
}

// Returns the ports at which a job is reached, or from which it has connected.
std::set<std::uint16_t> ports_of(const process::Job& job) {
  std::set<std::uint16_t> ports;
  for (const process::Socket& one : job.sockets) ports.insert(process::port_of(one.local));
  ports.erase(0);
  return ports;
}

Status check_nodes(const process::Job& job, const Team* team) {
  if (job.far_ends.empty() || team != nullptr) return {};
  return fail(Code::mismatch, "the image is of a job on several nodes: name as many with --hosts");
}

// Returns where the job's nodes are, which its processes go on knowing by the addresses that they
// had.
Result<process::Relocation> locate(const process::Job& job, Team* team) {
  const std::vector<std::string> known = process::known_addresses(job);
  process::Relocation relocation({{known, sys::own_addresses()}}, 0);
  if (team != nullptr) {
    DIAPAUSE_TRY_ASSIGN(relocation, team->locate(known));
  }
  DIAPAUSE_TRY(relocation.check(job));
  return relocation;
}

// Starts what translates the addresses in calls of the job's processes.
Status start_translator(int listener, const process::Relocation& relocation, const Team* team) {
  sys::let_inherit(listener);
  const bool has_ports = team != nullptr && relocation.shares_machine();
  return sys::start_with_input({sys::own_program(), "translate", std::to_string(listener),
                                has_ports ? team->ports_file() : ""},
                               relocation.text())
      .map([](std::int64_t) {});
}

// Other nodes on this machine learn from the port of a connection that it leads to this node.
void note_ports(const process::Job& job, const process::Openings& openings,
                const process::Relocation& relocation, const Team* team) {
  if (team == nullptr || !relocation.shares_machine()) return;
  process::PortsOfNodes ports(team->ports_file());
  for (std::uint32_t i = 0; i < job.descriptions.size(); ++i) {
    const int number = openings.of_description(i);
    if (job.descriptions[i].kind != process::DescriptionKind::socket || number < 0) continue;
    ports.set(process::port_of(process::address_by(number, ::getsockname)), relocation.own());
  }
}

// The steps of a start on this node work with these.
struct Ground {
  const StoreRequest& request;
  Team* team;  // null: the job is on this node alone
  process::Watch& watch;
  JobStore& store;
  fabric::Board& board;
};

// This is what is done while the job runs.
struct Routine {
  double interval_s = 0;
  int level = 1;
  Wish wish = Wish::checkpoint;
  bool finishes = false;  // the job, when its command ends with status 0
};

void give_routine(const Routine& routine, Caretaker& caretaker) {
  const bool is_check = routine.wish == Wish::check_only;
  const double interval_s =
      is_check && routine.interval_s <= 0 ? kCheckInterval_s : routine.interval_s;
  if (interval_s > 0) caretaker.take_every(interval_s, routine.level, routine.wish);
  if (routine.finishes) caretaker.finishes();
}

// This is a job that runs. The filler that works behind it needs the image, and exists before the
// job.
struct Restored {
  std::unique_ptr<RestoredImage> image;
  process::Keeper keeper;
  std::unique_ptr<process::FillBehind> behind;  // null: the job has all of its memory
  process::TimedCalls timed = {};
  process::Relocation relocation = {};
  std::vector<std::string> files = {};  // patterns of those that belong to it
};

// Returns when nothing of a job is left, so that the addresses that it had are free.
void end_and_wait(process::Keeper& keeper) {
  keeper.end();
  while (!keeper.exit_status()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Returns the files in which `diapause run` is told of the job, without links on the way. They lie
// in the working directory, and come and go.
std::vector<std::string> files_of_run(const config::Environment& environment) {
  std::vector<std::string> files;
  for (const char* name :
       {"DIAPAUSE_RUN_STOP_FILE", "DIAPAUSE_RUN_AGAIN_FILE", "DIAPAUSE_RUN_JOBS_FILE"}) {
    const std::string path = config::value_in(environment, name);
    const std::size_t slash = path.rfind('/');
    if (slash == path.npos || slash == 0) continue;
    if (const auto directory = sys::canonical_path(path.substr(0, slash)))
      files.push_back(*directory + path.substr(slash));
  }
  return files;
}

// Returns which files this node looks after. Those of the tiers and of `diapause run` are not the
// job's.
process::FileView view_of(const Ground& ground) {
  const config::Settings& settings = ground.store.context().settings;
  process::FileView view;
  for (const std::string& tier :
       {settings.memory_path, settings.local_path, settings.global_path}) {
    if (const auto path = sys::canonical_path(tier)) view.apart.push_back(*path);
  }
  for (std::string& file : files_of_run(ground.request.environment))
    view.apart.push_back(std::move(file));
  if (!is_first(ground.team)) {
    view.node = ground.team->emulated_name().empty() ? process::FileView::Node::other
                                                     : process::FileView::Node::on_machine_of_first;
  }
  return view;
}

// Puts the files of a job back when all else is in its place, and returns when all nodes have come
// so far. Says which files the job will find otherwise than they were.
Status put_back_files(const Ground& ground, const StoredJob& stored,
                      const process::ReadContents& read) {
  const process::FileView view = view_of(ground);
  DIAPAUSE_TRY(process::put_back_files(stored.job, stored.contents, read));
  DIAPAUSE_TRY_ASSIGN(const std::vector<std::string> aside,
                      process::put_aside_new_files(stored.job, view));
  std::vector<std::string> changed = process::files_changed_since(stored.job, view);
  std::set<std::string> held = process::paths_of_held_files(stored.job);
  if (ground.team != nullptr) {
    DIAPAUSE_TRY_ASSIGN(const auto all, ground.team->gather_lists(held));
    for (const std::set<std::string>& one : all) held.insert(one.begin(), one.end());
  }
  std::erase_if(changed, [&](const std::string& path) { return held.contains(path); });
  if (!aside.empty()) {
    ground.request.log(Severity::warning,
                       fmt::format("made after the checkpoint, and renamed by adding {}: {}",
                                   process::kAside, process::some_of(aside)));
  }
  if (!changed.empty()) {
    ground.request.log(Severity::warning,
                       fmt::format("changed since the checkpoint and not part of it: {}; 'diapause "
                                   "launch --files' makes files part of it",
                                   process::some_of(changed)));
  }
  return {};
}

// Makes the processes of this node again. They run when all nodes are ready. `note` is null if all
// memory is restored before.
Result<Restored> restore_here(const Ground& ground, std::unique_ptr<RestoredImage>& image,
                              const FillNote* note) {
  Team* const team = ground.team;
  StoredJob& stored = image->stored();
  // In the middle of such a restart no damaged image can be replaced.
  if (note != nullptr && team != nullptr) DIAPAUSE_TRY(note->leave());
  DIAPAUSE_TRY_ASSIGN(process::Relocation relocation, locate(stored.job, team));
  relocation.to_present(stored.job);
  const process::OpeningEnvironment environment{
      ground.request.log, team == nullptr ? nullptr : &team->others(), relocation};
  const process::ReadContents read = image->reader();
  DIAPAUSE_TRY(process::check_files_to_put_back(stored.job, stored.contents));
  DIAPAUSE_TRY_ASSIGN(process::Openings openings,
                      process::Openings::open(stored.job, stored.contents, read, environment));
  if (team != nullptr) DIAPAUSE_TRY(team->share_moved_ports(relocation));
  note_ports(stored.job, openings, relocation, team);
  DIAPAUSE_TRY_ASSIGN(process::Keeper keeper,
                      process::Keeper::wait_for_processes(ground.watch, place_of(team)));
  std::unique_ptr<process::FillBehind> behind;
  if (note != nullptr) {
    behind = std::make_unique<process::FillBehind>(keeper.process(), image->piece_reader(),
                                                   [note] { note->remove(); });
  }
  const auto go = [&]() -> Status {
    DIAPAUSE_TRY(openings.finish(stored.job, stored.contents, read));
    if (behind != nullptr && behind->is_filling()) DIAPAUSE_TRY(note->leave());
    DIAPAUSE_TRY(put_back_files(ground, stored, read));
    image->set_running();
    return {};
  };
  process::Birthplace place{keeper.process(), environment.log, go, behind.get()};
  if (relocation.is_needed()) {
    place.translate = [&](int listener) { return start_translator(listener, relocation, team); };
  }
  auto timed = process::restore(stored.job, openings, stored.contents, read, place);
  if (!timed) {
    openings.close_all();
    end_and_wait(keeper);
    return fail(std::move(timed.error()));
  }
  if (behind != nullptr && !behind->is_filling()) note->remove();
  DIAPAUSE_TRY(keeper.begin(stored.job.command));
  DIAPAUSE_TRY(give_adapters(keeper, team, *timed, ground.board));
  std::vector<std::string> files = stored.job.file_patterns;
  return Restored{std::move(image),  std::move(keeper),     std::move(behind),
                  std::move(*timed), std::move(relocation), std::move(files)};
}

// This is the version to restore: its number, or the newest that can be used.
struct Wanted {
  std::optional<std::uint64_t> version;
  Beginning if_none = Beginning::from_newest;  // anew: it is no failure if there are no versions
  const FillNote* note = nullptr;              // null: all memory is restored before the job runs
};

// Makes the processes of this node again from the newest version that can be used, and returns
// nothing if there is none and need not be. Where this node is the only one, an image is read once,
// and each part of it is checked before it gets to its place. If a part is damaged, nothing has run
// yet, and all begins again with another image. The restart of several nodes cannot begin again:
// all images are checked before, unless memory is to be filled while the job runs.
Result<std::optional<Restored>> restore_newest(const Ground& ground, const Wanted& wanted,
                                               double started_s) {
  Team* const team = ground.team;
  const FillNote* note = wanted.note;
  while (true) {
    StoredJob stored;
    const auto can_run_here = [&](store::ImageReader& image) -> Status {
      DIAPAUSE_TRY_ASSIGN(stored, read_job(image));
      DIAPAUSE_TRY(check_nodes(stored.job, team));
      DIAPAUSE_TRY(process::check_machine(stored.job));
      return process::check_files(stored.job);
    };
    const engine::Purpose purpose = team == nullptr   ? engine::Purpose::place
                                    : note != nullptr ? engine::Purpose::map_unchecked
                                                      : engine::Purpose::copy;
    auto fetched = ground.store.fetch(wanted.version, can_run_here, purpose);
    const bool is_none = !fetched && fetched.error().code == Code::not_found;
    if (is_none && wanted.if_none == Beginning::anew) return std::optional<Restored>();
    if (!fetched) return fail(std::move(fetched.error()));
    if (team != nullptr) {
      const std::vector<std::string> known = process::known_addresses(stored.job);
      DIAPAUSE_TRY(team->make_room(ports_of(stored.job)));
      DIAPAUSE_TRY(
          team->share_ports(team->is_first() ? std::uint16_t{0} : port_of_commands(stored.job),
                            known.empty() ? "" : known.front()));
    }
    auto image =
        std::make_unique<RestoredImage>(ground.store, std::move(stored), std::move(*fetched));
    const JobStore::RestartTimes times{started_s, sys::monotonic_s()};
    auto restored = restore_here(ground, image, note);
    if (restored) {
      ground.store.note_restart(restored->image->fetched(), times);
      return std::optional<Restored>(std::move(*restored));
    }
    if (image->sound() && note != nullptr) note->remove();
    if (image->sound() || team != nullptr) return fail(std::move(restored.error()));
    DIAPAUSE_TRY_ASSIGN(const bool sound, ground.store.was_sound(image->sound()));
    if (sound) return fail(std::move(restored.error()));
    note = nullptr;  // the next image is checked before
  }
}

Result<int> look_after(const Ground& ground, const Routine& routine, Restored& job,
                       std::optional<sys::LocalSocket>& door) {
  Caretaker caretaker({ground.request, ground.store, job.keeper, ground.watch, ground.team,
                       door ? &*door : nullptr, job.behind.get(), job.relocation, ground.board});
  caretaker.goes_on(std::move(job.timed));
  if (job.image != nullptr) caretaker.goes_on_from(job.image->stored().job);
  caretaker.looks_after({std::move(job.files), view_of(ground)});
  give_routine(routine, caretaker);
  const int status = caretaker.until_end();
  const Status filled = job.behind == nullptr ? Status{} : job.behind->result();
  if (filled) return status;
  if (!is_first(ground.team)) {
    ground.request.log(Severity::error, ground.team->own_name() + ": " + filled.error().message);
  }
  return fail(filled.error());
}

Result<int> launch_with(const LaunchRequest& request, Team* team, process::Watch& watch) {
  const double started_s = sys::monotonic_s();
  DIAPAUSE_TRY_ASSIGN(const std::unique_ptr<JobStore> store,
                      JobStore::open(request.store, ranks_of(team)));
  std::optional<sys::LocalSocket> door;
  DIAPAUSE_TRY(agree(team, open_door(request.store, team, door)));
  DIAPAUSE_TRY_ASSIGN(fabric::Board board, offer_verbs());
  const Ground ground{request.store, team, watch, *store, board};
  const bool continues = request.beginning == Beginning::from_newest;
  const Routine routine{request.interval_s, request.level, request.wish, continues};
  if (continues) {
    DIAPAUSE_TRY_ASSIGN(auto restored,
                        restore_newest(ground, {std::nullopt, Beginning::anew}, started_s));
    if (restored && !request.files.empty()) restored->files = request.files;
    if (restored) return look_after(ground, routine, *restored, door);
  } else if (store->newest_version() != 0 && is_first(team)) {
    request.store.log(
        Severity::information,
        fmt::format(
            "'{0}' has checkpoints of an earlier start, the newest is version {1}: this start "
            "begins anew, and 'diapause restart {0}' would go on from there",
            request.store.name, store->newest_version()));
  }
  DIAPAUSE_TRY_ASSIGN(process::Keeper keeper, launch_here(request, team, watch));
  Restored job{nullptr, std::move(keeper), nullptr};
  job.files = request.files;
  return look_after(ground, routine, job, door);
}

// Returns whether memory may be filled behind, on all nodes. Where that is known to fail, several
// nodes had better check all images before.
Result<bool> may_fill_behind(const RestartRequest& request, Team* team, const FillNote& note) {
  if (request.memory == MemoryMode::eager) return false;
  const char* const why = note.is_left() ? "the last mapped restart did not come to its end"
                          : team != nullptr && sys::user_id() != 0
                              ? "the kernel lets only root fill it"
                              : nullptr;
  if (why != nullptr) {
    request.store.log(Severity::warning,
                      fmt::format("all memory is restored before the job runs: {}", why));
  }
  std::uint64_t refuses = why == nullptr ? 0 : 1;  // here, and then anywhere
  if (team != nullptr) {
    DIAPAUSE_TRY_ASSIGN(refuses, team->others().greatest(refuses));
  }
  return refuses == 0;
}

Result<int> restart_with(const RestartRequest& request, Team* team, process::Watch& watch) {
  const double started_s = sys::monotonic_s();
  DIAPAUSE_TRY_ASSIGN(const std::unique_ptr<JobStore> store,
                      JobStore::open(request.store, ranks_of(team)));
  std::optional<sys::LocalSocket> door;
  DIAPAUSE_TRY(agree(team, open_door(request.store, team, door)));
  DIAPAUSE_TRY_ASSIGN(const FillNote note, FillNote::open(request.store, emulated_name(team)));
  DIAPAUSE_TRY_ASSIGN(const bool is_mapped, may_fill_behind(request, team, note));
  DIAPAUSE_TRY_ASSIGN(fabric::Board board, offer_verbs());
  const Ground ground{request.store, team, watch, *store, board};
  DIAPAUSE_TRY_ASSIGN(
      auto restored,
      restore_newest(ground, {request.version, Beginning::from_newest, is_mapped ? &note : nullptr},
                     started_s));
  if (!is_mapped) note.remove();
  const Routine routine{request.interval_s, request.level, Wish::checkpoint, false};
  DIAPAUSE_TRY_ASSIGN(const int status, look_after(ground, routine, *restored, door));
  note.remove();
  return status;
}

// Lets the others know of a failure that they would otherwise wait for in vain.
Result<int> with_team(Team* team, Result<int> status) {
  if (!status && team != nullptr) team->give_up(status.error());
  if (team != nullptr) team->leave();
  return status;
}

}  // namespace

int translate(int listener, const std::string& ports) {
  const auto text = sys::take_standard_input(kMostInvitationBytes);
  const auto relocation =
      text ? process::Relocation::parse(*text) : Result<process::Relocation>(fail(text.error()));
  if (!relocation) return 1;
  process::PortsOfNodes known(ports);
  process::translate_addresses(listener, *relocation, known);
  return 0;
}

Result<int> launch(const LaunchRequest& given) {
  LaunchRequest request = given;
  if (std::ranges::find(request.files, "") != request.files.end())
    return fail(Code::argument, "an empty text after --files names no file");
  if (!request.files.empty()) {
    DIAPAUSE_TRY_ASSIGN(const std::string here, sys::current_directory());
    request.files = process::absolute_patterns(request.files, here);
  }
  DIAPAUSE_TRY(fabric::check_choice(request.store.environment));
  DIAPAUSE_TRY(process::Keeper::check());
  DIAPAUSE_TRY_ASSIGN(process::Watch watch, process::Watch::begin());
  DIAPAUSE_TRY_ASSIGN(const std::unique_ptr<Team> team,
                      gather_team(request.nodes, request.store,
                                  {false, request.beginning, std::nullopt, request.files}));
  return with_team(team.get(), launch_with(request, team.get(), watch));
}

Result<int> restart(const RestartRequest& request) {
  DIAPAUSE_TRY(process::Keeper::check());
  DIAPAUSE_TRY_ASSIGN(process::Watch watch, process::Watch::begin());
  DIAPAUSE_TRY_ASSIGN(
      const std::unique_ptr<Team> team,
      gather_team(request.nodes, request.store,
                  {true, {}, request.version, {}, request.memory == MemoryMode::mapped}));
  return with_team(team.get(), restart_with(request, team.get(), watch));
}

Result<int> be_invited(const LogSink& log) {
  DIAPAUSE_TRY_ASSIGN(const std::string text, sys::take_standard_input(kMostInvitationBytes));
  DIAPAUSE_TRY_ASSIGN(const Invitation invitation, Invitation::parse(text));
  DIAPAUSE_TRY(sys::change_directory(invitation.directory));
  for (const auto& [name, value] : invitation.environment) sys::set_environment(name, value);
  DIAPAUSE_TRY_ASSIGN(process::Watch watch, process::Watch::begin());
  DIAPAUSE_TRY_ASSIGN(Company company, come(invitation));
  const StoreRequest store{invitation.job, invitation.config_path, sys::environment(), log};
  DIAPAUSE_TRY_ASSIGN(const std::unique_ptr<Team> team,
                      form_team(std::move(company), invitation.secret, store));
  const auto status =
      invitation.task.is_restart
          ? restart_with({store,
                          invitation.task.version,
                          0,
                          1,
                          {},
                          invitation.task.is_mapped ? MemoryMode::mapped : MemoryMode::eager},
                         team.get(), watch)
          : launch_with({store,
                         {},
                         0,
                         1,
                         Wish::checkpoint,
                         invitation.task.beginning,
                         {},
                         invitation.task.files},
                        team.get(), watch);
  (void)with_team(team.get(), status);
  return 0;  // the first agent has said why, if it was not well
}

Result<Answer> ask(const StoreRequest& job, Wish wish, int level) {
  DIAPAUSE_TRY_ASSIGN(const config::Settings settings,
                      read_settings(job.config_path, job.environment));
  const auto nobody = [&] {
    return fail(Code::not_found,
                fmt::format("no job '{}' of yours runs on this machine", job.name));
  };
  auto directory = sys::Directory::open_private(sys::real_kernel(), door_directory(settings));
  if (!directory && directory.error().code == Code::not_found) return nobody();
  if (!directory) return fail(std::move(directory.error()));
  auto door = sys::connect_local(*directory, door_name(job.name, settings));
  if (!door && door.error().os_errno == ECONNREFUSED) {
    return fail(
        Code::not_found,
        fmt::format("no job '{0}' of yours that has an agent runs on this machine: the "
                    "agent was killed. If the job runs on, no more checkpoints can be taken "
                    "of it; when it has ended, 'diapause restart {0}' goes on from its "
                    "newest version",
                    job.name));
  }
  if (!door && door.error().code == Code::not_found) return nobody();
  if (!door) return fail(std::move(door.error()));
  DIAPAUSE_TRY(
      door->send(fmt::format("{} {}", wish == Wish::check_only ? "check" : "checkpoint", level)));
  const auto line = door->receive(kAnswerLimit_s);
  if (!line && line.error().code == Code::io) {
    return fail(
        Code::not_found,
        fmt::format("the job '{}' ended, or its agent was killed, before it answered", job.name));
  }
  if (!line) return fail(line.error());
  std::istringstream words(*line);
  std::string verb;
  words >> verb;
  Answer answer;
  if (verb == "done") {
    words >> answer.version >> answer.level >> answer.bytes >> answer.stopped_s;
    return answer;
  }
  int code = static_cast<int>(Code::internal);
  words >> code;
  std::string text;
  std::getline(words >> std::ws, text);
  std::ranges::replace(text, '\t', '\n');
  return fail(static_cast<Code>(code), text);
}

}  // namespace diapause::agent
