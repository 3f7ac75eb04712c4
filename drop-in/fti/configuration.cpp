#include "configuration.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "../common/durable.hpp"
#include "../common/ini.hpp"
#include "../common/places.hpp"
#include "../common/settings.hpp"

namespace diapause::drop_in {
namespace {

using Failure = std::runtime_error;

constexpr std::array kKnown = {"basic.ckpt_dir",
                               "basic.glbl_dir",
                               "basic.node_size",
                               "basic.group_size",
                               "basic.head",
                               "basic.keep_heads_alive",
                               "basic.ckpt_l1",
                               "basic.ckpt_l2",
                               "basic.ckpt_l3",
                               "basic.ckpt_l4",
                               "basic.dcp_l4",
                               "basic.enable_dcp",
                               "basic.ckpt_io",
                               "basic.keep_last_ckpt",
                               "basic.keep_l4_ckpt",
                               "basic.verbosity",
                               "basic.h5_single_file_enable",
                               "basic.h5_single_file_dir",
                               "basic.h5_single_file_prefix",
                               "basic.h5_single_file_keep",
                               "basic.enable_staging",
                               "restart.failure",
                               "restart.exec_id",
                               "injection.rank",
                               "injection.index",
                               "injection.position",
                               "injection.number",
                               "injection.frequency",
                               "advanced.local_test",
                               "advanced.fast_forward"};
// Beginnings of keys that say how FTI does its work, which Diapause does in its own way.
constexpr std::array kWithoutMeaning = {"basic.meta_dir",       "basic.glbl_stash_dir",
                                        "basic.inline_l",       "basic.max_sync_intv",
                                        "basic.dcp_",           "basic.max_var_id",
                                        "basic.cacheddcp",      "basic.h5_single_file_inline",
                                        "advanced.block_size",  "advanced.transfer_size",
                                        "advanced.mpi_tag",     "advanced.ckpt_tag",
                                        "advanced.stage_tag",   "advanced.final_tag",
                                        "advanced.general_tag", "advanced.gpu_host_bufsize",
                                        "advanced.lustre_"};

class Keys {
 public:
  explicit Keys(const std::string& path) : path_(path), ini_(Ini::read(path)) {}

  std::string text(const std::string& section, const std::string& key) const {
    if (const auto value = ini_.get(section, key)) return *value;
    throw Failure(name(section, key) + " is missing");
  }

  int number(const std::string& section, const std::string& key, int otherwise, int least,
             int most) const {
    const long value = ini_.number(section, key).value_or(otherwise);
    if (value >= least && value <= most) return static_cast<int>(value);
    throw Failure(name(section, key) + " = " + std::to_string(value) + ": it must be from " +
                  std::to_string(least) + " to " + std::to_string(most));
  }
  bool flag(const std::string& section, const std::string& key) const {
    return number(section, key, 0, 0, 1) != 0;
  }
  // A key that may also be a word, of which the first letter counts, as in FTI.
  bool is_on(const std::string& section, const std::string& key) const {
    const std::string value = ini_.get(section, key).value_or("0");
    if (std::strchr("1yYtT", value.front()) != nullptr) return true;
    if (std::strchr("0nNfF", value.front()) != nullptr) return false;
    throw Failure(name(section, key) + " = " + value + ": it must be 0 or 1");
  }

  std::string name(const std::string& section, const std::string& key) const {
    return path_ + ": [" + section + "] " + key;
  }
  const Ini& ini() const { return ini_; }
  // The directory that the key names, which is made if it is not there.
  std::string directory(const std::string& key) const {
    return own_directory(text("basic", key), name("basic", key));
  }

