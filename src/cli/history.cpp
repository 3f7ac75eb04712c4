// `diapause history`: shows what happened to a job, and follows it with --follow.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "cli/job_history.hpp"
#include "cli/json_fields.hpp"
#include "cli/ledgers.hpp"
#include "cli/repeated_lines.hpp"
#include "cli/text.hpp"
#include "cli/verbs.hpp"
#include "sys/line_file.hpp"
#include "sys/process.hpp"

namespace diapause::cli {
namespace {

class Display {
 public:
  explicit Display(bool follows) : has_progress_(follows && sys::is_terminal(stdout)) {}

  void lines(const std::vector<std::string>& texts) {
    if (texts.empty()) return;
    head();
    clear();
    for (const std::string& text : texts) fmt::print("{}\n", text);
    std::fflush(stdout);
  }
  // Shows the head of the table, once: a file that is no ledger has none.
  void head() {
    if (!has_head_) fmt::print("{}\n", history_head());
    has_head_ = true;
  }
  // Shows the progress in a last line, which is overwritten each time.
  void progress(const HistorySums& sums) {
    if (!has_progress_ || sums.starts == 0) return;
    const double now_s = static_cast<double>(sys::unix_time_ns()) / 1e9;
    clear();
    fmt::print("  {}; the last line {:.0f} s ago", history_text(sums),
               std::max(0.0, now_s - sums.last_unix_s));
    std::fflush(stdout);
    is_shown_ = true;
  }
  void clear() {
    if (is_shown_) fmt::print("\r\033[K");
    is_shown_ = false;
  }

 private:
  const bool has_progress_;
  bool is_shown_ = false;
  bool has_head_ = false;
};

// Fails if what was read is no ledger, or none that this version can read.
Status check_is_ledger(const std::string& path, const HistorySums& sums) {
  if (sums.other_schema) {
    return fail(Code::corrupt, fmt::format("{} has schema {}, and this version reads 1 and {}",
                                           path, *sums.other_schema, fields::kNewestSchema));
  }
  if (sums.lines == 0 && sums.damaged_lines > 0) {
    return fail(Code::corrupt, fmt::format("{} is no ledger: it has no sound line, and {} damaged",
                                           path, sums.damaged_lines));
  }
  return {};
}

// Reads all complete lines that there are now.
Status read_what_is_there(sys::LineFile& ledger, RepeatedLines& repeated, HistoryReader& reader,
                          Display& display) {
  for (;;) {
    DIAPAUSE_TRY_ASSIGN(const auto line, ledger.next());
    if (!line) return check_is_ledger(ledger.path(), reader.sums());
    if (repeated.is_new(*line)) display.lines(reader.add_line(*line));
  }
}

}  // namespace

int history(const HistoryArguments& arguments) {
  constexpr std::chrono::milliseconds kLookAgain{500};
  const auto path = ledger_of(arguments.job, arguments.places);
  if (!path) return complain(path.error());
  auto ledger = sys::LineFile::open(sys::real_kernel(), *path);
  if (!ledger)
    return complain(ledger.error().message + ": a job writes it if it has a global tier");
  HistoryReader reader;
  RepeatedLines repeated;
  Display display(arguments.follow);
  for (;;) {
    if (const Status read = read_what_is_there(*ledger, repeated, reader, display); !read)
      return complain(read.error());
    if (!arguments.follow || reader.sums().is_closed) break;
    display.lines(reader.flush());
    display.progress(reader.sums());
    std::this_thread::sleep_for(kLookAgain);
  }
  display.lines(reader.flush());
  display.clear();
  display.head();
  fmt::print("\n{}\n", history_text(reader.sums()));
  if (const std::size_t damaged = reader.sums().damaged_lines; damaged > 0)
    fmt::print("{} damaged: {} of its lines left out\n", printable(*path), damaged);
  return kDone;
}

}  // namespace diapause::cli
