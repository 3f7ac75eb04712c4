// `diapause verify`: reads everything, and reports what could be restored after which loss.
#include <fmt/format.h>

#include <algorithm>

#include "cli/collection.hpp"
#include "cli/inspection.hpp"
#include "cli/json_report.hpp"
#include "cli/text.hpp"
#include "cli/verbs.hpp"

namespace diapause::cli {
namespace {

// Returns text such as "own node (ranks 0-3), parity (rank 4)".
std::string sources_text(const std::vector<redundancy::Source>& sources) {
  using Kind = redundancy::SourceKind;
  std::string text;
  for (const Kind kind : {Kind::own_node, Kind::peer_node, Kind::rebuild, Kind::global}) {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < sources.size(); ++rank) {
      if (sources[rank].kind == kind) ranks.push_back(rank);
    }
    if (ranks.empty()) continue;
    text += fmt::format("{}{} (rank{} {})", text.empty() ? "" : ", ",
                        redundancy::source_kind_name(kind), ranks.size() == 1 ? "" : "s",
                        numbers_text(ranks));
  }
  return text;
}

std::string now_text(const redundancy::Assessment& found) {
  if (found.restorable) return "can be restored: " + sources_text(found.sources);
  if (found.missing.empty()) return "CANNOT be restored: no manifest is left";
  return fmt::format("CANNOT be restored: no intact image of rank{} {}",
                     found.missing.size() == 1 ? "" : "s", numbers_text(found.missing));
}

std::string loss_text(const VersionInspection& inspection, const redundancy::Loss& loss) {
  std::vector<std::string> names;
  for (const std::uint32_t node : loss) names.push_back(inspection.nodes[node]);
  return fmt::format("{}", fmt::join(names, "+"));
}

std::string one_node_text(const VersionInspection& inspection) {
  const std::vector<std::uint32_t>& fatal = inspection.assessment.fatal_nodes;
  if (fatal.empty()) return "can be restored";
  if (fatal.size() == inspection.nodes.size()) return "CANNOT be restored, whichever it is";
  std::vector<std::string> names;
  for (const std::uint32_t node : fatal) names.push_back(inspection.nodes[node]);
  return fmt::format("CANNOT be restored after the loss of {}", fmt::join(names, " or of "));
}

std::string two_nodes_text(const VersionInspection& inspection) {
  const redundancy::Assessment& found = inspection.assessment;
  if (!found.pairs_tried)
    return fmt::format("not tried: {} nodes are too many", inspection.nodes.size());
  if (found.fatal_pairs == 0) return "can be restored";
  if (found.fatal_pairs == found.pairs) return "CANNOT be restored, whichever they are";
  std::vector<std::string> names;
  for (const redundancy::Loss& loss : found.fatal_pair_examples)
    names.push_back(loss_text(inspection, loss));
  return fmt::format("CANNOT be restored after {} of {} losses: {}{}", found.fatal_pairs,
                     found.pairs, fmt::join(names, ", "),
                     found.fatal_pairs > names.size() ? ", ..." : "");
}

void print_inspection(const VersionInspection& inspection) {
  const CollectedVersion& version = *inspection.version;
  if (inspection.vanished) {
    fmt::print("  version {}: changed while it was read; a running job has its hands on it\n",
               version.id.number);
    return;
  }
  fmt::print("  version {} (incarnation {}{}): read {} in {} file{}\n", version.id.number,
             version.id.incarnation,
             version.manifest == nullptr ? "" : ", levels " + levels_text(*version.manifest),
             bytes_text(inspection.bytes), inspection.files, inspection.files == 1 ? "" : "s");
  for (const store::DamagedFile& damage : inspection.damages) {
    fmt::print("    DAMAGED {}: {}\n", printable(damage.path), printable(damage.what));
  }
  const auto line = [](const char* when, const std::string& what) {
    fmt::print("    {:<26}{}\n", when, printable(what));
  };
  if (!inspection.nodes_unreached.empty()) {
    line("no part of it on:", fmt::format("{}", fmt::join(inspection.nodes_unreached, ", ")));
  }
  if (version.is_over) {
    line("the job was finished:", version.is_archive
                                      ? "this version was kept; the next start begins anew"
                                      : "the next start begins anew and removes this version");
  }
  line("as it is now:", now_text(inspection.assessment));
  if (!inspection.assessment.restorable) return;
  line("without any one node:", one_node_text(inspection));
  if (inspection.nodes.size() > 1) line("without any two nodes:", two_nodes_text(inspection));
  line("without all nodes:",
       inspection.assessment.survives_all_nodes ? "can be restored" : "CANNOT be restored");
}

struct Verdict {
  bool any_damage = false;
  bool newest_restorable = true;  // whether that holds for every job
  bool any_version = false;
};

Verdict judge(const std::vector<JobInspection>& jobs) {
  Verdict verdict;
  for (const JobInspection& job : jobs) {
    bool newest = true;
    for (const VersionInspection& inspection : job.versions) {
      if (inspection.vanished) continue;
      verdict.any_version = true;
      verdict.any_damage = verdict.any_damage || !inspection.damages.empty();
      if (inspection.version->is_over) continue;  // no restart uses it
      if (newest && !inspection.assessment.restorable) verdict.newest_restorable = false;
      newest = false;
    }
  }
  return verdict;
}

int status_of(const Verdict& verdict, const Collection& collection) {
  if (!verdict.any_version) return kTrouble;
  if (!verdict.newest_restorable) return kNotRestorable;
  if (verdict.any_damage) return kDamaged;
  return collection.problems.empty() ? kDone : kTrouble;
}

std::string summary(const Verdict& verdict, const std::vector<JobInspection>& jobs,
                    const VerifyArguments& arguments) {
  const auto has_none = [](const JobInspection& job) { return job.versions.empty(); };
  if (arguments.version && std::ranges::all_of(jobs, has_none))
    return fmt::format("there is no version {} of '{}'", *arguments.version, arguments.job);
  if (!verdict.any_version) return "there was nothing to verify";
  if (!verdict.newest_restorable) return "a newest version CANNOT be restored";
  if (verdict.any_damage) return "the newest version can be restored, but something is damaged";
  return "nothing is damaged, and the newest version can be restored";
}

}  // namespace

int verify(const VerifyArguments& arguments) {
  const auto collection = collect(arguments.places);
  if (!collection) return complain(collection.error());
  const auto jobs = find_jobs(*collection, arguments.job);
  if (!jobs) return complain(jobs.error());
  for (const std::string& problem : collection->problems) complain(problem);
  for (const std::string& text : collection->notes) note(text);
  std::vector<JobInspection> inspections;
  for (const Job* job : *jobs) {
    JobInspection one{job, {}};
    for (const CollectedVersion& version : job->versions) {
      const bool wanted = !arguments.version || version.id.number == *arguments.version;
      if (wanted && !version.unfinished())
        one.versions.push_back(inspect(version, collection->seen_s));
    }
    if (!arguments.json && !one.versions.empty()) {
      fmt::print("{}\n", job->key);
      for (const VersionInspection& inspection : one.versions) print_inspection(inspection);
    }
    inspections.push_back(std::move(one));
  }
  const Verdict verdict = judge(inspections);
  const int status = status_of(verdict, *collection);
  if (arguments.json) {
    fmt::print("{}\n", verify_json(*collection, inspections, status));
  } else {
    fmt::print("{}\n", summary(verdict, inspections, arguments));
  }
  return status;
}

}  // namespace diapause::cli
