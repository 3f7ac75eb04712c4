#include "store/identity.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "store/names.hpp"
#include "store/survey.hpp"
#include "sys/process.hpp"

namespace diapause::store {
namespace {

constexpr std::uint64_t kLargestSmallFile = 2 * kMiB;

template <class Decoder>
auto read_small_file(const sys::Directory& job, const char* name, Decoder decode)
    -> decltype(decode(ByteView())) {
  DIAPAUSE_TRY_ASSIGN(const sys::File file, job.open_file(name, sys::Access::read));
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, file.size());
  if (size > kLargestSmallFile)
    return fail(Code::corrupt, fmt::format("{} has {} bytes", file.path(), size));
  ByteVector bytes(size);
  DIAPAUSE_TRY(file.read_exact(bytes, 0));
  auto decoded = decode(bytes);
  if (!decoded) return fail(decoded.error().code, file.path() + ": " + decoded.error().message);
  return decoded;
}

// Reads what a directory in the root of a global tier says of itself.
FoundJob look_at_job(const sys::Directory& root, const std::string& name) {
  FoundJob found;
  found.directory = name;
  const auto job = root.open_child(name);
  if (!job) {
    found.trouble = job.error().message;
    return found;
  }
  auto identity = read_identity(*job);
  if (!identity) {
    if (identity.error().code != Code::not_found) found.trouble = identity.error().message;
    return found;
  }
  found.standing = standing_of(root, *job, *identity);
  found.identity = std::move(*identity);
  return found;
}

// Returns when the newest version there was taken, or 0 if there is none.
std::uint64_t newest_version_ns(const sys::Directory& root, const std::string& name) {
  const auto job = root.open_child(name);
  if (!job) return 0;
  const auto versions = scan_versions(*job, name);
  std::uint64_t newest = 0;
  if (!versions) return newest;
  for (const FoundVersion& version : *versions) {
    if (version.manifest) newest = std::max(newest, version.manifest->created_unix_ns);
  }
  return newest;
}

bool exists(const sys::Directory& parent, const std::string& name) {
  const auto child = parent.open_child(name);
  return child || child.error().code != Code::not_found;
}

}  // namespace

Result<format::JobIdentity> read_identity(const sys::Directory& job) {
  return read_small_file(job, kIdentityName, format::decode_identity);
}

Result<format::Starts> read_starts(const sys::Directory& job) {
  return read_small_file(job, kStartsName, format::decode_starts);
}

Status write_starts(const sys::Directory& job, const format::Starts& starts) {
  return sys::publish_file(job, kStartsName, format::encode_starts(starts),
                           std::string(kStartsName) + ".tmp");
}

Status write_identity(const sys::Directory& job, const format::JobIdentity& identity,
                      std::string_view writer) {
  return sys::publish_file(job, kIdentityName, format::encode_identity(identity),
                           fmt::format("{}.tmp-{}", kIdentityName, writer));
}

Result<format::JobIdentity> draw_identity(std::string_view job, std::string_view home) {
  format::JobIdentity identity;
  DIAPAUSE_TRY(sys::random_bytes(std::as_writable_bytes(std::span(identity.id.bytes))));
  identity.created_unix_ns = sys::unix_time_ns();
  identity.job = job;
  identity.key = job_key(job, identity.id);
  identity.home = home;
  return identity;
}

// A path that cannot be looked at may be that of another user's directory, from which this one was
// copied; only one that leads nowhere, or to another job, says that nothing was left behind.
Standing standing_of(const sys::Directory& root, const sys::Directory& job,
                     const format::JobIdentity& identity) {
  if (identity.home == root.real_path()) return Standing::home;
  const std::string path = identity.home + "/" + identity.key;
  const auto original = sys::Directory::open_private(root.kernel(), path);
  if (!original)
    return sys::Directory::may_exist(root.kernel(), path) ? Standing::copy : Standing::moved;
  if (original->is_same_as(job)) return Standing::home;
  const auto its = read_identity(*original);
  return its && its->id == identity.id ? Standing::copy : Standing::moved;
}

Result<std::vector<FoundJob>> find_jobs(const sys::Directory& root, std::string_view name) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<sys::DirectoryEntry> entries, root.list());
  std::vector<FoundJob> found;
  for (const sys::DirectoryEntry& entry : entries) {
    if (!is_key_of(entry.name, name))
      continue;  // it may be a link or a file, which shows when it is opened
    FoundJob one = look_at_job(root, entry.name);
    const bool is_named = one.standing != Standing::unnamed;
    const bool is_second =
        is_named && one.identity.key != one.directory && exists(root, one.identity.key);
    if (!is_second) found.push_back(std::move(one));
  }
  return found;
}

