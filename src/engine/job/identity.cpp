#include "engine/job/identity.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "engine/job/gather.hpp"
#include "format/wire.hpp"
#include "store/identity.hpp"
#include "store/names.hpp"
#include "sys/path.hpp"

namespace diapause::engine {
namespace {

constexpr const char* kBirthLockName = "lock";
constexpr double kBirthWait_s = 10;

// The finding of rank 0 in the global directory, as it is told to all ranks.
enum class Found : std::uint32_t { job, nothing, unusable };
struct Answer {
  Found found = Found::unusable;
  format::JobIdentity identity;  // the identity of the job
  // Otherwise: the paths of the global directory, the real one and as it was spelled.
  std::array<std::string, 2> home;

  void put(format::Writer& writer) const;
  bool get(format::Reader& reader);
};

void put_identity(format::Writer& writer, const format::JobIdentity& identity) {
  const ByteVector bytes = format::encode_identity(identity);
  writer.u64(bytes.size());
  writer.append(bytes);
}

bool get_identity(format::Reader& reader, format::JobIdentity& identity) {
  const std::uint64_t length = reader.u64();
  auto read = format::decode_identity(reader.take(length));
  if (read) identity = std::move(*read);
  return read.has_value();
}

void Answer::put(format::Writer& writer) const {
  writer.u32(static_cast<std::uint32_t>(found));
  if (found == Found::job) return put_identity(writer, identity);
  for (const std::string& path : home) writer.sized_text(path);
}

bool Answer::get(format::Reader& reader) {
  found = static_cast<Found>(reader.u32());
  if (found == Found::job) return get_identity(reader, identity);
  for (std::string& path : home) path = reader.sized_text();
  return reader.ok();
}

// Finds the job in the global directory, and makes or changes it where necessary. Used by rank 0.
class Registry {
 public:
  explicit Registry(const Context& context)
      : context_(context), spelled_(sys::plain_spelling(context.settings.global_path)) {}

  Answer look() {
    Answer answer;
    answer.home = {spelled_, spelled_};
    if (context_.settings.global_path.empty()) return answer;
    if (const auto only = find_settled()) {
      answer.home[0] = root_.real_path();
      answer.found = Found::job;
      answer.identity = only->identity;
      return answer;
    }
    auto root = sys::Directory::make_private(context_.kernel, context_.settings.global_path);
    if (!root) return answer;
    root_ = std::move(*root);
    answer.home[0] = root_.real_path();
    take_lock();
    const auto found = store::find_jobs(root_, context_.job);
    if (!found) return answer;
    answer.found = found->empty() ? Found::nothing : Found::job;
    if (!found->empty()) answer.identity = identity_of(*found);
    return answer;
  }

  // Makes a job where look() found none. Failures show when the tier is opened.
  void bear(const format::JobIdentity& identity) {
    const auto job = root_.make_child(identity.key);
    const Status written = job ? store::write_identity(*job, identity, "0") : fail(job.error());
    if (!written)
      say(Severity::warning,
          "the identity of the job could not be written: " + written.error().message);
    lock_.reset();
  }

 private:
  void say(Severity severity, const std::string& text) const { context_.log(severity, text); }

  // Returns the job if everything is in order, so that nothing needs to be written.
  std::optional<store::FoundJob> find_settled() {
    auto root = sys::Directory::open_private(context_.kernel, context_.settings.global_path);
    if (!root) return std::nullopt;
    root_ = std::move(*root);
    auto found = store::find_jobs(root_, context_.job);
    const bool is_in_order = found && found->size() == 1 && found->front().trouble.empty() &&
                             found->front().standing == store::Standing::home &&
                             found->front().identity.key == found->front().directory;
    return is_in_order ? std::optional(std::move(found->front())) : std::nullopt;
  }

  // Takes a lock, because two programs that start at the same time must not both make the job.
  // Without a lock the work continues.
  void take_lock() {
    auto lock = sys::FileLock::acquire(root_, kBirthLockName, "a job that is about to begin\n",
                                       kBirthWait_s);
    if (lock) lock_.emplace(std::move(*lock));
    if (!lock) say(Severity::information, lock.error().message);
  }

  format::JobIdentity identity_of(const std::vector<store::FoundJob>& all) {
    const store::FoundJob& found = store::choose_job(root_, all);
    for (const store::FoundJob& other : all) {
      if (&other == &found) continue;
      say(Severity::warning,
          fmt::format("{} holds two jobs called '{}', {} and {}: going on with {}", root_.path(),
                      context_.job, found.directory, other.directory, found.directory));
    }
    if (!found.trouble.empty()) say(Severity::warning, found.trouble);
    switch (found.standing) {
      case store::Standing::home:
        return keep(found);
      case store::Standing::moved:
        return move(found);
      case store::Standing::copy:
        return part_from_original(found);
      case store::Standing::unnamed:
        break;
    }
    return name(found);
  }

