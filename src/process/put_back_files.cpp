#include "process/put_back_files.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <span>

#include "process/file_access.hpp"

namespace diapause::process {
namespace {

constexpr std::size_t kAtOnce = 128;  // files that are open at the same time
constexpr std::size_t kMostLookedAt = 2000;
constexpr std::size_t kMostNamed = 3;

const SharedMemory& memory_of(const Job& job, const JobFile& file) {
  return job.memories[file.memory];
}

// Returns whether the file has to be put back as a job_file, by this node.
bool is_to_be_put_back(const Job& job, const JobFile& file) {
  return file.memory != kNone && memory_of(job, file).kind == SharedKind::job_file;
}

bool is_standard_stream(const struct stat& file) {
  for (int number = 0; number < 3; ++number) {
    struct stat own {};
    if (::fstat(number, &own) == 0 && own.st_dev == file.st_dev && own.st_ino == file.st_ino)
      return true;
  }
  return false;
}

// Returns whether another program has the file open for writing, as far as the kernel tells that to
// its owner: only then it refuses a lease.
bool is_being_written(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return false;
  const bool is_refused = ::fcntl(file, F_SETLEASE, F_RDLCK) != 0 && errno == EAGAIN;
  ::close(file);
  return is_refused;
}

// Returns whether something else than the job writes to the file now.
bool is_of_others(const std::string& path, const struct stat& file, const FileView& view) {
  if (is_standard_stream(file)) return true;
  return !view.is_on_many_machines(path) && is_being_written(path);
}

Status check_job_file(const JobFile& file, const SharedMemory& memory) {
  struct stat now {};
  const bool is_there = ::lstat(file.path.c_str(), &now) == 0;
  if (!is_there && errno != ENOENT && errno != ENOTDIR)
    return fail(os_error("looking at " + file.path + ", which belongs to the job", errno));
  if (!is_there && memory.is_stored) return {};
  if (!is_there) {
    return fail(Code::mismatch, file.path +
                                    " belongs to the job and is gone, and the image holds its "
                                    "length alone");
  }
  if (!S_ISREG(now.st_mode)) {
    return fail(Code::mismatch, file.path +
                                    " was a file of the job, and is a directory, a link or "
                                    "something else now: rename it");
  }
  const auto bytes = static_cast<std::uint64_t>(now.st_size);
  if (!memory.is_stored && bytes < memory.bytes) {
    return fail(Code::mismatch,
                fmt::format("{} had {} bytes when the image was made, which holds its length "
                            "alone, and has {} now",
                            file.path, memory.bytes, bytes));
  }
  const bool may_write = now.st_uid == ::geteuid() || ::access(file.path.c_str(), W_OK) == 0;
  if (bytes == memory.bytes || may_write || is_standard_stream(now)) return {};
  return fail(Code::mismatch, file.path +
                                  " belongs to the job and has changed, and you may not write to "
                                  "it");
}

// This is a file that is being put back.
struct OpenFile {
  const JobFile* file = nullptr;
  const SharedMemory* memory = nullptr;
  int number = -1;
  bool can_write = true;
  bool is_left = false;  // it is a standard stream of this process

  OpenFile() = default;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (number >= 0) ::close(number);
  }
  Status open();
  Status write(std::uint64_t offset, ByteView bytes) const;
  Status finish() const;

 private:
  std::string text() const { return "making " + file->path + " what it was"; }
};

Status OpenFile::open() {
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK;
  const std::string& path = file->path;
  number = open_as_owner(path, O_RDWR | kFlags);
  if (number < 0 && (errno == ENOENT || errno == ENOTDIR) && memory->is_stored) {
    make_directories_of(path);
    number = open_as_owner(path, O_RDWR | O_CREAT | O_EXCL | kFlags, 0600);
    if (number >= 0) ::fchmod(number, memory->mode & 07777);
  }
  if (number < 0 && (errno == EACCES || errno == EPERM || errno == EROFS || errno == ETXTBSY)) {
    can_write = false;
    number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | kFlags);
  }
  struct stat now {};
  if (number < 0 || ::fstat(number, &now) != 0) return fail(os_error(text(), errno));
  is_left = is_standard_stream(now);
  if (S_ISREG(now.st_mode)) return {};
  return fail(Code::mismatch, path + " was a file of the job, and is something else now");
}

// It is called from several threads at once.
Status OpenFile::write(std::uint64_t offset, ByteView bytes) const {
  if (is_left) return {};
  ByteVector held(bytes.size());
  std::size_t done = 0;
  for (ssize_t got = 1; got > 0 && done < held.size(); done += static_cast<std::size_t>(got)) {
    got =
        ::pread(number, held.data() + done, held.size() - done, static_cast<off_t>(offset + done));
    if (got < 0) return fail(os_error(text(), errno));
  }
  if (done == held.size() && std::ranges::equal(held, bytes)) return {};
  if (can_write) return write_sparsely(number, offset, bytes, text());
  return fail(os_error(text(), EACCES));
}

