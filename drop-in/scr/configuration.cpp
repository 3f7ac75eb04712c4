#include "configuration.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include "../common/ini.hpp"
#include "../common/places.hpp"
#include "../common/settings.hpp"
#include "diapause/diapause.h"

namespace diapause::drop_in {
namespace {

constexpr const char* kInMemory = "/dev/shm";

constexpr std::array kKnown = {"SCR_CACHE_BASE",
                               "SCR_CACHE_BYPASS",
                               "SCR_CACHE_SIZE",
                               "SCR_CHECKPOINT_INTERVAL",
                               "SCR_CHECKPOINT_OVERHEAD",
                               "SCR_CHECKPOINT_SECONDS",
                               "SCR_CONF_FILE",
                               "SCR_COPY_TYPE",
                               "SCR_CURRENT",
                               "SCR_ENABLE",
                               "SCR_FLUSH",
                               "SCR_HALT_SECONDS",
                               "SCR_JOB_NAME",
                               "SCR_PREFIX",
                               "SCR_PREFIX_SIZE",
                               "SCR_SET_FAILURES",
                               "SCR_SET_SIZE"};

int level_of_type(const std::string& type, const std::string& where) {
  if (type == "SINGLE") return DIAPAUSE_L1;
  if (type == "PARTNER") return DIAPAUSE_L2;
  if (type == "XOR" || type == "RS") return DIAPAUSE_L3;
  throw std::runtime_error(where + " = " + type + ": it must be SINGLE, PARTNER, XOR or RS");
}

// The redundancy that SCR_COPY_TYPE and its companions ask for, or the descriptors that stand for
// them.
struct Redundancy {
  std::vector<ScrConfiguration::Scheme> schemes;
  std::string cache;      // where nodes have their own, as it is named
  std::string directory;  // the directory that it leads to; empty for that of Diapause
  long group_nodes = 8;
  long parity = 1;
};

std::string of(const ScrParameters::Descriptor& descriptor, const std::string& key,
               const std::string& otherwise) {
  const auto found = descriptor.find(key);
  return found == descriptor.end() ? otherwise : found->second;
}

long number_of(const ScrParameters::Descriptor& descriptor, const std::string& key,
               long otherwise) {
  const auto found = descriptor.find(key);
  return found == descriptor.end() ? otherwise
                                   : whole_number(found->second, key + " of a descriptor CKPT");
}

void add(Redundancy& redundancy, const ScrParameters::Descriptor& descriptor,
         const ScrSettings& settings) {
  const std::string default_type = settings.get("SCR_COPY_TYPE").value_or("XOR");
  const std::string type = of(descriptor, "TYPE", default_type == "FILE" ? "XOR" : default_type);
  const long interval = number_of(descriptor, "INTERVAL", 1);
  if (interval < 1) throw std::runtime_error("INTERVAL of a descriptor CKPT must be at least 1");
  const int level_in_cache = level_of_type(type, "SCR_COPY_TYPE, or TYPE of CKPT,");
  const bool bypasses_cache =
      number_of(descriptor, "BYPASS", settings.number("SCR_CACHE_BYPASS", 1)) != 0;
  redundancy.schemes.push_back({interval, bypasses_cache ? DIAPAUSE_L4 : level_in_cache});
  const bool is_first = redundancy.schemes.size() == 1;
  if (is_first)
    redundancy.cache = of(descriptor, "STORE", settings.get("SCR_CACHE_BASE").value_or(kInMemory));
  if (redundancy.schemes.back().level != DIAPAUSE_L3) return;
  redundancy.group_nodes = number_of(descriptor, "SET_SIZE", settings.number("SCR_SET_SIZE", 8));
  redundancy.parity =
      type == "XOR" ? 1
                    : number_of(descriptor, "SET_FAILURES", settings.number("SCR_SET_FAILURES", 2));
}

Redundancy redundancy_of(const ScrSettings& settings) {
  Redundancy redundancy;
  const auto& descriptors = settings.descriptors("CKPT");
  if (settings.get("SCR_COPY_TYPE") == "FILE" && !descriptors.empty()) {
    for (const auto& [number, descriptor] : descriptors) add(redundancy, descriptor, settings);
  } else {
    add(redundancy, {}, settings);
  }
  if (redundancy.group_nodes < 2 || redundancy.group_nodes > 255) {
    throw std::runtime_error(
        "SCR_SET_SIZE, or SET_SIZE of CKPT, must be at least 2 and at most 255");
  }
  if (redundancy.parity < 1 || redundancy.parity >= redundancy.group_nodes) {
    throw std::runtime_error("SCR_SET_FAILURES must be at least 1, and less than SCR_SET_SIZE");
  }
  return redundancy;
}

long versions_in(const std::string& cache, const ScrSettings& settings) {
  const auto& stores = settings.descriptors("STORE");
  const auto store = stores.find(cache);
  if (store != stores.end() && store->second.count("COUNT") != 0) {
    return std::max(1L, whole_number(store->second.at("COUNT"), "COUNT of STORE=" + cache));
  }
  return settings.number("SCR_CACHE_SIZE", 1, 1);
}

bool is_in_memory(const std::string& cache) {
  return cache.rfind(std::string(kInMemory) + "/", 0) == 0;
}

bool is_on_disk(const std::string& cache) { return !is_in_memory(cache) && cache != kInMemory; }

// Checkpoints that bypass the cache are in the prefix directory alone, as far as users know. What
// is in a cache in memory is what they rely on.
std::vector<std::string> directories_of(const ScrConfiguration& configuration,
                                        const Redundancy& redundancy) {
  const std::string& hidden = configuration.hidden;
  const auto bypasses = [](const auto& scheme) { return scheme.level == DIAPAUSE_L4; };
  if (std::all_of(redundancy.schemes.begin(), redundancy.schemes.end(), bypasses)) return {hidden};
  if (is_on_disk(redundancy.cache)) return {hidden, redundancy.directory};
  return {};
}

std::string settings_text(const ScrConfiguration& configuration, const Redundancy& redundancy,
                          const ScrSettings& settings) {
  Settings ours;
  if (is_in_memory(redundancy.cache)) ours.set("memory.path", redundancy.directory);
  if (is_on_disk(redundancy.cache)) ours.set("local.path", redundancy.directory);
  ours.set("global.path", configuration.hidden);
  ours.set("capture.strategy", "copy");
  ours.set_none("deadline.signals");  // the program does not ask whether it got one
  for (const char* const level : {"level1", "level2", "level3"}) {
    if (is_on_disk(redundancy.cache)) ours.set(std::string(level) + ".tier", "local");
    ours.set(std::string(level) + ".keep", versions_in(redundancy.cache, settings));
  }
  ours.set("level3.group_nodes", redundancy.group_nodes);
  ours.set("level3.parity", redundancy.parity);
  const long kept = settings.number("SCR_PREFIX_SIZE", 0);
  ours.set("level4.keep", kept == 0 ? std::numeric_limits<std::uint32_t>::max() : kept);
  return ours.text();
}

std::string name_of_job(const ScrSettings& settings) {
  std::string name = settings.get("SCR_JOB_NAME").value_or("scr");
  for (char& character : name) {
    const bool is_allowed =
        std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '.';
    if (!is_allowed && character != '-') character = '_';
  }
  return name.substr(0, 64);
}

double percent_of(const ScrSettings& settings, const std::string& key) {
  const auto text = settings.get(key);
  if (!text) return 0;
  char* end = nullptr;
  const double value = std::strtod(text->c_str(), &end);
  if (end != text->c_str() && *end == '\0' && value >= 0) return value;
  throw std::runtime_error(key + " = " + *text + ": this is no number of percent");
}

std::vector<std::string> remarks_on(const ScrSettings& settings) {
  std::vector<std::string> remarks;
  for (const std::string& key : settings.keys()) {
    const bool is_known = std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end();
    if (!is_known) remarks.push_back(key + " has no meaning for Diapause");
  }
  return remarks;
}

}  // namespace

int ScrConfiguration::level_of(std::uint64_t number) const {
  if (flush_every > 0 && number % static_cast<std::uint64_t>(flush_every) == 0) return DIAPAUSE_L4;
  Scheme chosen{0, DIAPAUSE_L1};
  for (const Scheme& scheme : schemes) {
    const bool applies = number % static_cast<std::uint64_t>(scheme.interval) == 0;
    if (applies && scheme.interval > chosen.interval) chosen = scheme;
  }
  return chosen.level;
}

ScrConfiguration scr_configuration(const ScrSettings& settings) {
  ScrConfiguration configuration;
  const std::filesystem::path prefix = settings.get("SCR_PREFIX").value_or(".");
  configuration.prefix = std::filesystem::weakly_canonical(prefix).string();
  configuration.job_name = name_of_job(settings);
  Redundancy redundancy = redundancy_of(settings);
  configuration.schemes = redundancy.schemes;
  configuration.flush_every = settings.number("SCR_FLUSH", 10);
  configuration.need_every = settings.number("SCR_CHECKPOINT_INTERVAL", 0);
  configuration.need_after_s = settings.number("SCR_CHECKPOINT_SECONDS", 0);
  configuration.need_overhead_percent = percent_of(settings, "SCR_CHECKPOINT_OVERHEAD");
  configuration.halt_before_s = settings.number("SCR_HALT_SECONDS", 0);
  configuration.current = settings.get("SCR_CURRENT");
  configuration.remarks = remarks_on(settings);
  // Directories are made when all parameters have been read.
  if (redundancy.cache != kInMemory)
    redundancy.directory = own_directory(redundancy.cache, "SCR_CACHE_BASE, or STORE of CKPT,");
  configuration.hidden = own_directory(configuration.prefix + "/.scr", "SCR_PREFIX/.scr");
  configuration.settings = settings_text(configuration, redundancy, settings);
  configuration.directories = directories_of(configuration, redundancy);
  return configuration;
}

}  // namespace diapause::drop_in
