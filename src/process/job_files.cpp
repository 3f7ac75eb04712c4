#include "process/job_files.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <glob.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "process/file_access.hpp"
#include "sys/path.hpp"

namespace diapause::process {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNames = 100'000;
// A file that has just been changed may change once more without another time in its inode: the
// kernel takes times from a clock that stands still for some milliseconds, and those of other
// machines may differ from ours.
constexpr std::int64_t kRecent_ns = 2'000'000'000;

// Returns whether an error says no more than that there is nothing to see.
bool is_nothing_there(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP;
}

// Collects the files that patterns name.
class NameCollection {
 public:
  explicit NameCollection(const FileView& view) : view_(view) {}

  Status add_pattern(const std::string& pattern) {
    glob_t found{};
    const int result = ::glob(
        pattern.c_str(), GLOB_NOSORT,
        [](const char*, int error) { return is_nothing_there(error) ? 0 : 1; }, &found);
    const int error = errno;
    Status added;
    for (std::size_t i = 0; added && result == 0 && i < found.gl_pathc; ++i)
      added = add_match(found.gl_pathv[i]);
    ::globfree(&found);
    if (result == 0 || result == GLOB_NOMATCH) return added;
    return fail(os_error("looking for the files of the job that match " + pattern, error));
  }
  std::vector<std::string> take() { return {names_.begin(), names_.end()}; }

 private:
  // The last directory is remembered, because the matches of a glob often lie in the same one.
  Status add_match(const std::string& match) {
    struct stat state {};
    if (::lstat(match.c_str(), &state) != 0) return {};
    std::error_code error;
    fs::path path = match;
    if (S_ISLNK(state.st_mode) || S_ISDIR(state.st_mode)) {
      path = fs::canonical(path, error);
      if (error) return {};
      if (fs::is_directory(path, error)) return add_below(path);
      if (::stat(path.c_str(), &state) != 0) return {};
    } else {
      if (path.parent_path() != last_) {
        last_ = path.parent_path();
        last_without_links_ = fs::canonical(last_, error);
        is_last_shown_ = !error && view_.is_shown_here(last_without_links_);
      }
      if (!is_last_shown_) return {};
      path = last_without_links_ / path.filename();
    }
    if (S_ISREG(state.st_mode)) add_file(path);
    return {};
  }
  Status add_below(const fs::path& directory) {
    if (!view_.is_shown_here(directory)) return {};
    std::error_code error;
    const auto told = [&](const fs::path& place) -> Status {
      if (!error || is_nothing_there(error.value())) return {};
      return fail(os_error("looking for files of the job below " + place.string(), error.value()));
    };
    fs::directory_iterator each(directory, error);
    DIAPAUSE_TRY(told(directory));
    for (; !error && each != fs::directory_iterator(); each.increment(error)) {
      // The kernel tells kinds with the names, so that no file is looked at here.
      std::error_code unknown;
      if (each->is_symlink(unknown)) continue;
      if (each->is_directory(unknown)) {
        DIAPAUSE_TRY(add_below(each->path()));
      } else if (each->is_regular_file(unknown)) {
        add_file(each->path());
      }
    }
    return told(directory);
  }
  void add_file(const fs::path& path) {
    if (!is_put_aside(path.native()) && !view_.is_apart(path)) names_.insert(path);
  }

