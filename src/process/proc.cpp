#include "process/proc.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>

#include "process/trace.hpp"

namespace diapause::process {
namespace {

constexpr std::uint64_t kPagePresent = std::uint64_t{1} << 63;
constexpr std::uint64_t kPageSwapped = std::uint64_t{1} << 62;
constexpr std::uint64_t kPageOfFile = std::uint64_t{1} << 61;
constexpr std::uint64_t kPageGuarded =
    std::uint64_t{1} << 58;  // since Linux 6.15; such a page counts as swapped, too

// These are the structures of <linux/fs.h> of Linux 6.7. The oldest headers that must suffice to
// build this do not have them.
struct PageScanArguments {
  std::uint64_t size, flags, start, end;
  std::uint64_t walk_end;  // output: address at which the walk stopped
  std::uint64_t found, found_room, most_pages;
  std::uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct PageRun {
  std::uint64_t start, end, categories;
};
constexpr unsigned long kPageScan = _IOWR('f', 16, PageScanArguments);
constexpr std::uint64_t kScanProtect = 1, kScanOnlyWatched = 2;  // flags
constexpr std::uint64_t kScanWritten = 2, kScanFile = 4, kScanPresent = 8, kScanSwapped = 16,
                        kScanZero = 32, kScanGuarded = 256;
static_assert(sizeof(PageScanArguments) == 96 && sizeof(PageRun) == 24);

std::string_view next_word(std::string_view& rest) {
  const std::size_t begin = std::min(rest.find_first_not_of(" \t"), rest.size());
  const std::size_t end = std::min(rest.find_first_of(" \t", begin), rest.size());
  const std::string_view word = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return word;
}

std::uint64_t to_number(std::string_view text, int base) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string last_word(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  const std::size_t space = text.find_last_of(" \t");
  return std::string(space == std::string_view::npos ? text : text.substr(space + 1));
}

// Parses a line such as "7f0000000000-7f0000001000 r-xp 00000000 08:01 1234   /lib/x.so". Returns
// nothing if the line is no mapping.
std::optional<Mapping> parse_mapping(std::string_view line) {
  std::string_view rest = line;
  const std::string_view range = next_word(rest);
  const std::size_t dash = range.find('-');
  const std::string_view rights = next_word(rest);
  if (dash == std::string_view::npos || rights.size() != 4) return std::nullopt;
  if (rights[0] != 'r' && rights[0] != '-') return std::nullopt;
  Mapping found;
  found.begin = to_number(range.substr(0, dash), 16);
  found.end = to_number(range.substr(dash + 1), 16);
  found.protection = (rights[0] == 'r' ? PROT_READ : 0u) | (rights[1] == 'w' ? PROT_WRITE : 0u) |
                     (rights[2] == 'x' ? PROT_EXEC : 0u);
  found.is_shared = rights[3] == 's';
  found.offset = to_number(next_word(rest), 16);
  const std::string_view device = next_word(rest);
  const std::size_t colon = std::min(device.find(':'), device.size() - 1);
  found.device = makedev(static_cast<unsigned>(to_number(device.substr(0, colon), 16)),
                         static_cast<unsigned>(to_number(device.substr(colon + 1), 16)));
  found.inode = to_number(next_word(rest), 10);
  const std::size_t name = rest.find_first_not_of(' ');
  if (name != std::string_view::npos) found.name = rest.substr(name);
  return found;
}

// A few empty pages between two runs take less room in the image than another run.
constexpr std::uint64_t kSmallGapBytes = 8 * kPageBytes;

// Adds a run of pages. It becomes part of the last run if no more than `gap_bytes` lie between
// them.
void extend(std::vector<Extent>& extents, std::uint64_t gap_bytes, std::uint64_t begin,
            std::uint64_t end) {
  if (!extents.empty() && begin - extents.back().end <= gap_bytes) {
    extents.back().end = end;
  } else {
    extents.push_back({begin, end});
  }
}

}  // namespace

Result<std::string> read_proc(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail(os_error("opening " + path, errno));
  std::string text;
  std::array<char, 16384> part;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
  ssize_t got = 0;
  do {
    got = ::read(file, part.data(), part.size());
    if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
  } while (got > 0 || (got < 0 && errno == EINTR));
  const int error = errno;
  ::close(file);
  if (got < 0) return fail(os_error("reading " + path, error));
  return text;
}

Status write_proc(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return fail(os_error("opening " + path, errno));
  const ssize_t written = ::write(file, text.data(), text.size());
  const int error = written < 0 ? errno : EIO;
  ::close(file);
  if (written == static_cast<ssize_t>(text.size())) return {};
  return fail(os_error("writing " + path, error));
}

Result<std::string> read_link(const std::string& path) {
  std::array<char, 4097> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size() - 1);
  if (length < 0) return fail(os_error("reading the link " + path, errno));
  return std::string(target.data(), static_cast<std::size_t>(length));
}

Result<std::vector<pid_t>> numbers_in(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(directory.c_str()), ::closedir);
  if (!open) return fail(os_error("opening " + directory, errno));
  std::vector<pid_t> numbers;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view name = entry->d_name;
    pid_t number = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size())
      numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::vector<std::string> values_in(const std::string& text, std::string_view key) {
  std::vector<std::string> values;
  for (const std::string_view line : lines_of(text)) {
    if (line.size() <= key.size() || !line.starts_with(key) || line[key.size()] != ':') continue;
    const std::string_view value = line.substr(key.size() + 1);
    const std::size_t begin = value.find_first_not_of(" \t");
    values.emplace_back(begin == std::string_view::npos ? "" : value.substr(begin));
  }
  return values;
}