Status OpenFile::finish() const {
  struct stat now {};
  if (::fstat(number, &now) != 0) return fail(os_error(text(), errno));
  if (is_left) return {};
  const auto bytes = static_cast<std::uint64_t>(now.st_size);
  if (bytes < memory->bytes && !memory->is_stored)
    return fail(Code::mismatch, file->path + " is shorter than it was");
  if (bytes != memory->bytes && ::ftruncate(number, static_cast<off_t>(memory->bytes)) != 0)
    return fail(os_error(text(), can_write ? errno : EACCES));
  if (!memory->is_stored) return {};
  // Who is not the owner can leave mode and time as they are.
  if ((now.st_mode & 07777) != (memory->mode & 07777)) ::fchmod(number, memory->mode & 07777);
  constexpr std::int64_t kOneSecond_ns = 1'000'000'000;
  const std::int64_t part = (file->modified_ns % kOneSecond_ns + kOneSecond_ns) % kOneSecond_ns;
  const timespec times[2] = {{0, UTIME_OMIT}, {(file->modified_ns - part) / kOneSecond_ns, part}};
  ::futimens(number, times);
  return {};
}

Status put_back_some(const Job& job, std::span<const JobFile* const> files,
                     const std::vector<ContentsList>& parts, const ReadContents& read) {
  std::vector<OpenFile> open(files.size());
  std::map<std::uint32_t, const OpenFile*> of_memory;
  ContentsList contents;
  for (std::size_t i = 0; i < files.size(); ++i) {
    open[i].file = files[i];
    open[i].memory = &memory_of(job, *files[i]);
    DIAPAUSE_TRY(open[i].open());
    of_memory[files[i]->memory] = &open[i];
    if (!open[i].memory->is_stored) continue;
    const ContentsList& own = parts[files[i]->memory];
    contents.insert(contents.end(), own.begin(), own.end());
  }
  DIAPAUSE_TRY(read(contents, [&](const StoredContents& one, std::uint64_t offset, ByteView bytes) {
    return of_memory.at(one.shared)->write(one.offset + offset, bytes);
  }));
  for (const OpenFile& one : open) DIAPAUSE_TRY(one.finish());
  return {};
}

// Gives the file a name that no other has.
Status put_aside(const std::string& path) {
  constexpr unsigned kKeep = 1;  // RENAME_NOREPLACE
  for (int number = 1;; ++number) {
    const std::string aside =
        path + std::string(kAside) + (number == 1 ? "" : fmt::format(".{}", number));
    if (::syscall(SYS_renameat2, AT_FDCWD, path.c_str(), AT_FDCWD, aside.c_str(), kKeep) == 0)
      return {};
    int error = errno;
    struct stat other {};
    const bool can_keep = error != EINVAL && error != ENOSYS;
    if (!can_keep && ::lstat(aside.c_str(), &other) == 0) error = EEXIST;
    if (!can_keep && error != EEXIST)
      error = ::rename(path.c_str(), aside.c_str()) == 0 ? 0 : errno;
    if (error == 0 || error == ENOENT) return {};  // another may have removed it
    if (error == EEXIST) continue;
    return fail(os_error(
        "renaming " + path + ", which the job has made after the checkpoint, to " + aside, error));
  }
}

// This is what files on one file system need.
struct Room {
  std::string directory;
  std::uint64_t needed = 0;
  std::uint64_t freed = 0;  // by files that are longer now than they were
};

// Returns the nearest directory above a path that there is.
std::string directory_above(const std::string& path) {
  std::filesystem::path directory = std::filesystem::path(path).parent_path();
  std::error_code error;
  while (!std::filesystem::exists(directory, error) && directory.has_relative_path())
    directory = directory.parent_path();
  return directory.native();
}