  const FileView& view_;
  std::set<std::string> names_;
  fs::path last_, last_without_links_;
  bool is_last_shown_ = false;
};

struct NamedFile {
  std::string path;
  struct stat state {};
};
// Returns the files of which all are the smaller ones come first, so that limits keep as many as
// they can.
std::vector<NamedFile> by_size(const std::vector<std::string>& paths) {
  std::vector<NamedFile> files;
  for (const std::string& path : paths) {
    NamedFile one{path, {}};
    if (::lstat(path.c_str(), &one.state) == 0 && S_ISREG(one.state.st_mode))
      files.push_back(std::move(one));
  }
  std::ranges::stable_sort(files, {}, [](const NamedFile& one) { return one.state.st_size; });
  return files;
}

bool is_same_state(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino && one.st_size == other.st_size &&
         nanoseconds(one.st_mtim) == nanoseconds(other.st_mtim) &&
         nanoseconds(one.st_ctim) == nanoseconds(other.st_ctim);
}

// Reads a file as long as `state` says, which becomes what it is when it is open. Returns nothing
// if that is not possible, and less if the file is shorter by then.
ByteVector read_whole(const std::string& path, struct stat& state) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat now {};
  if (file < 0) return {};
  ByteVector bytes;
  if (::fstat(file, &now) == 0 && S_ISREG(now.st_mode) &&
      static_cast<std::uint64_t>(now.st_size) <= kMostOfAFile) {
    state = now;
    bytes.resize(static_cast<std::size_t>(now.st_size));
    std::size_t done = 0;
    for (ssize_t got = 0; done < bytes.size(); done += static_cast<std::size_t>(got)) {
      got = ::pread(file, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      if (got < 0 && errno == EINTR)
        got = 0;
      else if (got <= 0)
        break;
    }
    bytes.resize(done);
  }
  ::close(file);
  return bytes;
}

// Returns how many bytes of each memory the image holds.
std::vector<std::uint64_t> held_bytes(const Dump& dump) {
  std::vector<std::uint64_t> held(dump.job.memories.size());
  for (const Contents& one : dump.contents) {
    if (one.process == 0) held[one.shared] += one.bytes;
  }
  return held;
}

// Returns whether the image holds all of a memory: what it lacks of mapped parts lies in holes.
bool is_wholly_held(const Dump& dump, std::uint32_t index) {
  std::vector<Extent> held;
  for (const Contents& one : dump.contents) {
    if (one.process == 0 && one.shared == index)
      held.push_back({one.offset, one.offset + one.bytes});
  }
  for (const Process& process : dump.job.processes) {
    for (const Area& one : process.areas) {
      if (one.kind == AreaKind::shared && one.shared == index)
        held.push_back({one.offset, one.offset + one.end - one.begin});
    }
  }
  std::ranges::sort(held, {}, &Extent::begin);
  std::uint64_t end = 0;
  for (const Extent& one : held) {
    if (one.begin <= end) end = std::max(end, one.end);
  }
  return end >= dump.job.memories[index].bytes;
}

}  // namespace

bool FileView::is_apart(const std::string& path) const {
  return std::ranges::any_of(apart, [&](const std::string& one) { return is_below(path, one); });
}

bool FileView::is_on_many_machines(const std::string& path) {
  constexpr std::uint32_t kShared[] = {
      0x6969,      // NFS
      0x517b,      // SMB
      0xfe534d42,  // SMB 2 and later
      0xff534d42,  // CIFS
      0x0bd00bd0,  // Lustre
      0x47504653,  // GPFS
      0x19830326,  // BeeGFS
      0x00c36400,  // Ceph
      0x5346414f,  // AFS
      0x6b414653,  // AFS of the kernel
      0x7461636f,  // OCFS2
      0x01161970,  // GFS2
      0xaad7aaea,  // PanFS
      0x20030528,  // OrangeFS
      0x01021997,  // 9P
  };
  struct statfs found {};
  if (::statfs(path.c_str(), &found) != 0) return false;
  return std::ranges::find(kShared, static_cast<std::uint32_t>(found.f_type)) != std::end(kShared);
}

bool FileView::is_shown_here(const std::string& directory) const {
  if (is_apart(directory)) return false;
  return node == Node::first || (node == Node::other && !is_on_many_machines(directory));
}

bool is_put_aside(std::string_view path) {
  const std::size_t at = path.rfind(kAside);
  if (at == path.npos) return false;
  const std::string_view rest = path.substr(at + kAside.size());
  return rest.empty() || (rest.size() > 1 && rest.front() == '.' &&
                          rest.substr(1).find_first_not_of("0123456789") == rest.npos);
}

Result<std::vector<std::string>> files_matching(const std::vector<std::string>& patterns,
                                                const FileView& view) {
  NameCollection names(view);
  for (const std::string& one : patterns) DIAPAUSE_TRY(names.add_pattern(one));
  return names.take();
}

std::vector<std::string> absolute_patterns(const std::vector<std::string>& patterns,
                                           const std::string& directory) {
  std::vector<std::string> absolute;
  for (const std::string& one : patterns)
    absolute.push_back(sys::plain_spelling(one.starts_with('/') ? one : directory + "/" + one));
  return absolute;
}

std::set<std::string> paths_of_open_files(const Job& job) {
  std::set<std::string> paths;
  for (const Description& one : job.descriptions) {
    if (one.kind == DescriptionKind::file && (one.flags & O_ACCMODE) != O_RDONLY)
      paths.insert(one.path);
  }
  for (const SharedMemory& one : job.memories) {
    if (one.kind == SharedKind::file && one.is_stored) paths.insert(one.path);
  }
  return paths;
}

