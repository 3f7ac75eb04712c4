// The arguments of `diapause plan` and `diapause simulate`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace diapause::cli {

// The job and its machine, for both verbs. Words are as typed; job_model.hpp reads them.
struct JobOptions {
  std::string machine = "generic";
  std::string from;    // a job or a ledger; empty for none
  std::string config;  // configuration that tells where to look for it
  std::optional<std::string> global;
  std::optional<std::uint32_t> nodes, ranks;
  std::string bytes_per_rank;
  std::vector<int> levels;
  std::vector<std::string> level;  // like "4:blocked=10s,restart=2min"
  std::vector<std::string> rates;  // like "storage=210000"
  std::vector<std::string> watts;  // such as "compute=300", of a node
  std::vector<std::string> mtbf;   // like "node=3d", for the whole job
  std::string node_mtbf;
  std::uint32_t group_nodes = 4, parity = 1;
  double slowed = 0.05;
  bool sync = false;
};

struct SimulateArguments {
  JobOptions job;
  std::string law = "exponential";
  std::string trace;
  std::string work, horizon;
  std::string interval;              // work between checkpoints; empty: the optimum
  std::vector<std::uint64_t> every;  // used with `interval`
  std::string goal = "time";
  std::uint32_t cabinet_nodes = 0;  // 0 stands for as many as level 3 survives
  std::string power_domain;         // such as "512:30d"; empty: none fails
  std::optional<std::uint32_t> spares;
  std::string repair;
  bool shrink = false;
  std::string allocation, queue;
  std::string throttle;  // like "1.08:0.8"
  std::string others;    // like "1h:5min:0.5"
  std::uint32_t replicas = 20;
  std::uint64_t seed = 1;
  std::uint32_t threads = 0;  // 0 stands for the number of cores
  std::string events;         // a file; empty for none
  bool json = false;
  std::string plot;  // a file; empty for none
};

struct PlanArguments {
  JobOptions job;
  double bound_percent = 2;
  // Law or trace, number of runs and seed, if the optimum is searched by simulation.
  SimulateArguments played;
  std::vector<std::uint64_t> sizes;
  // Memory, storage, device, rate of a device, and percent in use.
  std::vector<std::string> fill_time;
  bool json = false;
  std::string plot;  // a file; empty for none
};

}  // namespace diapause::cli