 private:
  std::string path_;
  Ini ini_;
};

// One line for all keys of a kind: most files have many.
std::vector<std::string> remarks_on(const Ini& ini, const std::string& path) {
  std::string without_meaning;
  std::string unknown;
  for (const auto& entry : ini.all()) {
    const std::string& key = entry.first;
    const auto begins = [&](const char* beginning) { return key.rfind(beginning, 0) == 0; };
    if (std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end()) continue;
    const bool is_of_fti = std::any_of(kWithoutMeaning.begin(), kWithoutMeaning.end(), begins);
    std::string& list = is_of_fti ? without_meaning : unknown;
    list += (list.empty() ? "" : ", ") + key;
  }
  std::vector<std::string> remarks;
  if (!without_meaning.empty())
    remarks.push_back(path + ": without a meaning for Diapause: " + without_meaning);
  if (!unknown.empty()) remarks.push_back(path + ": no keys of FTI: " + unknown);
  return remarks;
}

constexpr int kMost = 1000000000;
constexpr long kEveryVersion = 4294967295;

void check_io_mode(const Keys& keys, bool has_shared) {
  constexpr int kPosix = 1;
  constexpr int kFtiFf = 3;
  constexpr int kHdf5 = 5;
  const int mode = keys.number("basic", "ckpt_io", kPosix, 0, kMost);
  if (mode <= kFtiFf || (mode == kHdf5 && has_shared)) return;
  const char* const names[] = {"SIONlib", "HDF5", "IME"};
  const std::string what = mode <= 6 ? names[mode - 4] : "no I/O mode of FTI";
  throw Failure(keys.name("basic", "ckpt_io") + " = " + std::to_string(mode) + " (" + what +
                "): Diapause writes files of its own; set it to 1");
}

struct Topology {
  int node_size;
  int group_size;
  int nodes;
};

Topology read_topology(const Keys& keys, int ranks) {
  keys.text("basic", "node_size");  // an error without one
  const int node_size = keys.number("basic", "node_size", -1, 1, kMost);
  const int group_size = std::max(1, keys.number("basic", "group_size", 1, -1, 255));
  if (ranks % node_size != 0) {
    throw Failure(keys.name("basic", "node_size") + " = " + std::to_string(node_size) + ": " +
                  std::to_string(ranks) + " ranks are not so many on every node");
  }
  const int nodes = ranks / node_size;
  if (nodes % group_size != 0) {
    throw Failure(keys.name("basic", "group_size") + " = " + std::to_string(group_size) + ": " +
                  std::to_string(nodes) + " nodes are no whole number of groups");
  }
  for (const char* const level : {"ckpt_l2", "ckpt_l3"}) {
    if (group_size == 1 && keys.number("basic", level, 0, -1, kMost) > 0) {
      throw Failure(keys.name("basic", level) + " needs a group_size of at least 2");
    }
  }
  return {node_size, group_size, nodes};
}

// FTI's 0 and -1 are "never".
int minutes(const Keys& keys, const std::string& key) {
  return std::max(0, keys.number("basic", key, 0, -1, kMost));
}

int sooner(int one, int other) {
  if (one == 0 || other == 0) return std::max(one, other);
  return std::min(one, other);
}

void set_schedule(const Keys& keys, Settings& settings) {
  std::string schedule = "ckp(";
  for (const char* const level : {"ckpt_l1", "ckpt_l2", "ckpt_l3"}) {
    schedule += std::to_string(minutes(keys, level)) + ",";
  }
  schedule += std::to_string(sooner(minutes(keys, "ckpt_l4"), minutes(keys, "dcp_l4"))) + ")";
  settings.set("schedule", schedule);
  settings.set("minute_s", 60L / keys.number("advanced", "fast_forward", 1, 1, 10));
}

void set_levels(const Keys& keys, const Topology& topology, Settings& settings) {
  for (const char* const level : {"level1", "level2", "level3"})
    settings.set(std::string(level) + ".tier", "local");
  if (topology.group_size > 1) {
    settings.set("level3.group_nodes", long{topology.group_size});
    settings.set("level3.parity", long{topology.group_size / 2});
  }
  if (keys.flag("advanced", "local_test"))
    settings.set("node.ranks_per_node", long{topology.node_size});
  if (keys.is_on("basic", "keep_l4_ckpt")) settings.set("level4.keep", kEveryVersion);
}

// Global datasets are stored by a job of their own, whose nodes do not matter: its versions are of
// level 4.
FtiSharedConfiguration read_shared(const Keys& keys) {
  FtiSharedConfiguration shared;
  shared.is_enabled = true;
  const bool has_own = keys.ini().get("basic", "h5_single_file_dir").has_value();
  shared.directory = keys.directory(has_own ? "h5_single_file_dir" : "glbl_dir");
  shared.prefix = keys.ini().get("basic", "h5_single_file_prefix").value_or("VPR-h5");
  Settings settings;
  settings.set("local.path", keys.directory("ckpt_dir"));
  settings.set("global.path", shared.directory);
  settings.set("capture.strategy", "copy");
  if (keys.is_on("basic", "h5_single_file_keep")) settings.set("level4.keep", kEveryVersion);
  shared.settings = settings.text();
  return shared;
}

std::string remark_on_shared(const FtiSharedConfiguration& shared) {
  return "global datasets are stored as versions of the jobs fti-" + shared.prefix +
         "-<ranks> in " + shared.directory +
         ", and in no file of HDF5: `diapause export` writes one";
}

std::string settings_of(const Keys& keys, const Topology& topology) {
  Settings settings;
  settings.set("local.path", keys.directory("ckpt_dir"));
  settings.set("global.path", keys.directory("glbl_dir"));
  settings.set("async.mode", keys.flag("basic", "head") ? "rank" : "thread");
  // The program may free its memory after the call.
  settings.set("capture.strategy", keys.is_on("basic", "enable_dcp") ? "incremental" : "copy");
  settings.set("finish.directories", "remove");  // no other execution will have the same name
  settings.set_none("deadline.signals");         // the program does not ask whether it has to stop
  set_schedule(keys, settings);
  set_levels(keys, topology, settings);
  return settings.text();
}

std::string trimmed_key(const std::string& line) {
  const auto first = line.find_first_not_of(" \t");
  const auto last = line.find_first_of(" \t=", first);
  return first == std::string::npos ? "" : lower(line.substr(first, last - first));
}

// The section that begins with this line, if one does.
std::optional<std::string> begun_section(const std::string& line) {
  const auto begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos || line[begin] != '[') return std::nullopt;
  const auto first = line.find_first_not_of(" \t", begin + 1);
  const auto last = line.find_first_of(" \t]", first);
  return first == std::string::npos ? "" : lower(line.substr(first, last - first));
}

}  // namespace

