// Measures how the work and the messages of a checkpoint and a restart grow with the ranks of a
// job. It takes the parts that need no files and no MPI, with made-up jobs.
//
//   scaling RANKS_PER_NODE RANKS...
//
// Prints a line for each part: what it does, and for each number of ranks the milliseconds that it
// takes, or the bytes; behind that stands the exponent of the growth between the last two numbers.
// An exponent of 1 means growth in proportion to the ranks.
#include <cmath>
#include <functional>

#include "engine/job/decision.hpp"
#include "engine/job/inventory_reports.hpp"
#include "engine/node/captures.hpp"
#include "measure.hpp"
#include "policy/retention.hpp"
#include "redundancy/layout.hpp"
#include "redundancy/places.hpp"
#include "redundancy/recovery.hpp"

namespace {

using namespace diapause;

constexpr std::uint32_t kGroupNodes = 8;
constexpr std::uint32_t kParity = 2;
constexpr std::size_t kVersions = 4;

// A job after a checkpoint of levels 1 to 3, as it lies on its nodes.
struct Job {
  engine::Topology topology;
  format::Manifest manifest;
  std::vector<redundancy::Holdings> nodes;
  std::vector<ByteVector> reports;

  std::size_t node_count() const { return topology.node_names.size(); }
};

format::VersionId version(std::uint64_t number) {
  format::VersionId id;
  id.number = number;
  id.incarnation = 1;
  return id;
}

engine::Topology topology_of(std::uint32_t ranks, std::uint32_t ranks_per_node) {
  engine::Topology topology;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (rank % ranks_per_node == 0) {
      topology.leaders.push_back(rank);
      topology.node_names.push_back("node" + std::to_string(topology.node_names.size()));
    }
    topology.node_of_rank.push_back(rank / ranks_per_node);
    topology.actor_of_rank.push_back(rank);
  }
  return topology;
}

void lay_out(format::Manifest& manifest, const engine::Topology& topology) {
  const auto partners = redundancy::partners(topology.node_of_rank);
  auto groups = redundancy::groups(topology.node_of_rank, kGroupNodes, kParity);
  if (!partners || !groups) bench::give_up("these nodes can have no levels 2 and 3: take more");
  for (std::size_t rank = 0; rank < partners->size(); ++rank)
    manifest.ranks[rank].partner = (*partners)[rank];
  manifest.groups = std::move(*groups);
  for (format::Group& group : manifest.groups) {
    group.parity = kParity;
    group.chunk_bytes = kMiB;
    group.parities.assign(group.members.size(), {2 * kMiB, {}});
  }
}

format::Manifest manifest_of(const engine::Topology& topology) {
  format::Manifest manifest;
  manifest.job = "scaling";
  manifest.version = version(1);
  manifest.levels = 0b1110;
  manifest.node_names = topology.node_names;
  manifest.ranks.resize(topology.node_of_rank.size());
  for (std::size_t rank = 0; rank < manifest.ranks.size(); ++rank) {
    manifest.ranks[rank].image.file_bytes = kMiB;
    manifest.ranks[rank].node = topology.node_of_rank[rank];
  }
  lay_out(manifest, topology);
  return manifest;
}

// Returns the report in which the first rank of a node tells the others about its versions.
ByteVector report_of(const Job& job, std::uint32_t node) {
  format::Writer report(4096);
  engine::write_mark(report, {});
  for (std::size_t number = 1; number <= kVersions; ++number) {
    store::FoundVersion found;
    found.id = version(number);
    found.manifest.emplace();  // nothing but its levels is told
    found.manifest->levels = job.manifest.levels;
    found.images = job.nodes[node].images;
    found.parities = job.nodes[node].parities;
    engine::describe(report, found, config::TierKind::memory, node);
  }
  return report.take();
}

Job make_job(std::uint32_t ranks, std::uint32_t ranks_per_node) {
  Job job;
  job.topology = topology_of(ranks, ranks_per_node);
  job.manifest = manifest_of(job.topology);
  job.nodes = redundancy::places(job.manifest, job.topology.node_of_rank, job.node_count());
  for (std::uint32_t node = 0; node < job.node_count(); ++node)
    job.reports.push_back(report_of(job, node));
  return job;
}

double recovery_ms(const Job& job, const std::vector<redundancy::Holdings>& nodes,
                   const std::vector<std::uint32_t>& node_of_rank) {
  return 1e3 * bench::seconds_of([&] {
           if (!redundancy::plan_recovery(job.manifest, nodes, {}, node_of_rank)
                    .missing()
                    .empty()) {
             bench::give_up("something is lost");
           }
         });
}

double recovery_after_loss_ms(const Job& job) {
  std::vector<redundancy::Holdings> nodes = job.nodes;
  nodes[1] = {};
  return recovery_ms(job, nodes, job.topology.node_of_rank);
}