const FoundJob& choose_job(const sys::Directory& root, const std::vector<FoundJob>& found) {
  if (found.size() == 1) return found.front();
  const auto rank = [&](const FoundJob& one) {
    return std::tuple(one.standing != Standing::unnamed, newest_version_ns(root, one.directory),
                      one.identity.created_unix_ns, one.directory);
  };
  return *std::ranges::max_element(found, {}, rank);
}

std::string own_root(sys::Kernel& kernel, const std::string& usual) {
  constexpr int kMostNames = 64;
  std::string first_free;
  for (int number = 0; number < kMostNames; ++number) {
    const std::string name = number == 0 ? usual : fmt::format("{}-{}", usual, number);
    const auto directory = sys::Directory::open_private(kernel, name);
    if (directory) return name;
    const bool is_free = directory.error().code == Code::not_found;
    if (is_free && first_free.empty()) first_free = name;
    // Names after a free one can belong to this user only if another user's directory has gone
    // meanwhile.
    if (!is_free && directory.error().code != Code::denied) break;
  }
  return first_free.empty() ? usual : first_free;
}

namespace {

// Moves what is called `name` from one directory to the other, or, where that has a directory of
// this name, what it lacks. Files that both have stay where they are.
Status move_over(const sys::Directory& from, const std::string& name, const sys::Directory& to) {
  if (!exists(to, name)) return from.rename(name, to, name);
  DIAPAUSE_TRY_ASSIGN(const sys::Directory source, from.open_child(name));
  DIAPAUSE_TRY_ASSIGN(const sys::Directory target, to.open_child(name));
  DIAPAUSE_TRY_ASSIGN(const std::vector<sys::DirectoryEntry> entries, source.list());
  for (const sys::DirectoryEntry& entry : entries) {
    const auto there = target.open_file(entry.name, sys::Access::read);
    const bool is_free = !there && there.error().code == Code::not_found;
    if (is_free && !entry.is_directory) DIAPAUSE_TRY(source.rename(entry.name, target, entry.name));
  }
  return target.sync();
}

Status absorb(const sys::Directory& job, const std::string& old_name, const std::string& node) {
  DIAPAUSE_TRY_ASSIGN(const sys::Directory old_place, job.open_child(old_name));
  const std::string holder =
      fmt::format("process {}, which takes over what {} left\n", sys::process_id(), old_name);
  DIAPAUSE_TRY_ASSIGN(const sys::FileLock lock,
                      sys::FileLock::acquire(old_place, kLockName, holder, 0));
  // Another node may have taken it over, under its own name, before it was locked here.
  if (old_place.was_moved()) return fail(Code::not_found, old_place.path() + " has moved");
  if (!exists(job, node)) {
    DIAPAUSE_TRY(job.rename(old_name, job, node));
    return job.sync();
  }
  DIAPAUSE_TRY_ASSIGN(const sys::Directory place, job.open_child(node));
  DIAPAUSE_TRY_ASSIGN(const std::vector<sys::DirectoryEntry> entries, old_place.list());
  for (const sys::DirectoryEntry& entry : entries) {
    const bool is_ours = parse_version_directory(entry.name) || entry.name == kSpareDirectory ||
                         entry.name == kNextDirectory;
    if (entry.is_directory && is_ours) DIAPAUSE_TRY(move_over(old_place, entry.name, place));
  }
  DIAPAUSE_TRY(place.sync());
  // Removing takes the lock's file away first, so another node must not find the directory any
  // more.
  DIAPAUSE_TRY_ASSIGN(const sys::Directory spare, place.make_child(kSpareDirectory));
  DIAPAUSE_TRY(job.rename(old_name, spare, old_name));
  return spare.remove_child(old_name);
}

}  // namespace

Result<std::vector<std::string>> take_over_renamed(const sys::Directory& job,
                                                   const std::string& node,
                                                   const std::set<std::string>& nodes_there_are) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<sys::DirectoryEntry> entries, job.list());
  std::vector<std::string> taken;
  for (const sys::DirectoryEntry& entry : entries) {
    if (!entry.is_directory || entry.name == kSpareDirectory || parse_version_directory(entry.name))
      continue;
    if (nodes_there_are.contains(entry.name)) continue;
    const Status absorbed = absorb(job, entry.name, node);
    if (absorbed) taken.push_back(entry.name);
    const bool is_others =
        !absorbed && (absorbed.error().code == Code::busy ||      // a job works there
                      absorbed.error().code == Code::not_found);  // another rank was faster
    if (!absorbed && !is_others) return fail(absorbed.error());
  }
  return taken;
}

}  // namespace diapause::store