  // Gives the directory to the job of `identity`. A renaming that fails is repeated at the next
  // start.
  void write(const std::string& directory, const format::JobIdentity& identity) const {
    const auto write_all = [&]() -> Status {
      DIAPAUSE_TRY_ASSIGN(const sys::Directory job, root_.open_child(directory));
      DIAPAUSE_TRY(store::write_identity(job, identity, "0"));
      if (directory == identity.key) return {};
      DIAPAUSE_TRY(root_.rename(directory, root_, identity.key));
      return root_.sync();
    };
    const Status written = write_all();
    if (!written)
      say(Severity::warning,
          "the identity of the job could not be changed: " + written.error().message);
  }

  // Keeps the job that was found, and completes an interrupted change of its name.
  format::JobIdentity keep(const store::FoundJob& found) const {
    if (found.directory != found.identity.key) write(found.directory, found.identity);
    return found.identity;
  }

  format::JobIdentity move(const store::FoundJob& found) const {
    format::JobIdentity identity = found.identity;
    say(Severity::information, fmt::format("job '{}' has moved from {} to {} and goes on there",
                                           context_.job, identity.home, root_.real_path()));
    identity.home = root_.real_path();
    write(found.directory, identity);
    return identity;
  }

  format::JobIdentity part_from_original(const store::FoundJob& found) const {
    auto own = store::draw_identity(context_.job, root_.real_path());
    if (!own) return found.identity;
    own->copied_from = found.identity.id;
    say(Severity::warning,
        fmt::format("{}/{} is a copy of the job in {}, which is still there: it goes on as a job "
                    "of its own, {}, from "
                    "what the copy holds; what lies in the nodes' tiers stays with the original",
                    root_.path(), found.directory, found.identity.home, own->key));
    write(found.directory, *own);
    return *own;
  }

  // Gives an identity to a job of an older release. It keeps the name by which the nodes' tiers
  // know it.
  format::JobIdentity name(const store::FoundJob& found) const {
    auto identity = store::draw_identity(context_.job, root_.real_path());
    if (!identity) return {};
    identity->key = found.directory;
    if (found.trouble.empty()) {
      say(Severity::information,
          fmt::format("{}/{} was made by an earlier release: it gets an identity", root_.path(),
                      found.directory));
    }
    write(found.directory, *identity);
    return *identity;
  }

  const Context& context_;
  const std::string spelled_;
  sys::Directory root_;
  std::optional<sys::FileLock> lock_;
};

// Holds what a node remembers of a job of this name and home: its identity, or the directory of a
// release that wrote none.
struct Memory {
  std::optional<format::JobIdentity> identity;
  std::string old_key;

