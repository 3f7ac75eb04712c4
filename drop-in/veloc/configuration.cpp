#include "configuration.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <optional>
#include <stdexcept>

#include "../common/ini.hpp"
#include "../common/places.hpp"
#include "../common/settings.hpp"

namespace diapause::drop_in {
namespace {

constexpr std::array kKnown = {
    "scratch",     "mode",         "persistent",       "persistent_interval",
    "ec_interval", "max_versions", "scratch_versions", "chksum"};
// They say how VELOC does its work, which Diapause does in its own way.
constexpr std::array kWithoutMeaning = {"meta",          "aggregated", "max_parallelism",
                                        "threaded",      "log_prefix", "watchdog_interval",
                                        "failure_domain"};
// These keys name things that do not exist here.
constexpr std::array kLeftOut = {"axl_type", "daos_pool", "daos_cont"};

template <class Names>
bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Keys {
 public:
  explicit Keys(const std::string& path) : path_(path) {
    if (!path.empty()) ini_ = Ini::read(path);
  }

  std::optional<std::string> get(const std::string& key) const {
    std::string variable = "VELOC_" + key;
    for (char& character : variable) {
      character = static_cast<char>(std::toupper(static_cast<unsigned char>(character)));
    }
    const char* const value = std::getenv(variable.c_str());
    if (value != nullptr && *value != '\0') return value;
    return ini_.get("", key);
  }

  long number(const std::string& key, long otherwise, long least) const {
    const auto text = get(key);
    if (!text) return otherwise;
    const long value = whole_number(*text, name(key));
    if (value >= least) return value;
    throw std::runtime_error(name(key) + " = " + *text + ": it must be at least " +
                             std::to_string(least));
  }

  std::string needed(const std::string& key) const {
    if (const auto value = get(key)) return *value;
    throw std::runtime_error(name(key) + " is missing");
  }

  // The directory that the key names, which is made if it is not there.
  std::string directory(const std::string& key) const {
    return own_directory(needed(key), name(key));
  }

  std::string name(const std::string& key) const {
    return (path_.empty() ? "VELOC's configuration" : path_) + ": " + key;
  }
  const Ini& ini() const { return ini_; }

 private:
  std::string path_;
  Ini ini_;
};

void remark_on_unused(const Keys& keys, std::vector<std::string>& remarks) {
  for (const char* const key : kLeftOut) {
    if (keys.get(key))
      throw std::runtime_error(keys.name(key) + ": Diapause has no such storage; take the key out");
  }
  for (const char* const key : kWithoutMeaning) {
    if (keys.get(key)) remarks.push_back(keys.name(key) + " has no meaning for Diapause");
  }
  for (const auto& [key, value] : keys.ini().all()) {
    if (!has(kWithoutMeaning, key) && !has(kKnown, key))
      remarks.push_back(keys.name(key) + " is no key of VELOC");
  }
  const auto checksum = keys.get("chksum");
  if (checksum && lower(*checksum) != "true" && *checksum != "1") {
    remarks.push_back(keys.name("chksum") + ": Diapause always takes and verifies checksums");
  }
}

// 0 keeps all.
long versions(const Keys& keys, const std::string& key) {
  const long count = keys.number(key, 0, 0);
  return count == 0 ? std::numeric_limits<std::uint32_t>::max() : count;
}

std::string async_mode(const Keys& keys) {
  const std::string mode = keys.needed("mode");
  if (mode == "sync") return "off";
  if (mode == "async") return "thread";
  throw std::runtime_error(keys.name("mode") + " = " + mode + ": it must be sync or async");
}

}  // namespace

VelocConfiguration read_veloc_configuration(const std::string& path) {
  const Keys keys(path);
  VelocConfiguration configuration;
  keys.needed("scratch");
  auto persistent = keys.get("persistent");
  configuration.has_persistent = persistent.has_value();
  configuration.persistent_interval_s =
      persistent ? keys.number("persistent_interval", 0, VelocConfiguration::kNever)
                 : VelocConfiguration::kNever;
  configuration.ec_interval_s = keys.number("ec_interval", 0, VelocConfiguration::kNever);
  remark_on_unused(keys, configuration.remarks);

  Settings settings;
  settings.set("async.mode", async_mode(keys));
  settings.set("capture.strategy", "copy");  // the program may free its memory after the call
  settings.set_none("deadline.signals");     // the program does not ask whether it has to stop
  for (const char* const level : {"level1", "level2", "level3"}) {
    settings.set(std::string(level) + ".tier", "local");
    settings.set(std::string(level) + ".keep", versions(keys, "scratch_versions"));
  }
  settings.set("level4.keep", versions(keys, "max_versions"));
  // Directories are made when all keys have been read.
  configuration.directories = {keys.directory("scratch")};
  if (persistent) persistent = configuration.directories.emplace_back(keys.directory("persistent"));
  settings.set("local.path", configuration.directories[0]);
  settings.set("global.path", persistent.value_or("veloc"));
  configuration.settings = settings.text();
  if (!persistent) {
    configuration.remarks.push_back(
        keys.name("persistent") +
        " is missing: what tells of the checkpoints lies in the directory 'veloc', and no "
        "checkpoint survives the loss of all nodes");
  }
  return configuration;
}

}  // namespace diapause::drop_in