// Refuses a restart that would fill a file system, so that no file is half written then. Places of
// which the image holds nothing need no room.
Status check_room(const Job& job, const std::vector<StoredContents>& contents) {
  std::map<dev_t, Room> rooms;
  std::vector<std::uint64_t> held(job.memories.size());
  for (const StoredContents& one : contents) {
    if (one.process == 0) held[one.shared] += one.bytes;
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    const SharedMemory& one = job.memories[i];
    const bool is_file = one.kind == SharedKind::file || one.kind == SharedKind::job_file;
    if (!is_file || !one.is_stored) continue;
    struct stat now {};
    const bool is_there = ::stat(one.path.c_str(), &now) == 0;
    if (is_there && !S_ISREG(now.st_mode)) continue;
    const std::string directory = directory_above(one.path);
    const std::uint64_t bytes = is_there ? static_cast<std::uint64_t>(now.st_size) : 0;
    if (!is_there && ::stat(directory.c_str(), &now) != 0) continue;
    Room& room = rooms[now.st_dev];
    room.directory = directory;
    room.needed += one.bytes > bytes ? std::min(one.bytes - bytes, held[i]) : 0;
    const std::uint64_t taken = is_there ? static_cast<std::uint64_t>(now.st_blocks) * 512 : 0;
    room.freed += one.bytes < bytes ? std::min(bytes - one.bytes, taken) : 0;
  }
  for (const auto& [device, room] : rooms) {
    std::error_code error;
    const auto space = std::filesystem::space(room.directory, error);
    const std::uint64_t free = ::geteuid() == 0 ? space.free : space.available;
    if (error || space.capacity == 0 || room.needed <= free + room.freed) continue;
    return fail(Code::full,
                fmt::format("what the checkpoint holds of the job's files in {} needs {} bytes "
                            "there, and {} are free: make room, and restart once more",
                            room.directory, room.needed, free + room.freed));
  }
  return {};
}

}  // namespace

Status check_files_to_put_back(const Job& job, const std::vector<StoredContents>& contents) {
  for (const JobFile& one : job.files) {
    if (is_to_be_put_back(job, one)) DIAPAUSE_TRY(check_job_file(one, memory_of(job, one)));
  }
  return check_room(job, contents);
}

Status put_back_files(const Job& job, const std::vector<StoredContents>& contents,
                      const ReadContents& read) {
  std::vector<const JobFile*> files;
  for (const JobFile& one : job.files) {
    if (is_to_be_put_back(job, one)) files.push_back(&one);
  }
  const std::vector<ContentsList> parts = contents_of_memories(job, contents);
  const std::span<const JobFile* const> all(files);
  for (std::size_t at = 0; at < all.size(); at += kAtOnce) {
    DIAPAUSE_TRY(
        put_back_some(job, all.subspan(at, std::min(kAtOnce, all.size() - at)), parts, read));
  }
  return {};
}

Result<std::vector<std::string>> put_aside_new_files(const Job& job, const FileView& view) {
  std::vector<std::string> names;
  DIAPAUSE_TRY_ASSIGN(const std::vector<std::string> found,
                      files_matching(job.file_patterns, view));
  std::set<std::string_view> known;
  for (const JobFile& one : job.files) known.insert(one.path);
  for (const std::string& path : found) {
    struct stat now {};
    if (known.contains(path) || ::lstat(path.c_str(), &now) != 0 || is_of_others(path, now, view))
      continue;
    DIAPAUSE_TRY(put_aside(path));
    names.push_back(path);
  }
  return names;
}

std::set<std::string> paths_of_held_files(const Job& job) {
  std::set<std::string> paths = paths_of_open_files(job);
  for (const JobFile& one : job.files) paths.insert(one.path);
  for (const Description& one : job.descriptions) {
    if (one.kind == DescriptionKind::standard) paths.insert(one.path);
  }
  return paths;
}

std::vector<std::string> files_changed_since(const Job& job, const FileView& view) {
  namespace fs = std::filesystem;
  std::vector<std::string> changed;
  if (job.unix_ns == 0) return changed;  // of an older format version
  std::set<std::string> directories;
  for (const Process& one : job.processes) {
    if (!one.has_ended && view.is_shown_here(one.directory)) directories.insert(one.directory);
  }
  const std::set<std::string> held = paths_of_held_files(job);
  std::size_t left = kMostLookedAt;
  for (const std::string& directory : directories) {
    std::error_code error;
    fs::directory_iterator each(directory, error);
    for (; !error && each != fs::directory_iterator() && left > 0; each.increment(error), --left) {
      const std::string& path = each->path().native();
      struct stat now {};
      if (::lstat(path.c_str(), &now) != 0 || !S_ISREG(now.st_mode)) continue;
      const std::int64_t modified_ns = nanoseconds(now.st_mtim);
      if (modified_ns <= static_cast<std::int64_t>(job.unix_ns) || is_put_aside(path) ||
          view.is_apart(path) || held.contains(path) || is_of_others(path, now, view))
        continue;
      changed.push_back(path);
    }
  }
  std::ranges::sort(changed);
  return changed;
}

std::string some_of(const std::vector<std::string>& names) {
  const std::size_t named = std::min(names.size(), kMostNamed);
  const std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<long>(named), ", "));
  return named == names.size() ? text : fmt::format("{} and {} more", text, names.size() - named);
}

}  // namespace diapause::process