  void put(format::Writer& writer) const {
    writer.u32(identity ? 1 : 0);
    if (identity) return put_identity(writer, *identity);
    writer.sized_text(old_key);
  }
  bool get(format::Reader& reader) {
    if (reader.u32() != 0) return get_identity(reader, identity.emplace());
    old_key = reader.sized_text();
    return reader.ok();
  }
};

void remember(const sys::Directory& root, const Context& context, const Answer& answer,
              std::vector<Memory>& memories) {
  const auto entries = root.list();
  if (!entries) return;
  const std::string absolute = context.settings.global_path;
  const std::set<std::string> old_keys = {store::old_job_key(context.job, absolute),
                                          store::old_job_key(context.job, answer.home[0]),
                                          store::old_job_key(context.job, answer.home[1])};
  for (const sys::DirectoryEntry& entry : *entries) {
    if (!entry.is_directory || !store::is_key_of(entry.name, context.job)) continue;
    const auto job = root.open_child(entry.name);
    if (!job) continue;
    const auto identity = store::read_identity(*job);
    const bool is_here = identity && identity->key == entry.name &&
                         std::ranges::find(answer.home, identity->home) != answer.home.end();
    if (is_here) memories.push_back({*identity, {}});
    if (!identity && old_keys.contains(entry.name)) memories.push_back({std::nullopt, entry.name});
  }
}

// Returns what all nodes remember, equal on all ranks.
Result<std::vector<Memory>> ask_nodes(const Context& context, const Answer& answer) {
  std::vector<Memory> mine;
  for (const config::TierKind kind : kNodeTiers) {
    const std::string& path = root_of(context.settings, kind);
    if (path.empty() || !context.acts_for(kind)) continue;
    const auto root = sys::Directory::open_private(context.kernel, path);
    if (root) remember(*root, context, answer, mine);
  }
  DIAPAUSE_TRY_ASSIGN(const Gathered<Memory> all,
                      gather_values<Memory>(context, {}, mine, "what a node remembers of the job"));
  std::vector<Memory> memories;
  for (const std::vector<Memory>& of_node : all)
    memories.insert(memories.end(), of_node.begin(), of_node.end());
  return memories;
}

// Returns the identity of a job that its global directory does not know. That is the job that was
// made there last, as far as the nodes remember, or else a new one. Rank 0 calls it alone.
Result<format::JobIdentity> remembered_or_new(const Context& context, const Answer& answer,
                                              const std::vector<Memory>& memories) {
  std::optional<format::JobIdentity> last;
  std::string old_key;
  for (const Memory& memory : memories) {
    const bool is_later =
        memory.identity && (!last || last->created_unix_ns < memory.identity->created_unix_ns);
    if (is_later) last = memory.identity;
    if (old_key.empty()) old_key = memory.old_key;
  }
  if (last) {
    last->home = answer.home[0];
    return *last;
  }
  DIAPAUSE_TRY_ASSIGN(format::JobIdentity identity,
                      store::draw_identity(context.job, answer.home[0]));
  if (!old_key.empty()) {
    identity.key = old_key;
  } else if (answer.found == Found::unusable) {
    // The next start cannot read the directory either, and must find the same name on nodes that
    // remember nothing.
    identity.key = store::old_job_key(context.job, answer.home[0]);
  }
  return identity;
}

}  // namespace

const std::string& root_of(const config::Settings& settings, config::TierKind kind) {
  switch (kind) {
    case config::TierKind::memory:
      return settings.memory_path;
    case config::TierKind::local:
      return settings.local_path;
    case config::TierKind::global:
      break;
  }
  return settings.global_path;
}

Result<format::JobIdentity> find_identity(const Context& context) {
  Registry registry(context);
  std::vector<Answer> looked;
  if (context.rank() == 0) looked.push_back(registry.look());
  DIAPAUSE_TRY_ASSIGN(
      const Gathered<Answer> all,
      gather_values<Answer>(context, {}, looked, "what rank 0 says of the job's identity"));
  const Answer& answer = all[0].front();
  if (answer.found == Found::job) return answer.identity;
  DIAPAUSE_TRY_ASSIGN(const std::vector<Memory> memories, ask_nodes(context, answer));
  Status mine;
  std::vector<Answer> chosen;
  if (context.rank() == 0) {
    const auto identity = remembered_or_new(context, answer, memories);
    if (identity && answer.found == Found::nothing) registry.bear(*identity);
    if (identity) chosen.push_back({Found::job, *identity, {}});
    if (!identity) mine = fail(identity.error());
  }
  DIAPAUSE_TRY_ASSIGN(const Gathered<Answer> identities,
                      gather_values<Answer>(context, mine, chosen, "the identity of the job"));
  return identities[0].front().identity;
}

void leave_identity(const Context& context) {
  for (const config::TierKind kind : kNodeTiers) {
    if (context.tiers.find(kind) == nullptr || !context.acts_for(kind)) continue;
    const auto leave = [&]() -> Status {
      const std::string& path = root_of(context.settings, kind);
      DIAPAUSE_TRY_ASSIGN(const sys::Directory root,
                          sys::Directory::open_private(context.kernel, path));
      DIAPAUSE_TRY_ASSIGN(const sys::Directory job, root.open_child(context.job_key()));
      const auto known = store::read_identity(job);
      if (known && *known == context.identity) return {};
      return store::write_identity(job, context.identity, std::to_string(context.topology.node));
    };
    const Status left = leave();
    if (!left) context.log(Severity::information, left.error().message);
  }
}

// Emulated nodes keep their configured names. Only a real machine can be renamed.
void take_over_renamed_node(const Context& context) {
  const Topology& topology = context.topology;
  if (context.settings.ranks_per_node > 0) return;
  const std::string& name = topology.node_names[topology.node];
  for (const config::TierKind kind : kNodeTiers) {
    const std::string& path = root_of(context.settings, kind);
    if (path.empty() || !context.acts_for(kind) || !sys::is_plain_name(name)) continue;
    const auto take = [&]() -> Result<std::vector<std::string>> {
      DIAPAUSE_TRY_ASSIGN(const sys::Directory root,
                          sys::Directory::open_private(context.kernel, path));
      DIAPAUSE_TRY_ASSIGN(const sys::Directory job, root.open_child(context.job_key()));
      return store::take_over_renamed(job, name,
                                      {topology.node_names.begin(), topology.node_names.end()});
    };
    const auto taken = take();
    if (!taken) {
      const bool is_first_start = taken.error().code == Code::not_found;
      if (!is_first_start) context.log(Severity::warning, taken.error().message);
    } else if (!taken->empty()) {
      context.log(Severity::information,
                  fmt::format("what {} left in {} when this machine was called so is {}'s now",
                              fmt::join(*taken, ", "), path, name));
    }
  }
}

}  // namespace diapause::engine
