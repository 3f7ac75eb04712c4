// A meter is one way of the machine to say how much energy parts of it use (docs/energy.md).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace diapause::energy {

// A domain is what a zone covers. The larger ones stand before what they contain. total.hpp decides
// which of them make up a total.
enum class Domain {
  node,     // a whole node with what supplies it
  psys,     // the platform that a processor is the centre of: package, dram and more, but no
            // accelerator boards
  module,   // a superchip: socket and gpu
  socket,   // a processor with its memory
  package,  // a processor: cores and uncore, without memory
  core,     // the cores of a package, or one of them
  uncore,   // a package's graphics unit, or what else is in it
  dram,     // memory
  gpu,      // an accelerator board
  disk,     // storage devices
  network,  // network adapters
  other     // a rail that the meter has a name for and we have none; part of no total
};
inline constexpr std::array<std::string_view, 12> kDomainNames = {
    "node",   "psys", "module", "socket", "package", "core",
    "uncore", "dram", "gpu",    "disk",   "network", "other"};
constexpr std::string_view domain_name(Domain domain) {
  return kDomainNames[static_cast<std::size_t>(domain)];
}

enum class Kind { measured, modelled };
constexpr std::string_view kind_name(Kind kind) {
  return kind == Kind::measured ? "measured" : "modelled";
}
// What people are told of all that a trace replays: it was measured or modelled at another time,
// maybe on another machine.
inline constexpr std::string_view kReplayed = "replayed";

enum class Quantity { energy, power };  // a counter of energy, or a power at one moment

// Says how far a source may be off, either way, as a share of what it tells, and who says so. A
// source is off by about the same share at all times, so the error does not average out.
struct Accuracy {
  // If it is nullopt, nobody knows, and what the source tells is an estimate without a bound.
  std::optional<double> share;
  std::string source;
};

struct Zone {
  // It says where the number comes from, the meter's name first: "powercap intel-rapl:0".
  std::string source;
  Domain domain = Domain::other;
  std::string part;  // which of several: "0", "0/1"; empty: the only one
  Kind kind = Kind::measured;
  bool is_replayed = false;  // from a trace, in which it was of that kind
  Quantity quantity = Quantity::energy;
  double unit = 1e-6;       // joules of one count, or watts
  double resolution_j = 0;  // the smallest step of energy that the source knows; of power: at most
                            // what one reading adds
  std::uint64_t range = 0;  // counts at which a counter begins again; 0: it does not
  double most_w = 20000;    // more than this is no reading but an accident
  double peak_w = 0;        // the highest power that the zone can have; 0: not known
  double update_s = 0.001;  // how often the source itself changes
  Accuracy accuracy = {0.1, "assumed: none is published"};
};

inline std::string_view kind_name(const Zone& zone) {
  return zone.is_replayed ? kReplayed : kind_name(zone.kind);
}

struct Reading {
  std::size_t zone = 0;                // index in zones()
  double time_s = 0;                   // time of the value, by sys::monotonic_s()
  Result<std::uint64_t> count = 0ULL;  // in units of the zone
  bool is_after_gap = false;           // the source says that it does not know what was before
};

class Meter {
 public:
  virtual ~Meter() = default;
  virtual std::string_view name() const = 0;
  // Returns the zones that were found when it was opened. They do not change.
  virtual const std::vector<Zone>& zones() const = 0;
  // Adds readings of its zones to `out`: one a zone at most times, none where the source has
  // nothing new yet, several where it has more than one. `now_s` is of sys::monotonic_s(). Each
  // zone fails by itself. One thread at a time calls this.
  virtual void read(double now_s, std::vector<Reading>& out) = 0;
  // Does the same where somebody wants to know now. It is for meters that are not always read as
  // well as they can be.
  virtual void read_well(double now_s, std::vector<Reading>& out) { read(now_s, out); }
};

// An obstacle is something that looks like a source and cannot be used. It says where that is, why,
// and what would help.
struct Obstacle {
  std::string source;
  std::string why;
};

}  // namespace diapause::energy
