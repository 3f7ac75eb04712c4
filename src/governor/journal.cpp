#include "governor/journal.hpp"

#include <fmt/format.h>

#include <charconv>
#include <iterator>

namespace diapause::governor {
namespace {

constexpr const char* kName = "journal";
constexpr const char* kNewName = "journal.new";
constexpr std::string_view kFirstLine = "diapause-power 1";

// Returns the part before the first space; `rest` becomes the part behind it.
std::string_view take_word(std::string_view& rest) {
  const std::size_t space = rest.find(' ');
  const std::string_view word = rest.substr(0, space);
  rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
  return word;
}

template <class Number>
bool take_number(std::string_view& rest, Number& number) {
  const std::string_view word = take_word(rest);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() && !word.empty();
}

bool take_owner(std::string_view& rest, Owner& owner) {
  return take_number(rest, owner.process) && take_number(rest, owner.start_ticks) &&
         take_number(rest, owner.number);
}

bool add_to_control(std::string_view word, std::string_view rest, Control& control) {
  if (word == "original") {
    control.original = rest;
  } else if (word == "ours") {
    control.ours.emplace_back(rest);
  } else if (word == "settling") {
    control.settling = true;
  } else if (word == "request") {
    Request request;
    if (!take_owner(rest, request.owner) || rest.empty()) return false;
    request.value = rest;
    control.requests.push_back(std::move(request));
  } else {
    return false;
  }
  return true;
}

bool add_line(std::string_view line, Journal& journal) {
  std::string_view rest = line;
  const std::string_view word = take_word(rest);
  if (word == "boot") {
    journal.boot_id = rest;
  } else if (word == "control") {
    journal.controls.push_back({std::string(rest), "", {}, false, {}});
  } else if (word == "group") {
    Group group;
    if (!take_owner(rest, group.owner) || rest.empty()) return false;
    group.path = rest;
    journal.groups.push_back(std::move(group));
  } else {
    return !journal.controls.empty() && add_to_control(word, rest, journal.controls.back());
  }
  return true;
}

}  // namespace

std::string to_text(const Owner& owner) {
  return fmt::format("{} {} {}", owner.process, owner.start_ticks, owner.number);
}

Result<Owner> parse_owner(const std::string& text) {
  Owner owner;
  std::string_view rest = text;
  if (take_owner(rest, owner) && rest.empty()) return owner;
  return fail(Code::argument, fmt::format("'{}' does not name who asks for values", text));
}

std::string to_text(const Journal& journal) {
  std::string text = fmt::format("{}\nboot {}\n", kFirstLine, journal.boot_id);
  const auto out = std::back_inserter(text);
  for (const Control& control : journal.controls) {
    fmt::format_to(out, "control {}\noriginal {}\n", control.path, control.original);
    for (const std::string& value : control.ours) fmt::format_to(out, "ours {}\n", value);
    if (control.settling) text += "settling\n";
    for (const Request& request : control.requests) {
      fmt::format_to(out, "request {} {}\n", to_text(request.owner), request.value);
    }
  }
  for (const Group& group : journal.groups) {
    fmt::format_to(out, "group {} {}\n", to_text(group.owner), group.path);
  }
  return text;
}

Result<Journal> parse_journal(const std::string& text, const std::string& path) {
  Journal journal;
  int number = 1;
  bool is_after_control = false;
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos;
       end = text.find('\n', start), ++number) {
    const std::string_view line = std::string_view(text).substr(start, end - start);
    start = end + 1;
    // Without its boot id nobody knows whether an entry still holds, and a control without an
    // original value cannot be restored.
    const bool is_in_place = line.starts_with("boot ") == (number == 2) &&
                             line.starts_with("original ") == is_after_control;
    is_after_control = line.starts_with("control ");
    if (number == 1 ? line == kFirstLine : is_in_place && add_line(line, journal)) continue;
    return fail(
        Code::corrupt,
        fmt::format("{}:{}: not a line of a journal; put the controls back by hand and remove it",
                    path, number));
  }
  if (start != text.size() || number <= 2 || is_after_control)
    return fail(Code::corrupt, path + ": not a journal, or cut short");
  return journal;
}

Result<Journal> load_journal(const sys::Directory& directory, const std::string& boot_id) {
  const Journal empty{boot_id, {}, {}};
  auto file = directory.open_file(kName, sys::Access::read);
  if (!file) {
    if (file.error().code == Code::not_found) return empty;
    return fail(file.error());
  }
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, file->size());
  if (size > 64 * kMiB) return fail(Code::corrupt, file->path() + " is larger than any journal");
  std::string text(size, '\0');
  DIAPAUSE_TRY(file->read_exact(std::as_writable_bytes(std::span(text)), 0));
  DIAPAUSE_TRY_ASSIGN(Journal journal, parse_journal(text, file->path()));
  return journal.boot_id == boot_id ? journal : empty;
}

Status save_journal(const sys::Directory& directory, const Journal& journal) {
  DIAPAUSE_TRY_ASSIGN(const sys::File file, directory.create_file(kNewName));
  const std::string text = to_text(journal);
  DIAPAUSE_TRY(file.write_all(as_byte_view(text), 0));
  DIAPAUSE_TRY(file.sync());
  DIAPAUSE_TRY(directory.rename(kNewName, directory, kName));
  return directory.sync();
}

}  // namespace diapause::governor
