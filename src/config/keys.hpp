// The single table of everything that can be configured. Reading files, reading the environment,
// messages and the test of docs/configuration.md all use it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/settings.hpp"

namespace diapause::config {

// The largest value of numbers that are seconds. Nobody means 30 years, and the bound keeps
// arithmetic on clocks far from overflow.
inline constexpr double kMostSeconds = 1e9;

// The schedule that derives the intervals from what the job measures.
inline constexpr std::string_view kAutoSchedule = "auto";

// Settings while they are being read, with the keys that are converted into other settings.
struct Draft {
  Settings settings;
  std::string schedule = "ckp(3,5,7,11)";
  double minute_s = 60;
};

// Refers to a value of any enumeration. The values count from 0, in the order of the key's words.
class ChoiceRef {
 public:
  template <class Enum>
  explicit ChoiceRef(Enum& place)
      : place_(&place),
        index_(
            [](const void* at) { return static_cast<std::size_t>(*static_cast<const Enum*>(at)); }),
        choose_([](void* at, std::size_t index) {
          *static_cast<Enum*>(at) = static_cast<Enum>(index);
        }) {}

  std::size_t index() const { return index_(place_); }
  void choose(std::size_t index) const { choose_(place_, index); }

 private:
  void* place_;
  std::size_t (*index_)(const void*);
  void (*choose_)(void*, std::size_t);
};

// Gives access to a key's value in a Draft. The type of the value is the type of the key.
using Place = std::variant<double& (*)(Draft&), std::uint32_t& (*)(Draft&),
                           std::uint64_t& (*)(Draft&), std::optional<std::uint32_t>& (*)(Draft&),
                           std::string& (*)(Draft&), std::vector<std::string>& (*)(Draft&),
                           FileCount& (*)(Draft&), ChoiceRef (*)(Draft&)>;

enum class Rule {
  any,
  positive,   // numbers: above 0
  percent,    // numbers: at most 100
  ratio,      // numbers: above 0 and at most 1
  not_empty,  // strings
  node_name,  // strings and lists: becomes the name of a directory
  signal,     // lists: names of signals that may be handled
  words,      // lists: names that another part of the program knows
  any_sign,   // numbers: also below 0
  absolute    // lists: paths
};

struct Key {
  std::string_view section;  // empty for the top level
  std::string_view name;
  Place place;
  Rule rule = Rule::any;
  std::int64_t least = 0;  // bound of an integer
  std::int64_t most = 0xffffffff;
  std::span<const std::string_view> words = {};  // the values of a choice

  std::string full_name() const;    // "level1.keep"
  std::string environment() const;  // a name like "DIAPAUSE_LEVEL1_KEEP"
  std::string allowed() const;      // a text like "an integer from 1 to 4294967295"
  std::string shown(Draft& draft) const;
};

std::span<const Key> all_keys();
const Key* find_key(std::string_view section, std::string_view name);

// A value as read from a file or a variable.
struct Found {
  // monostate: a value that no key accepts
  std::variant<std::monostate, std::int64_t, double, std::string, std::vector<std::string>> value;
  std::string shown;  // the name for messages
};

// Interprets the text of a variable as a value for `key`.
Found found_in_text(const Key& key, const std::string& text);

// Stores the value in the draft. Returns false if the key does not allow it.
bool assign(const Key& key, const Found& found, Draft& draft);

// Returns the text for messages: in quotes, without control characters, and cut if it is long.
std::string quoted(std::string_view text);

// Returns "; did you mean <candidate>?" with a candidate at an edit distance of at most 2, and "."
// if there is none.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace diapause::config
