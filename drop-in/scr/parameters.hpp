// SCR's parameters: lines of KEY=VALUE, from the program's calls, a file, and the environment.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace diapause::drop_in {

// Parameters of one source. CKPT, STORE and GROUPS stand for one descriptor in each line, with a
// value of its own and further keys; every other key has one value.
class ScrParameters {
 public:
  struct Answer {
    bool is_query = false;
    std::optional<std::string> value;  // the value that a query found
  };
  using Descriptor = std::map<std::string, std::string>;

  // KEY=VALUE [KEY=VALUE ...] sets, KEY= forgets, and a key without '=' at the end asks. Throws
  // std::runtime_error that quotes a line that is none of these.
  Answer apply(const std::string& line);
  // Lines with comments behind '#', and $NAME or ${NAME} of the environment in values.
  static ScrParameters read(const std::string& path);

  std::optional<std::string> get(const std::string& key) const;
  // The keys are their own values, such as CKPT=0.
  const std::map<std::string, Descriptor>& descriptors(const std::string& key) const;
  std::vector<std::string> keys() const;

 private:
  struct Pair {
    std::string key;
    std::optional<std::string> value;  // empty if there is no '='
  };
  static std::vector<Pair> pairs_of(const std::string& line);
  Answer ask(const std::vector<Pair>& pairs) const;

  std::map<std::string, std::string> values_;
  std::map<std::string, std::map<std::string, Descriptor>> descriptors_;
};

// Text with $NAME and ${NAME} replaced by what the environment has under that name, or nothing.
std::string with_environment(const std::string& text);

// The values that count: those of the environment go before those of the file that SCR_CONF_FILE
// names (else .scrconf in the prefix directory, if there is one), and these before what the program
// has set.
class ScrSettings {
 public:
  // Throws std::runtime_error if there is a file that cannot be read.
  explicit ScrSettings(const ScrParameters& of_program);

  std::optional<std::string> get(const std::string& key) const;
  // Throws std::runtime_error that names the key if its value is no whole number of at least
  // `least`.
  long number(const std::string& key, long otherwise, long least = 0) const;
  const std::map<std::string, ScrParameters::Descriptor>& descriptors(const std::string& key) const;
  // Returns the keys of the file and of the program.
  std::vector<std::string> keys() const;

 private:
  const ScrParameters& of_program_;
  ScrParameters of_file_;
};

}  // namespace diapause::drop_in