FtiConfiguration read_fti_configuration(const std::string& path, int ranks) {
  const Keys keys(path);
  const bool has_shared = keys.is_on("basic", "h5_single_file_enable");
  check_io_mode(keys, has_shared);
  FtiConfiguration configuration;
  configuration.remarks = remarks_on(keys.ini(), path);
  const Topology topology = read_topology(keys, ranks);
  configuration.verbosity = keys.number("basic", "verbosity", 2, 1, 3);
  configuration.failure = keys.number("restart", "failure", 0, 0, 3);
  const bool begins_with_shared = configuration.failure == 3;
  if (begins_with_shared && !has_shared) {
    throw Failure(keys.name("restart", "failure") +
                  " = 3: a restart on another number of ranks needs h5_single_file_enable = 1");
  }
  if (configuration.failure != 0 && !begins_with_shared)
    configuration.execution_id = keys.text("restart", "exec_id");
  configuration.has_heads = keys.flag("basic", "head");
  configuration.keeps_heads_alive = keys.is_on("basic", "keep_heads_alive");
  configuration.keeps_last = keys.flag("basic", "keep_last_ckpt");
  configuration.has_staging = keys.is_on("basic", "enable_staging");
  configuration.keeps_all_of_level4 = keys.is_on("basic", "keep_l4_ckpt");
  configuration.flips = {keys.number("injection", "rank", 0, 0, kMost),
                         keys.number("injection", "index", 0, 0, kMost),
                         keys.number("injection", "position", 0, 0, 63),
                         keys.number("injection", "number", 0, 0, kMost),
                         keys.number("injection", "frequency", 0, -1, kMost)};
  // Directories are made when all keys have been read.
  configuration.settings = settings_of(keys, topology);
  configuration.local_dir = keys.text("basic", "ckpt_dir");
  configuration.global_dir = keys.directory("glbl_dir");
  if (has_shared) {
    configuration.shared = read_shared(keys);
    configuration.remarks.push_back(remark_on_shared(configuration.shared));
  }
  return configuration;
}

