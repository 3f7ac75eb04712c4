#include "governor/controls.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>

#include "sys/control_file.hpp"
#include "sys/process.hpp"
#include "sys/value_file.hpp"

namespace diapause::governor {
namespace {

constexpr const char* kLockName = "lock";
constexpr double kLockWait_s = 10;

// Returns the value of a control, which is one line.
Result<std::string> read_line(sys::Kernel& kernel, const std::string& path) {
  DIAPAUSE_TRY_ASSIGN(const std::string text, sys::read_value(kernel, path));
  return text.substr(0, text.find('\n'));
}

double level_of(const std::string& value) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  return error == std::errc() && number >= 0 ? number : std::numeric_limits<double>::infinity();
}

// Returns the lowest requested value, or the original one if that is lower.
std::string value_to_hold(const Control& control) {
  const std::string* lowest = &control.original;
  for (const Request& request : control.requests) {
    if (level_of(request.value) < level_of(*lowest)) lowest = &request.value;
  }
  return *lowest;
}

bool is_ours(const Control& control, const std::string& value) {
  return control.settling || std::ranges::find(control.ours, value) != control.ours.end();
}

void note_as_ours(Control& control, const std::string& value) {
  if (std::ranges::find(control.ours, value) == control.ours.end()) control.ours.push_back(value);
}

// A processor that went offline loses its files.
bool is_gone(const Error& error) {
  return error.code == Code::not_found || error.os_errno == ENODEV;
}

}  // namespace

// One change, under the lock.
class Controls::Session {
 public:
  Session(const sys::Directory& directory, sys::FileLock lock, Journal journal)
      : directory_(directory), lock_(std::move(lock)), journal_(std::move(journal)) {}

  Journal& journal() { return journal_; }
  sys::Kernel& kernel() const { return directory_.kernel(); }
  Status save() { return save_journal(directory_, journal_); }

  void forget_requests(const std::function<bool(const Owner&)>& whose) {
    for (Control& control : journal_.controls) {
      std::erase_if(control.requests, [&](const Request& request) { return whose(request.owner); });
    }
  }
  void add_request(const Owner& owner, const Setting& setting);
  // Writes the value to hold to every requested control; it is journalled before and after.
  Status set();
  // Restores every control without requests, and saves the journal.
  Outcome put_back();
  Outcome remove_groups(const std::function<bool(const Owner&)>& whose);

 private:
  Status prepare(Control& control, std::vector<Control*>& to_write);
  bool put_back_one(Control& control, Outcome& outcome);
  Status empty_group(const std::string& path);

  const sys::Directory& directory_;
  sys::FileLock lock_;
  Journal journal_;
};

void Controls::Session::add_request(const Owner& owner, const Setting& setting) {
  auto found = std::ranges::find(journal_.controls, setting.path, &Control::path);
  if (found == journal_.controls.end()) {
    found = journal_.controls.insert(found, Control{setting.path, "", {}, false, {}});
  }
  found->requests.push_back({owner, setting.value});
}

Status Controls::Session::prepare(Control& control, std::vector<Control*>& to_write) {
  DIAPAUSE_TRY_ASSIGN(const std::string current, read_line(kernel(), control.path));
  if (!is_ours(control, current)) {
    // This is the first change, or somebody else has changed the value since.
    control.original = current;
    control.ours.clear();
  }
  const std::string value = value_to_hold(control);
  if (value == current) return {};
  note_as_ours(control, value);
  control.settling = true;
  to_write.push_back(&control);
  return {};
}

Status Controls::Session::set() {
  std::vector<Control*> to_write;
  for (Control& control : journal_.controls) {
    if (!control.requests.empty()) DIAPAUSE_TRY(prepare(control, to_write));
  }
  DIAPAUSE_TRY(save());
  if (to_write.empty()) return {};
  for (Control* control : to_write) {
    DIAPAUSE_TRY(sys::write_value(kernel(), control->path, value_to_hold(*control)));
    DIAPAUSE_TRY_ASSIGN(const std::string present, read_line(kernel(), control->path));
    note_as_ours(*control, present);
    control->settling = false;
  }
  return save();
}

// Restores one control. Returns true if it may be forgotten.
bool Controls::Session::put_back_one(Control& control, Outcome& outcome) {
  if (control.ours.empty()) return true;  // nothing was written
  const auto current = read_line(kernel(), control.path);
  Status status;
  if (current && !is_ours(control, *current)) {
    outcome.left_alone += *current == control.original ? 0 : 1;
    return true;
  }
  if (current && *current == control.original) return true;
  if (current) {
    status = sys::write_value(kernel(), control.path, control.original);
  } else {
    status = fail(current.error());
  }
  if (status) {
    ++outcome.put_back;
    return true;
  }
  if (is_gone(status.error())) {
    ++outcome.left_alone;
    return true;
  }
  outcome.errors.push_back(status.error());
  return false;
}

