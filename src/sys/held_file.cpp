#include "sys/held_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>

#include <array>
#include <utility>

#include "sys/futex.hpp"
#include "sys/process.hpp"
#include "sys/robust.hpp"
#include "sys/tasks.hpp"

namespace diapause::sys {
namespace {

// Returns the first line of the file, which identifies its holder: "<host> <boot> <process> <start
// time of the process>".
std::string myself() {
  return fmt::format("{} {} {} {}", host_name(), boot_id(real_kernel()).value_or("?"), process_id(),
                     start_ticks(real_kernel(), process_id()).value_or(0));
}

std::string text_of(const Directory& directory, const std::string& name) {
  const auto file = directory.open_file(name, Access::read);
  if (!file) return "";
  std::array<char, 512> text{};
  const auto count = uninterrupted(
      [&] { return file->kernel().pread(file->fd(), std::as_writable_bytes(std::span(text)), 0); });
  return {text.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

// Returns whether the holder was a process of this machine that has ended, which can be told at
// once.
bool has_ended_here(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  std::array<std::string, 4> words;
  std::size_t begin = 0;
  for (std::string& word : words) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    word = line.substr(std::min(begin, line.size()), end - std::min(begin, end));
    begin = end + 1;
  }
  if (words[0] != host_name() || words[3].empty()) return false;
  if (words[1] != boot_id(real_kernel()).value_or("?")) return true;
  std::int64_t process = 0;
  for (const char c : words[2]) process = c >= '0' && c <= '9' ? process * 10 + (c - '0') : process;
  const auto started = start_ticks(real_kernel(), process);
  if (!started) return started.error().code == Code::not_found;
  return std::to_string(*started) != words[3];
}

Status write_beat(const File& file, const std::string& holder, std::uint64_t beat) {
  return file.write_all(as_byte_view(fmt::format("{}\n{:016}\n", holder, beat)), 0);
}

}  // namespace

Result<File> HeldFile::make(const Directory& directory, const std::string& name) {
  DIAPAUSE_TRY_ASSIGN(File file, open_checked(directory, name, O_RDWR | O_CREAT | O_EXCL));
  if (const Status written = write_beat(file, myself(), 0); !written) {
    (void)directory.remove_file(name);
    return fail(written.error());
  }
  return file;
}

Result<HeldFile> HeldFile::acquire(const Directory& directory, const std::string& name,
                                   Watch& watch) {
  auto file = make(directory, name);
  if (!file && file.error().os_errno != EEXIST) return fail(file.error());
  if (!file) {
    const std::string text = text_of(directory, name);
    if (text != watch.seen || watch.since_s == 0) watch = {text, monotonic_s()};
    const bool is_left_behind = has_ended_here(text) || monotonic_s() - watch.since_s >= kDead_s;
    if (!is_left_behind) return fail(Code::busy, directory.path() + "/" + name);
    // If two processes remove a stale file at the same time, they make one new file, and only one
    // of them succeeds.
    const std::string aside = fmt::format("{}.dead-{}", name, process_id());
    DIAPAUSE_TRY(directory.rename(name, directory, aside));
    const bool is_the_same = text_of(directory, aside) == text;
    if (!is_the_same) {  // another process was faster, and this file is its
      DIAPAUSE_TRY(directory.rename(aside, directory, name));
      return fail(Code::busy, directory.path() + "/" + name);
    }
    DIAPAUSE_TRY(directory.remove_file(aside));
    file = make(directory, name);
    if (!file)
      return fail(file.error().os_errno == EEXIST ? Error{Code::busy, file.error().message}
                                                  : file.error());
  }
  DIAPAUSE_TRY_ASSIGN(Directory own, Directory::open_private(directory.kernel(), directory.path()));
  auto beating = std::make_unique<Beating>();
  beating->directory = std::move(own);
  beating->name = name;
  beating->file = std::move(*file);
  HeldFile held(std::move(beating));
  auto thread = Thread::start([&beating = *held.beating_] {
    const std::string holder = myself();
    for (std::uint64_t beat = 1; !beating.is_over; ++beat) {
      wait_while(beating.bell, 0, kBeat_s);
      if (!beating.is_over) (void)write_beat(beating.file, holder, beat);
    }
  });
  if (!thread) return fail(thread.error());
  held.thread_.emplace(std::move(*thread));
  return held;
}

bool HeldFile::is_held(const Directory& directory, const std::string& name) {
  const std::string text = text_of(directory, name);
  return !text.empty() && !has_ended_here(text);
}

HeldFile& HeldFile::operator=(HeldFile&& other) noexcept {
  if (this == &other) return *this;
  end();
  beating_ = std::move(other.beating_);
  if (other.thread_) thread_.emplace(std::move(*other.thread_));
  other.thread_.reset();
  return *this;
}

HeldFile::~HeldFile() { end(); }

void HeldFile::end() {
  if (!beating_) return;
  beating_->is_over = true;
  beating_->bell.store(1);
  wake_all(beating_->bell);
  thread_.reset();
  (void)beating_->directory.remove_file(beating_->name);
  beating_.reset();
}

}  // namespace diapause::sys
