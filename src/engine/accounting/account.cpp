#include "engine/accounting/account.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "base/fixed_text.hpp"
#include "engine/accounting/governing.hpp"
#include "engine/accounting/machine_accounts.hpp"
#include "engine/accounting/step_power.hpp"
#include "engine/job/gather.hpp"
#include "format/checksum.hpp"
#include "sys/process.hpp"
#include "sys/text_file.hpp"
#include "sys/value_file.hpp"

namespace diapause::engine {
namespace {

using nlohmann::json;

constexpr std::size_t kMostPhases = 4096;  // in a period; usually there are a few
// The number of times that the bytes of a phase pass through memory. The drained bytes are counted
// with the capture.
constexpr std::pair<std::string_view, double> kThroughMemory[] = {
    {"capture", 2}, {"partner", 2}, {"parity", 1}, {"encode", 1},
    {"global", 1},  {"verify", 1},  {"restore", 2}};

bool keeps_account(const Context& context) {
  return context.comm->node_leader() == context.comm->rank();
}

constexpr const char* kBeside[] = {"nothing", "waiting", "program"};

// Adds the uncertainty to the line. Null means that there is no bound, because the error of the
// source is unknown.
void put_uncertainty(json& line, const energy::Uncertainty& off) {
  line["uncertainty"] = {{"sampling_j", off.sampling_j},
                         {"sensor_j", off.is_bounded ? json(off.sensor_j) : json(nullptr)},
                         {"attribution_j", off.attribution_j}};
  line["uncertainty_j"] = off.is_bounded ? json(off.together_j()) : json(nullptr);
}

// Returns the numbers of zones by name of the domain. Several meters of the node may see the same
// power, so only the one of the total counts.
std::map<std::string, std::vector<std::size_t>> zones_by_domain(const energy::Sampler& sampler) {
  std::map<std::string, std::vector<std::size_t>> by_domain;
  const std::vector<energy::Zone>& zones = sampler.domains();
  const energy::Total& total = sampler.total();
  for (std::size_t z = 0; z < zones.size(); ++z) {
    const bool is_second_node = zones[z].domain == energy::Domain::node && total.name == "node" &&
                                std::ranges::find(total.zones, z) == total.zones.end();
    if (!is_second_node) by_domain[std::string(energy::domain_name(zones[z].domain))].push_back(z);
  }
  return by_domain;
}

// Adds joules by name of the domain with their uncertainties, where the parts of one machine are
// added up; "total" is sampler.total(), if there is one. A domain without known joules is left out,
// and an unknown total is null.
void put_joules(json& line, const energy::Charge& charge, const energy::Sampler& sampler,
                bool has_total) {
  json joules = json::object();
  json uncertainties = json::object();
  for (const auto& [domain, zones] : zones_by_domain(sampler)) {
    double sum_j = 0;
    energy::Uncertainty off;
    std::size_t known = 0;
    for (const std::size_t z : zones) {
      if (z >= charge.is_known.size() || !charge.is_known[z]) continue;
      ++known;
      sum_j += charge.joules[z];
      off.add(charge.off[z]);
    }
    if (known == 0) continue;
    joules[domain] = sum_j;
    if (known < zones.size()) continue;  // the energy of the other parts is unknown
    uncertainties[domain] = {off.sampling_j, off.is_bounded ? json(off.sensor_j) : json(nullptr),
                             off.attribution_j};
  }
  if (!uncertainties.empty()) line["uncertainty_of"] = std::move(uncertainties);
  if (has_total && charge.is_known.back()) {
    joules["total"] = charge.joules.back();
    put_uncertainty(line, charge.off.back());
  } else if (has_total) {
    joules["total"] = nullptr;
  }
  line["joules"] = std::move(joules);
}

// Adds what the beginning and the end of the line's time add to the sampling errors.
void put_ends(json& line, const energy::Charges& charges, const energy::Sampler& sampler,
              bool has_total) {
  if (has_total) line["ends_j"] = charges.ends_off_j.back();
  line.emplace("uncertainty_of", json::object());  // a domain that it lacks is known in part
  for (const auto& [domain, zones] : zones_by_domain(sampler)) {
    if (!line["uncertainty_of"].contains(domain)) continue;
    std::array<double, 2> ends{};
    for (const std::size_t z : zones) {
      for (const std::size_t end : {0, 1}) ends[end] += charges.ends_off_j[z][end];
    }
    line["ends_of"][domain] = ends;
  }
}

json sources_of(const energy::Sampler& sampler) {
  json sources = json::array();
  for (const energy::Zone& zone : sampler.domains()) {
    sources.push_back(
        {{"domain", energy::domain_name(zone.domain)},
         {"source", zone.source},
         {"kind", energy::kind_name(zone)},
         {"accuracy", zone.accuracy.share ? json(*zone.accuracy.share) : json(nullptr)},
         {"accuracy_source", zone.accuracy.source}});
  }
  return sources;
}

// Returns the processor time that was used, and the job's part of `whole`, the machine's energy.
// Returns null if the kernel does not tell.
json processors_of(std::optional<energy::ProcessorTimeReader>& reader, const json& whole) {
  if (!reader) return nullptr;
  const auto times = reader->since_last();
  if (!times) return nullptr;
  json processors = {
      {"job_s", times->job_s}, {"others_s", times->others_s}, {"others_most_s", times->others_s}};
  if (whole.contains("joules") && whole["joules"].contains("total") &&
      whole["joules"]["total"].is_number()) {
    const energy::NodeShare part = energy::share_of(*times);
    const double joules = whole["joules"]["total"];
    processors["job_j"] = joules * part.share;
    processors["job_attribution_j"] = std::abs(joules) * part.off;
  }
  return processors;
}

// Returns the lines of the phases. Phases of one name in one version are told apart by their order.
// `to_unix_s` is added to their times.
json lines_of(const std::vector<Phase>& phases, double to_unix_s, const std::string& actuator) {
  std::map<std::tuple<std::uint64_t, std::int32_t, std::string>, std::size_t> seen;
  json lines = json::array();
  for (const Phase& phase : phases) {
    const std::string name = get_text(phase.name);
    lines.push_back({{"version", phase.version},
                     {"level", phase.level},
                     {"phase", name},
                     {"beside", kBeside[static_cast<std::size_t>(phase.beside)]},
                     {"nth", seen[{phase.version, phase.level, name}]++},
                     {"start_unix_s", phase.from_s + to_unix_s},
                     {"seconds", phase.seconds()},
                     {"bytes", phase.bytes}});
    if (!phase.ratios.are_slowed()) continue;
    lines.back()["slowed"] = {
        {"actuator", actuator}, {"asked", phase.ratios.asked}, {"obtained", phase.ratios.obtained}};
  }
  return lines;
}

// Returns a digest of the name of this machine and of the number that its system was installed
// with, as names such as "localhost" are those of many.
std::string digest_of_machine(const Context& context) {
  const auto installed =
      sys::read_text_file(context.kernel, context.settings.energy.root + "/etc/machine-id");
  const std::string names = sys::host_name() + "\n" + installed.value_or("");
  return fmt::format("{:016x}", format::checksum64(as_byte_view(names)));
}

}  // namespace

Phase make_phase(std::string_view name, double from_s, double to_s) {
  Phase phase;
  put_text(phase.name, name);
  phase.from_s = from_s;
  phase.to_s = to_s;
  return phase;
}

std::unique_ptr<energy::Sampler> start_sampler(const Context& context) {
  if (!keeps_account(context) && !governs_by_joules(context) && !weighs_joules(context))
    return nullptr;
  for (const std::string& path : {context.settings.energy.stream, context.settings.energy.trace}) {
    if (path.empty()) continue;
    const auto file = sys::ValueFile::open(sys::real_kernel(), path);
    if (!file)
      context.log(Severity::warning, "energy of a file is not measured: " + file.error().message);
  }
  auto sampler = energy::Sampler::start(context.settings.energy, sys::real_kernel());
  if (sampler) return std::move(*sampler);
  context.log(Severity::warning, "energy is not measured: " + sampler.error().message);
  return nullptr;
}

Status Account::open(const Context& context, Environment environment) {
  period_from_s_ = sys::monotonic_s();
  is_kept_here_ = keeps_account(context);
  if (is_kept_here_) machine_ = digest_of_machine(context);
  sampler_ = is_kept_here_ ? environment.sampler : nullptr;
  actuator_ = std::move(environment.actuator);
  deliver_ = std::move(environment.deliver);
  background_.emplace(context.settings.async);
  const std::uint32_t machine = context.comm->node_leader();
  DIAPAUSE_TRY_ASSIGN(const std::vector<std::uint32_t> all, gather_one(*context.comm, machine));
  processes_here_ = static_cast<std::size_t>(std::ranges::count(all, machine));
  is_only_machine_ = processes_here_ == all.size();
  ranks_here_.clear();
  for (std::uint32_t rank = 0; rank < context.rank_count(); ++rank) {
    if (all[context.actor(rank)] == machine) ranks_here_.push_back(rank);
  }
  share_ = static_cast<double>(ranks_here_.size()) / context.rank_count();
  return open_processor_times(context, all);
}

// Each process names itself and the ranks of its node; ids mean something on their own machine
// only. A launched job has started from the agents.
Status Account::open_processor_times(const Context& context,
                                     std::span<const std::uint32_t> machine_of) {
  std::vector<std::int64_t> mine;
  for (const Neighbour& neighbour : context.neighbours) mine.push_back(neighbour.process);
  mine.push_back(sys::process_id());
  DIAPAUSE_TRY_ASSIGN(const Gathered<std::int64_t> all,
                      gather_values<std::int64_t>(context, {}, mine, "the processes of a node"));
  if (sampler_ == nullptr) return {};
  std::set<std::int64_t> here;
  for (std::size_t process = 0; process < all.size(); ++process) {
    if (machine_of[process] == context.comm->node_leader())
      here.insert(all[process].begin(), all[process].end());
  }
  const bool is_launched = context.neighbours.empty();
  auto reader = energy::ProcessorTimeReader::open(sys::real_kernel(), context.settings.energy.root,
                                                  {{here.begin(), here.end()}, is_launched});
  if (reader) processor_times_.emplace(std::move(*reader));
  return {};
}

double Account::share_here(std::span<const double> seconds_of_rank, double seconds) const {
  double sum = 0;
  for (const std::uint32_t rank : ranks_here_)
    sum += rank < seconds_of_rank.size() ? seconds_of_rank[rank] : 0;
  return seconds > 0 ? std::min(sum / (static_cast<double>(processes_here_) * seconds), 1.0) : 0;
}

void Account::add(const Phase& phase) {
  if (!is_kept_here_ || phases_.size() == kMostPhases) return;
  phases_.push_back(phase);
  const auto* const known =
      std::ranges::find(kThroughMemory, std::string_view(get_text(phase.name)),
                        [](const auto& one) { return one.first; });
  if (sampler_ == nullptr || known == std::end(kThroughMemory)) return;
  sampler_->moved(static_cast<std::uint64_t>(known->second * phase.share * share_ *
                                             static_cast<double>(phase.bytes)));
}

// Returns the versions with phases in the background, the last one first.
std::vector<std::uint64_t> Account::versions_behind() const {
  std::vector<std::uint64_t> versions;
  for (auto phase = phases_.rbegin(); phase != phases_.rend(); ++phase) {
    if (phase->beside == energy::Beside::program &&
        std::ranges::find(versions, phase->version) == versions.end())
      versions.push_back(phase->version);
  }
  return versions;
}

// Returns how many of the last versions have a phase in the background that ends after that time.
std::size_t Account::count_unknown(double unknown_from_s) const {
  const std::vector<std::uint64_t> versions = versions_behind();
  std::size_t count = 0;
  for (const Phase& phase : phases_) {
    if (phase.beside != energy::Beside::program || phase.to_s <= unknown_from_s) continue;
    const auto place = std::ranges::find(versions, phase.version) - versions.begin();
    count = std::max(count, static_cast<std::size_t>(place) + 1);
  }
  return count;
}

Account::Book Account::take_book(std::size_t later_versions) {
  std::vector<std::uint64_t> later = versions_behind();
  later.resize(std::min(later.size(), later_versions));
  const auto is_later = [&later](const Phase& phase) {
    return phase.beside == energy::Beside::program &&
           std::ranges::find(later, phase.version) != later.end();
  };
  Book book{std::exchange(phases_, {}), period_from_s_, sys::monotonic_s(),
            static_cast<double>(sys::unix_time_ns()) * 1e-9};
  phases_.reserve(book.phases.size());
  std::ranges::copy_if(book.phases, std::back_inserter(phases_), is_later);
  std::erase_if(book.phases, is_later);
  book.later = phases_;
  period_from_s_ = book.to_s;
  return book;
}

json Account::describe(const Book& book) {
  json machine = {{"time_unix_s", book.to_unix_s},
                  {"seconds", book.to_s - book.from_s},
                  {"gap_s", 0.0},
                  {"machine", machine_},
                  {"total", ""},
                  {"sources", json::array()},
                  {"program", json::object()},
                  {"whole", json::object()}};
  machine["phases"] = lines_of(book.phases, book.to_unix_s - book.to_s, actuator_);
  if (sampler_ != nullptr && !sampler_->domains().empty()) {
    std::vector<energy::Span> spans;
    for (const Phase& phase : book.phases)
      spans.push_back({phase.from_s, phase.to_s, phase.beside, phase.share});
    for (const Phase& phase : book.later)
      spans.push_back({phase.from_s, phase.to_s, phase.beside, phase.share, true});
    const auto between = [this](double from_s, double to_s) {
      energy::Usage usage = sampler_->between(from_s, to_s);
      usage.domains.push_back(usage.total);
      return std::move(usage.domains);
    };
    const energy::Charges charges = charger_.charge(spans, book.from_s, book.to_s, between);
    machine["gap_s"] = charges.gap_s;
    machine["total"] = sampler_->total().name;
    machine["sources"] = sources_of(*sampler_);
    if (const auto& fast = sampler_->fast_parts(); !fast.zones.empty())
      machine["told_apart_by"] = fast.name;
    for (const energy::Obstacle& boards : sampler_->boards_left_out()) {
      machine["left_out"].push_back(boards.source + ": " + boards.why);
    }
    // A machine on which no source has data now has no total.
    const bool has_total = !charges.whole.is_known.empty() && charges.whole.is_known.back();
    put_joules(machine["program"], charges.program, *sampler_, has_total);
    put_joules(machine["whole"], charges.whole, *sampler_, has_total);
    put_ends(machine["whole"], charges, *sampler_, has_total);
    for (std::size_t i = 0; i < book.phases.size(); ++i) {
      put_joules(machine["phases"][i], charges.spans[i], *sampler_, has_total);
    }
  }
  if (json processors = processors_of(processor_times_, machine["whole"]); !processors.is_null()) {
    machine["processors"] = std::move(processors);
  }
  return machine;
}

// Delivers the line of all machines.
void Account::deliver(const std::vector<json>& machines) const { deliver_(add_up(machines)); }

// Does the work in the background. Without energy measurement there is little to compute, and a
// program that wants no threads gets none.
void Account::behind(std::function<void()> work) {
  if (!background_ || sampler_ == nullptr || !sampler_->is_running()) return work();
  background_->post(std::move(work));
}

Status Account::end_period(const Context& context, std::optional<double> unknown_from_s) {
  std::uint64_t later = is_kept_here_ && unknown_from_s ? count_unknown(*unknown_from_s) : 0;
  if (is_only_machine_) {
    if (!is_kept_here_) return {};
    // There may be thousands of phases, so they are neither copied nor written as text twice.
    behind([this, book = take_book(later)] {
      std::vector<json> machine;
      machine.push_back(describe(book));
      deliver(machine);
    });
    return {};
  }
  // A phase is on one line for all machines.
  DIAPAUSE_TRY_ASSIGN(later, context.comm->all_max(later));
  const std::string mine = is_kept_here_ ? describe(take_book(later)).dump() : "";
  DIAPAUSE_TRY_ASSIGN(std::vector<std::string> machines, gather_one(*context.comm, mine));
  if (context.comm->rank() != 0) return {};
  std::erase(machines, "");
  behind([this, machines = std::move(machines)] {
    std::vector<json> accounts;
    for (const std::string& text : machines) {
      accounts.push_back(json::parse(text, nullptr, false));
      if (accounts.back().is_discarded()) return;  // it did not arrive whole, and the line is lost
    }
    deliver(accounts);
  });
  return {};
}

}  // namespace diapause::engine