Controls::Outcome Controls::Session::put_back() {
  Outcome outcome;
  std::erase_if(journal_.controls, [&](Control& control) {
    return control.requests.empty() && put_back_one(control, outcome);
  });
  // The remaining jobs may request higher values than before.
  if (auto status = set(); !status) outcome.errors.push_back(status.error());
  return outcome;
}

Status Controls::Session::empty_group(const std::string& path) {
  const std::string parent = path.substr(0, path.rfind('/'));
  // Version 2 of control groups moves threads through another file than version 1.
  const std::string file =
      sys::check_writable(kernel(), path + "/cgroup.threads") ? "/cgroup.threads" : "/tasks";
  DIAPAUSE_TRY_ASSIGN(const sys::ValueFile list, sys::ValueFile::open(kernel(), path + file));
  DIAPAUSE_TRY_ASSIGN(const std::string threads, list.text(kMiB));
  for (std::size_t start = 0; start < threads.size();) {
    const std::size_t end = std::min(threads.find('\n', start), threads.size());
    // A thread may end meanwhile. A thread that cannot be moved prevents the removal of the group,
    // which is reported.
    (void)sys::write_value(kernel(), parent + file, threads.substr(start, end - start));
    start = end + 1;
  }
  return {};
}

Controls::Outcome Controls::Session::remove_groups(const std::function<bool(const Owner&)>& whose) {
  Outcome outcome;
  std::erase_if(journal_.groups, [&](const Group& group) {
    if (!whose(group.owner)) return false;
    (void)empty_group(group.path);
    const Status removed = sys::remove_group(kernel(), group.path);
    if (!removed) outcome.errors.push_back(removed.error());
    return removed.has_value();
  });
  if (auto status = save(); !status) outcome.errors.push_back(status.error());
  return outcome;
}

Result<Controls> Controls::open(sys::Kernel& kernel, const std::string& state_path,
                                const std::string& boot_id) {
  DIAPAUSE_TRY_ASSIGN(sys::Directory directory, sys::Directory::make_private(kernel, state_path));
  return Controls(std::move(directory), boot_id);
}

Result<Controls::Session> Controls::begin() {
  const std::string holder = fmt::format("process {}", sys::process_id());
  DIAPAUSE_TRY_ASSIGN(sys::FileLock lock,
                      sys::FileLock::acquire(directory_, kLockName, holder, kLockWait_s));
  DIAPAUSE_TRY_ASSIGN(Journal journal, load_journal(directory_, boot_id_));
  return Session(directory_, std::move(lock), std::move(journal));
}

Result<std::vector<std::string>> Controls::want(const Owner& owner,
                                                const std::vector<Setting>& settings) {
  DIAPAUSE_TRY_ASSIGN(Session session, begin());
  const auto is_owner = [&](const Owner& other) { return other == owner; };
  session.forget_requests(is_owner);
  for (const Setting& setting : settings) session.add_request(owner, setting);
  std::vector<std::string> held;
  Status status = session.set();
  for (std::size_t i = 0; status && i < settings.size(); ++i) {
    auto value = read_line(session.kernel(), settings[i].path);
    if (value) held.push_back(std::move(*value));
    if (!value) status = fail(value.error());
  }
  if (status) return held;
  session.forget_requests(is_owner);
  (void)session.put_back();  // the first error says more
  return fail(status.error());
}

Result<Controls::Outcome> Controls::want_nothing(const Owner& owner) {
  DIAPAUSE_TRY_ASSIGN(Session session, begin());
  session.forget_requests([&](const Owner& other) { return other == owner; });
  return session.put_back();
}

Result<Controls::Outcome> Controls::clean_up(const std::function<bool(const Owner&)>& gone) {
  DIAPAUSE_TRY_ASSIGN(Session session, begin());
  session.forget_requests(gone);
  Outcome outcome = session.put_back();
  Outcome groups = session.remove_groups(gone);
  std::ranges::move(groups.errors, std::back_inserter(outcome.errors));
  return outcome;
}

Status Controls::note_group(const Owner& owner, const std::string& path) {
  DIAPAUSE_TRY_ASSIGN(Session session, begin());
  session.journal().groups.push_back({owner, path});
  return session.save();
}

Result<Controls::Outcome> Controls::disband(const Owner& owner) {
  DIAPAUSE_TRY_ASSIGN(Session session, begin());
  return session.remove_groups([&](const Owner& other) { return other == owner; });
}

std::string to_text(const Controls::Outcome& outcome) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (outcome.put_back > 0) add(fmt::format("{} put back", outcome.put_back));
  if (outcome.left_alone > 0)
    add(fmt::format("{} left alone, as somebody else has changed them", outcome.left_alone));
  for (const Error& error : outcome.errors) add(error.message);
  return text;
}

}  // namespace diapause::governor
