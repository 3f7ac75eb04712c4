// The times and places of failures, generated from laws or read from a record.
#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <string>
#include <unordered_set>
#include <vector>

#include "model/failure_law.hpp"
#include "simulate/random.hpp"

namespace diapause::simulate {

// The data that a failure destroys.
enum class Takes {
  process,  // nothing that was stored: the job ends, and its nodes stay
  nodes,    // data in the nodes that are hit
  all_nodes,
  site  // data in all nodes and in the global tier
};

// Units of one kind that fail independently: nodes, cabinets of 64 consecutive nodes, power domains
// of 512, ...
struct FailureClass {
  std::string name;
  Takes takes = Takes::nodes;
  // Consecutive nodes of a unit. The job as a whole is one unit with all its nodes.
  std::uint32_t nodes_each = 1;
  model::FailureLaw law;  // the law of one unit, which is as good as new after a failure
  double age_s = 0;       // age of all units when the run begins
  double hit_share = 1;   // probability that each further node of the unit is hit as well
  double repair_s = 0;    // time until a node that was hit can be used again
  // Least level of a checkpoint that survives, whatever was hit; 0: decided by its placement.
  int least_level = 0;
};

struct Failure {
  double time_s = std::numeric_limits<double>::infinity();
  std::size_t of_class = 0;
  std::uint32_t first_node = 0;
  std::uint32_t nodes = 1;  // consecutive nodes of the unit
};

// A failure from one line of a record.
struct RecordedFailure {
  double time_s = 0;
  Takes takes = Takes::nodes;
  std::uint32_t first_node = 0;
  std::uint32_t nodes = 1;
  double repair_s = 0;
};

// Gives the failures of all classes in the order of time. Units that have not failed yet need no
// memory: with the law's cumulative hazard, the first failure among n units comes after an
// exponential time divided by n, and the next one after another such time divided by n - 1.
class Failures {
 public:
  Failures(const std::vector<FailureClass>& classes, std::uint32_t nodes, std::uint64_t seed);

  // Returns the next failure; its time is infinite if there are no more.
  Failure next();

  std::size_t remembered() const;  // number of units that have failed

 private:
  struct Source {
    FailureClass of;
    std::uint64_t units = 0;
    double hazard = 0;   // hazard up to which units that have not failed were generated
    double fresh_s = 0;  // time of the next failure among these
    std::unordered_set<std::uint64_t> failed = {};
    Random random{0};
  };
  struct Due {
    double time_s;
    std::size_t source;
    std::uint64_t unit;  // kFresh: a unit that has not failed yet
    bool operator>(const Due& other) const { return time_s > other.time_s; }
  };
  static constexpr std::uint64_t kFresh = ~std::uint64_t{0};

  void plan_fresh(std::size_t index);
  std::uint64_t draw_fresh(Source& source);

  std::uint32_t nodes_;
  std::vector<Source> sources_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
};

}  // namespace diapause::simulate