std::optional<std::uint64_t> number_in(const std::string& text, std::string_view key, int base) {
  const std::vector<std::string> values = values_in(text, key);
  if (values.empty()) return std::nullopt;
  std::string_view value = values.front();
  if (base == 16 && value.starts_with("0x")) value.remove_prefix(2);
  return to_number(value, base);
}

Result<ProcStatus> status_of(const std::string& directory) {
  DIAPAUSE_TRY_ASSIGN(const std::string text, read_proc(directory + "/status"));
  const auto innermost = [&](std::string_view key) -> std::uint32_t {
    const std::vector<std::string> values = values_in(text, key);
    return values.empty() ? 0
                          : static_cast<std::uint32_t>(to_number(last_word(values.front()), 10));
  };
  ProcStatus status;
  status.id = innermost("NStgid");
  status.thread_id = innermost("NSpid");
  status.group = innermost("NSpgid");
  status.session = innermost("NSsid");
  status.parent_here = static_cast<pid_t>(number_in(text, "PPid", 10).value_or(0));
  status.tracer_here = static_cast<pid_t>(number_in(text, "TracerPid", 10).value_or(0));
  const std::vector<std::string> state = values_in(text, "State");
  if (!state.empty() && !state.front().empty()) status.state = state.front().front();
  status.mask = static_cast<std::uint32_t>(number_in(text, "Umask", 8).value_or(022));
  status.filters = static_cast<std::uint32_t>(number_in(text, "Seccomp_filters", 10).value_or(0));
  status.locked_kib = number_in(text, "VmLck", 10).value_or(0);
  status.no_new_privileges =
      static_cast<std::uint32_t>(number_in(text, "NoNewPrivs", 10).value_or(0));
  status.inheritable = number_in(text, "CapInh", 16).value_or(0);
  status.permitted = number_in(text, "CapPrm", 16).value_or(0);
  status.effective = number_in(text, "CapEff", 16).value_or(0);
  status.bounding = number_in(text, "CapBnd", 16).value_or(0);
  status.ambient = number_in(text, "CapAmb", 16).value_or(0);
  const std::vector<std::string> name = values_in(text, "Name");
  if (!name.empty()) status.name = name.front();
  for (const std::string_view key : {"Uid", "Gid", "Groups"}) {
    for (const std::string& value : values_in(text, key)) status.users += value + ";";
  }
  return status;
}

bool has_memory(pid_t process) {
  const auto text = read_proc(fmt::format("/proc/{}/status", process));
  return text && number_in(*text, "VmSize", 10).has_value();
}

// The second field is a name in parentheses that may contain any characters, so the fields behind
// its last ")" are read.
Result<StatFields> StatFields::of(pid_t process) {
  DIAPAUSE_TRY_ASSIGN(const std::string text, read_proc(fmt::format("/proc/{}/stat", process)));
  StatFields found;
  const std::size_t name_end = text.rfind(')');
  std::string_view rest =
      std::string_view(text).substr(name_end == std::string::npos ? text.size() : name_end + 1);
  while (!rest.empty()) {
    const std::string_view word = next_word(rest);
    if (!word.empty() && word != "\n") found.fields_.emplace_back(word);
  }
  return found;
}

std::uint64_t StatFields::number(std::size_t field) const {
  const std::size_t index = field - 3;
  return index < fields_.size() ? to_number(fields_[index], 10) : 0;
}