// Every rank runs on another node than before, as in a job that was queued again.
double recovery_elsewhere_ms(const Job& job) {
  std::vector<std::uint32_t> node_of_rank = job.topology.node_of_rank;
  const auto count = static_cast<std::uint32_t>(job.node_count());
  for (std::uint32_t& node : node_of_rank) node = (node + count / 2) % count;
  return recovery_ms(job, job.nodes, node_of_rank);
}

double decode_ms(const Job& job) {
  const ByteVector bytes = format::encode_manifest(job.manifest);
  return 1e3 * bench::seconds_of([&] {
           const auto decoded = format::decode_manifest(bytes);
           if (!decoded) bench::give_up(decoded.error().message);
         });
}

double merge_ms(const Job& job) {
  return 1e3 * bench::seconds_of([&] {
           const auto merged = engine::merge_reports(job.reports, job.node_count());
           if (!merged || merged->versions.size() != kVersions)
             bench::give_up("the reports cannot be merged");
         });
}

double retention_ms() {
  const std::vector<policy::RetentionCandidate> versions(100, {0b11110});
  return 1e3 * bench::seconds_of([&] {
           if (policy::kept_levels(versions, {}).size() != versions.size())
             bench::give_up("nothing is kept");
         });
}

double bytes_of_reports(const Job& job) {
  double bytes = 0;
  for (const ByteVector& report : job.reports) bytes += static_cast<double>(report.size());
  return bytes;
}

struct Part {
  const char* name;
  const char* unit;
  std::function<double(const Job&)> measure;
};

std::vector<Part> parts(std::uint32_t ranks_per_node) {
  const auto timed = [](auto action) {
    return [action](const Job& job) { return 1e3 * bench::seconds_of([&] { action(job); }); };
  };
  return {
      {"who acts for whom", "ms",
       timed([](const Job& job) { (void)engine::acting_for_nodes(job.topology); })},
      {"plan of copies and groups", "ms", timed([](const Job& job) {
         format::Manifest manifest = job.manifest;
         lay_out(manifest, job.topology);
       })},
      {"where files belong", "ms", timed([](const Job& job) {
         (void)redundancy::places(job.manifest, job.topology.node_of_rank, job.node_count());
       })},
      {"recovery, nothing lost", "ms",
       [](const Job& job) { return recovery_ms(job, job.nodes, job.topology.node_of_rank); }},
      {"recovery, one node lost", "ms", recovery_after_loss_ms},
      {"recovery on other nodes", "ms", recovery_elsewhere_ms},
      {"manifest encoded", "ms",
       timed([](const Job& job) { (void)format::encode_manifest(job.manifest); })},
      {"manifest decoded", "ms", decode_ms},
      {"reports of 4 versions merged", "ms", merge_ms},
      {"retention of 100 versions", "ms", [](const Job&) { return retention_ms(); }},
      {"manifest", "bytes",
       [](const Job& job) {
         return static_cast<double>(format::encode_manifest(job.manifest).size());
       }},
      {"report of one node", "bytes",
       [](const Job& job) { return static_cast<double>(job.reports.front().size()); }},
      {"reports of all nodes", "bytes", bytes_of_reports},
      {"checkpoint: a rank leaves", "bytes",
       // These are the decision and the request in words, and whether the rank is prepared.
       [](const Job&) { return (sizeof(engine::Decision) + 7) / 8 * 8 + 4 * 8 + 8.0; }},
      {"checkpoint: a node sends", "bytes",
       [ranks_per_node](const Job&) { return 1.0 + ranks_per_node * sizeof(engine::ImageFacts); }},
      {"checkpoint: a node receives", "bytes",
       [](const Job& job) {
         return static_cast<double>(job.node_count() +
                                    job.manifest.ranks.size() * sizeof(engine::ImageFacts));
       }},
  };
}

double median_of(const Part& part, const Job& job) {
  std::vector<double> values;
  for (int i = 0; i < 5; ++i) values.push_back(part.measure(job));
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) bench::give_up("usage: scaling RANKS_PER_NODE RANKS RANKS...");
  const auto ranks_per_node = static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10));
  std::vector<Job> jobs;
  std::printf("%-32s", "ranks");
  for (int i = 2; i < argc; ++i) {
    jobs.push_back(
        make_job(static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)), ranks_per_node));
    std::printf(" %12s", argv[i]);
  }
  std::printf("   exponent\n");
  for (const Part& part : parts(ranks_per_node)) {
    std::printf("%-26s %5s", part.name, part.unit);
    std::vector<double> values;
    for (const Job& job : jobs) {
      values.push_back(median_of(part, job));
      std::printf(part.unit[0] == 'm' ? " %12.3f" : " %12.0f", values.back());
    }
    const Job& last = jobs.back();
    const Job& before = jobs[jobs.size() - 2];
    const double growth = std::log(values.back() / values[values.size() - 2]);
    const double ranks = static_cast<double>(last.manifest.ranks.size()) /
                         static_cast<double>(before.manifest.ranks.size());
    std::printf(" %10.2f\n", growth / std::log(ranks));
  }
}
