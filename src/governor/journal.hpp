// The journal of changes on this node: what was changed, by whom, and the original values, so that
// anybody can restore them.
//
// It is a text file of lines "<word> <rest>", read as a whole and replaced as a whole:
//
//   diapause-power 1
//   boot 0f0e...                        the kernel's boot id; after another boot nothing here is
//   true control /sys/.../scaling_max_freq   the lines up to the next control belong to it original
//   2000000                    the value before anybody here changed it ours 1700000 values that we
//   may have left there, one per line settling                            a value is being written,
//   and its effect is not known yet request 4711 991234 1 1700000       an owner (process, its
//   start in clock ticks, number), and the
//                                       value that it requests
//   group 4711 991234 1 /sys/fs/cgroup/cpu/diapause-4711-4712   a control group made by that owner
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::governor {

// The owner of requests: a governor in a process. The start time distinguishes the process from a
// later one with the same number.
struct Owner {
  std::int64_t process = 0;
  std::uint64_t start_ticks = 0;
  std::uint64_t number = 0;  // distinguishes governors of one process
  bool operator==(const Owner&) const = default;
};

struct Request {
  Owner owner;
  std::string value;
};

struct Control {
  std::string path;
  std::string original;
  std::vector<std::string> ours;
  bool settling = false;
  std::vector<Request> requests;
};

struct Group {
  Owner owner;
  std::string path;
};

struct Journal {
  std::string boot_id;
  std::vector<Control> controls;
  std::vector<Group> groups;
};

std::string to_text(const Owner& owner);  // a text like "4711 991234 1"
Result<Owner> parse_owner(const std::string& text);
std::string to_text(const Journal& journal);

// Code::corrupt names the line and `path`.
Result<Journal> parse_journal(const std::string& text, const std::string& path);

// Returns the journal in a directory that only this user can write to. A missing journal, and one
// of another boot, counts as empty.
Result<Journal> load_journal(const sys::Directory& directory, const std::string& boot_id);

// The journal is durable on return; a crash leaves the old one or the new one.
Status save_journal(const sys::Directory& directory, const Journal& journal);

}  // namespace diapause::governor