FTIT_allConfiguration tell_fti_configuration(const std::string& path) {
  constexpr int kKiB = 1024;
  constexpr int kMiB = 1024 * kKiB;
  constexpr int kIoModes = 1000;
  const Keys keys(path);
  const auto number = [&](const char* section, const char* key, int otherwise, int most = kMost) {
    return keys.number(section, key, otherwise, -1, most);
  };
  const auto basic = [&](const char* key, int otherwise) {
    return number("basic", key, otherwise);
  };
  const auto tag = [&](const char* key, int otherwise) {
    return number("advanced", key, otherwise);
  };
  FTIT_allConfiguration all{};
  FTIT_configuration& told = all.configuration;
  told.ioMode = kIoModes + basic("ckpt_io", 1);
  told.stagingEnabled = keys.is_on("basic", "enable_staging");
  const bool is_differential = keys.is_on("basic", "enable_dcp");
  const bool is_of_ftiff = told.ioMode == kIoModes + 3;
  told.dcpFtiff = is_differential && is_of_ftiff;
  told.dcpPosix = is_differential && !is_of_ftiff;
  told.keepL4Ckpt = keys.is_on("basic", "keep_l4_ckpt");
  told.keepHeadsAlive = keys.is_on("basic", "keep_heads_alive");
  told.dcpMode = basic("dcp_mode", -1);
  told.dcpBlockSize = basic("dcp_block_size", -1);
  std::snprintf(told.cfgFile, sizeof told.cfgFile, "%s", path.c_str());
  told.saveLastCkpt = basic("keep_last_ckpt", 0);
  told.verbosity = basic("verbosity", -1);
  told.maxVarId = basic("max_var_id", -1);
  told.blockSize = kKiB * number("advanced", "block_size", -1, kMost / kKiB);
  told.transferSize = kMiB * number("advanced", "transfer_size", -1, kMost / kMiB);
  told.ckptTag = tag("ckpt_tag", 711);
  told.stageTag = tag("stage_tag", 406);
  told.finalTag = tag("final_tag", 3107);
  told.generalTag = tag("general_tag", 2612);
  told.test = number("advanced", "local_test", -1);
  told.l3WordSize = FTI_WORD;
  return all;
}

void write_fti_restart(const std::string& path, int failure, const std::string& execution_id) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure(path + ": the configuration file cannot be read");
  std::ostringstream text;
  bool is_in_section = false;
  bool is_written = false;
  const auto write = [&] {
    text << "failure = " << failure << "\nexec_id = " << execution_id << "\n";
    is_written = true;
  };
  for (std::string line; std::getline(file, line);) {
    const std::string key = trimmed_key(line);
    if (const auto section = begun_section(line)) is_in_section = *section == "restart";
    if (is_in_section && (key == "failure" || key == "exec_id")) continue;
    text << line << "\n";
    if (is_in_section && !is_written) write();
  }
  if (!is_written) {
    text << "[restart]\n";
    write();
  }
  replace_file(path, text.str(), "the state for the next run");
}

}  // namespace diapause::drop_in