namespace {

constexpr std::string_view kHasKey = "pk ";  // the kernel has no flag for this

std::vector<Mapping> parse_mappings(const std::string& text) {
  std::vector<Mapping> mappings;
  bool has_key = false;
  for (const std::string_view line : lines_of(text)) {
    constexpr std::string_view kFlags = "VmFlags: ", kKey = "ProtectionKey:";
    if (line.starts_with(kKey))
      has_key = line.find_first_not_of(" 0", kKey.size()) != std::string_view::npos;
    if (line.starts_with(kFlags)) {
      if (!mappings.empty()) mappings.back().flags = line.substr(kFlags.size());
      if (has_key && !mappings.empty()) mappings.back().flags += kHasKey;
      has_key = false;
      continue;
    }
    if (auto mapping = parse_mapping(line)) mappings.push_back(std::move(*mapping));
  }
  return mappings;
}

}  // namespace

Result<std::vector<Mapping>> mappings_of(pid_t process) {
  return read_proc(fmt::format("/proc/{}/smaps", process)).map(parse_mappings);
}

Result<std::vector<Mapping>> places_of(pid_t process) {
  return read_proc(fmt::format("/proc/{}/maps", process)).map(parse_mappings);
}

Result<std::uint64_t> resident_pages_of(pid_t process) {
  DIAPAUSE_TRY_ASSIGN(const std::string text, read_proc(fmt::format("/proc/{}/statm", process)));
  std::string_view rest = text;
  next_word(rest);  // the size of all mappings
  return to_number(next_word(rest), 10);
}

namespace {

// Says which pages to look for: all that hold something, except those that are left out here.
struct PageChoice {
  std::uint64_t not_scanned = 0;  // categories of a page scan that are left out
  std::uint64_t not_listed = 0;   // the same as bits of an entry in pagemap, as far as it tells
  std::uint64_t gap_bytes = 0;    // bytes that may lie between two pages of a run
};

// Adds runs of pages to `extents`, in ascending order. Guarded pages hold nothing and cannot be
// read, so no run extends over them.
class PageList {
 public:
  PageList(std::uint64_t gap_bytes, std::vector<Extent>& extents)
      : gap_bytes_(gap_bytes), extents_(extents) {}

  void add(std::uint64_t begin, std::uint64_t end) {
    const bool has_guard_before = !extents_.empty() && extents_.back().end < guard_end_;
    extend(extents_, has_guard_before ? 0 : gap_bytes_, begin, end);
  }
  void add_guard(std::uint64_t end) { guard_end_ = end; }

 private:
  std::uint64_t gap_bytes_;
  std::vector<Extent>& extents_;
  std::uint64_t guard_end_ = 0;
};

// Finds pages by reading eight bytes for each from pagemap, which is all that kernels before 6.7
// offer. Returns 0 or an errno.
int list_pages(int file, const Extent& range, const PageChoice& choice,
               std::vector<Extent>& extents) {
  std::vector<std::uint64_t> entries(4096);
  PageList list(choice.gap_bytes, extents);
  for (std::uint64_t at = range.begin; at < range.end;) {
    const std::uint64_t pages =
        std::min<std::uint64_t>(entries.size(), (range.end - at) / kPageBytes);
    const ssize_t got = ::pread(file, entries.data(), pages * sizeof entries[0],
                                static_cast<off_t>(at / kPageBytes * sizeof entries[0]));
    if (got <= 0) return got == 0 ? EIO : errno;
    for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof entries[0];
         ++i, at += kPageBytes) {
      const bool is_chosen = (entries[i] & (kPagePresent | kPageSwapped)) != 0 &&
                             (entries[i] & choice.not_listed) == 0;
      if ((entries[i] & kPageGuarded) != 0) {
        list.add_guard(at + kPageBytes);
      } else if (is_chosen) {
        list.add(at, at + kPageBytes);
      }
    }
  }
  return 0;
}

// Finds pages by a page scan. `guarded` is the category of guarded pages, or 0 if the kernel does
// not know them. Returns 0 or an errno.
int scan_pages(int file, const Extent& range, const PageChoice& choice, std::uint64_t guarded,
               std::vector<Extent>& extents) {
  std::vector<PageRun> runs(512);
  PageList list(choice.gap_bytes, extents);
  for (std::uint64_t at = range.begin; at < range.end;) {
    PageScanArguments scan{};
    scan.size = sizeof scan;
    scan.start = at;
    scan.end = range.end;
    scan.found = reinterpret_cast<std::uint64_t>(runs.data());
    scan.found_room = runs.size();
    scan.category_inverted = scan.category_mask = choice.not_scanned;
    scan.category_anyof_mask = kScanPresent | kScanSwapped;
    scan.return_mask = scan.category_anyof_mask | guarded;
    const int found = ::ioctl(file, kPageScan, &scan);
    if (found < 0) return errno;
    for (std::size_t i = 0; i < static_cast<std::size_t>(found); ++i) {
      if ((runs[i].categories & guarded) != 0) {
        list.add_guard(runs[i].end);
      } else {
        list.add(runs[i].start, runs[i].end);
      }
    }
    at = scan.walk_end;
  }
  return 0;
}