Status JobFiles::look(std::uint64_t now_ns) {
  seen_.clear();
  if (patterns_.empty()) return {};
  DIAPAUSE_TRY_ASSIGN(const std::vector<std::string> names, files_matching(patterns_, view_));
  if (names.size() > kMostNames) {
    return fail(Code::argument,
                fmt::format("{} files match what --files names, and at most {} can belong to a job",
                            names.size(), kMostNames));
  }
  const auto now = static_cast<std::int64_t>(now_ns);
  std::uint64_t total = 0;
  for (NamedFile& one : by_size(names)) {
    const auto bytes = static_cast<std::uint64_t>(one.state.st_size);
    if (bytes > kMostOfAFile || total + bytes > kMostOfFiles) break;
    const std::int64_t changed =
        std::max(nanoseconds(one.state.st_mtim), nanoseconds(one.state.st_ctim));
    if (bytes == 0 || changed > now - kRecent_ns) continue;
    Seen seen{one.state, {}};
    seen.bytes = read_whole(one.path, seen.state);
    total += seen.bytes.size();
    if (is_same_state(seen.state, one.state)) seen_.insert_or_assign(one.path, std::move(seen));
  }
  return {};
}

std::set<std::string> JobFiles::open_here(const Job& job) const {
  if (view_.node == FileView::Node::first) return {};
  std::set<std::string> paths = paths_of_open_files(job);
  std::erase_if(paths, [&](const std::string& path) {
    return view_.is_apart(path) || view_.is_shown_here(fs::path(path).parent_path());
  });
  return paths;
}

ByteVector JobFiles::take_contents(const std::string& path, struct stat& state, bool is_mapped) {
  const auto seen = seen_.find(path);
  const bool is_known =
      !is_mapped && seen != seen_.end() && is_same_state(seen->second.state, state);
  return is_known ? std::move(seen->second.bytes) : read_whole(path, state);
}

Status JobFiles::add_to(Dump& dump, const std::set<std::string>& elsewhere) {
  Job& job = dump.job;
  job.file_patterns = patterns_;
  if (patterns_.empty()) return {};
  const std::vector<std::uint64_t> held = held_bytes(dump);
  std::map<std::string, std::uint32_t> open;  // those that are open or mapped
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i < held.size(); ++i) {
    if (job.memories[i].kind != SharedKind::file) continue;
    open.emplace(job.memories[i].path, i);
    total += held[i];
  }
  std::set<std::string_view> left(elsewhere.begin(), elsewhere.end());
  for (const Description& one : job.descriptions) {
    if (one.kind == DescriptionKind::standard) left.insert(one.path);
  }
  DIAPAUSE_TRY_ASSIGN(const std::vector<std::string> names, files_matching(patterns_, view_));
  for (NamedFile& one : by_size(names)) {
    const auto known = open.find(one.path);
    const bool is_held = known != open.end() && job.memories[known->second].is_stored &&
                         is_wholly_held(dump, known->second);
    if (is_held || left.contains(one.path)) {
      job.files.push_back({one.path, is_held ? known->second : kNone, 0});
      continue;
    }
    const auto most = static_cast<std::uint64_t>(one.state.st_size);
    ByteVector contents;
    if (most <= kMostOfAFile && total + most <= kMostOfFiles)
      contents = take_contents(one.path, one.state, known != open.end());
    if (contents.empty() && ::access(one.path.c_str(), F_OK) != 0) continue;  // another removed it
    SharedMemory memory;
    memory.kind = SharedKind::job_file;
    memory.path = one.path;
    memory.bytes =
        contents.empty() ? static_cast<std::uint64_t>(one.state.st_size) : contents.size();
    memory.mode = one.state.st_mode & 07777;
    memory.is_stored = contents.size() == memory.bytes;
    memory.is_writable = true;
    const auto index = static_cast<std::uint32_t>(job.memories.size());
    job.files.push_back({one.path, index, nanoseconds(one.state.st_mtim)});
    job.memories.push_back(std::move(memory));
    if (contents.empty()) continue;
    total += contents.size();
    Contents& added = dump.contents.emplace_back();
    added.bytes = contents.size();
    added.shared = index;
    added.read = std::move(contents);
  }
  seen_.clear();
  return {};
}

}  // namespace diapause::process