Result<std::vector<Extent>> chosen_extents(pid_t process, const Extent& range,
                                           const PageChoice& choice) {
  const std::string path = fmt::format("/proc/{}/pagemap", process);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail(os_error("opening " + path, errno));
  std::vector<Extent> extents;
  int error = scan_pages(file, range, choice, kScanGuarded, extents);
  if (error == EINVAL) error = scan_pages(file, range, choice, 0, extents);
  if (error == ENOTTY || error == EINVAL) {
    extents.clear();
    error = list_pages(file, range, choice, extents);
  }
  ::close(file);
  if (error != 0) return fail(os_error("reading " + path, error));
  return extents;
}

}  // namespace

// Pages that hold zeros only because they were read count as empty.
Result<std::vector<Extent>> populated_extents(pid_t process, const Extent& range) {
  return chosen_extents(process, range, {kScanZero, 0, kSmallGapBytes});
}

Result<std::vector<Extent>> written_extents(pid_t process, const Extent& range) {
  return chosen_extents(process, range, {kScanFile, kPageOfFile, 0});
}

namespace {

// Scans a range of a process for the pages that `scan` asks for, and lists those that have none of
// the categories `not_listed`.
Result<std::vector<Extent>> scan_all(pid_t process, const Extent& range, PageScanArguments scan,
                                     std::uint64_t not_listed) {
  const std::string path = fmt::format("/proc/{}/pagemap", process);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail(os_error("opening " + path, errno));
  std::vector<PageRun> runs(512);
  scan.size = sizeof scan;
  scan.end = range.end;
  scan.found = reinterpret_cast<std::uint64_t>(runs.data());
  scan.found_room = runs.size();
  std::vector<Extent> extents;
  int error = 0;
  for (std::uint64_t at = range.begin; at < range.end && error == 0; at = scan.walk_end) {
    scan.start = scan.walk_end = at;
    const int found = ::ioctl(file, kPageScan, &scan);
    if (found < 0) error = errno;
    if (found >= 0 && scan.walk_end <= at) error = EIO;
    for (int i = 0; i < found; ++i) {
      const PageRun& run = runs[static_cast<std::size_t>(i)];
      if ((run.categories & not_listed) == 0) extend(extents, 0, run.start, run.end);
    }
  }
  ::close(file);
  if (error != 0) return fail(os_error("reading " + path, error));
  return extents;
}

}  // namespace

// Pages that are not there are left alone: a mark would make them look as if they were swapped out.
Result<std::vector<Extent>> mark_unwritten(pid_t process, const Extent& range) {
  PageScanArguments scan{};
  scan.flags = kScanOnlyWatched | kScanProtect;
  scan.category_mask = kScanPresent;
  scan.return_mask = kScanPresent | kScanWritten;
  return scan_all(process, range, scan, kScanWritten);
}

Result<std::vector<Extent>> guarded_extents(pid_t process, const Extent& range) {
  PageScanArguments scan{};
  scan.category_mask = scan.return_mask = kScanGuarded;
  auto found = scan_all(process, range, scan, 0);
  const bool is_unknown =
      !found && (found.error().os_errno == ENOTTY || found.error().os_errno == EINVAL);
  if (is_unknown) return std::vector<Extent>{};
  return found;
}

std::vector<Extent> forced_extents(pid_t process, const Extent& range) {
  std::vector<Extent> extents;
  std::byte first{};
  for (std::uint64_t at = range.begin; at < range.end; at += kPageBytes) {
    if (read_any_memory(process, at, {&first, 1})) extend(extents, 0, at, at + kPageBytes);
  }
  return extents;
}

std::vector<Extent> readable_extents(pid_t process, const Extent& range) {
  constexpr std::size_t kProbes = 512;
  std::vector<Extent> extents;
  // NOLINT(cppcoreguidelines-pro-type-member-init): only written to.
  std::array<std::byte, kProbes> bytes;
  std::uint64_t at = range.begin;
  while (at < range.end) {
    std::vector<iovec> pages;
    for (std::uint64_t page = at; page < range.end && pages.size() < kProbes; page += kPageBytes) {
      pages.push_back({reinterpret_cast<void*>(page), 1});
    }
    iovec here{bytes.data(), pages.size()};
    const ssize_t got = ::process_vm_readv(process, &here, 1, pages.data(), pages.size(), 0);
    const std::uint64_t readable = got < 0 ? 0 : static_cast<std::uint64_t>(got);
    if (readable > 0) extend(extents, 0, at, at + readable * kPageBytes);
    // The page behind the readable ones cannot be read.
    at += (readable + (readable < pages.size() ? 1 : 0)) * kPageBytes;
  }
  return extents;
}

}  // namespace diapause::process
