#include "energy/trace.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace diapause::energy {
namespace {

using nlohmann::json;

constexpr int kSchema = 1;
constexpr const char* kWhat = "diapause power trace";
constexpr std::size_t kMostDomains = 4096;
// A node at 10 kW needs three years for it. Its microjoules fit into 64 bits.
constexpr double kMostJ = 1e12;

json domain_json(const Zone& zone) {
  json domain = {
      {"source", zone.source},   {"domain", domain_name(zone.domain)}, {"part", zone.part},
      {"kind", kind_name(zone)}, {"resolution_j", zone.resolution_j},  {"update_s", zone.update_s}};
  domain["accuracy"] = zone.accuracy.share ? json(*zone.accuracy.share) : json(nullptr);
  domain["accuracy_source"] = zone.accuracy.source;
  if (zone.is_replayed) domain["replayed_kind"] = kind_name(zone.kind);
  return domain;
}

template <class T>
T field(const json& object, const char* name, T otherwise) {
  const auto found = object.find(name);
  if (found == object.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>) {
    return found->is_string() ? found->get<std::string>() : otherwise;
  } else {
    return found->is_number() ? found->get<T>() : otherwise;
  }
}

// Traces of older versions do not tell how far their sources may be off.
Accuracy parse_accuracy(const json& object, const Zone& zone) {
  const auto source = field<std::string>(object, "accuracy_source", "");
  const double share = field(object, "accuracy", -1.0);
  if (!source.empty()) return {share >= 0 ? std::optional(share) : std::nullopt, source};
  if (zone.kind == Kind::measured) return zone.accuracy;
  return {std::nullopt, "a trace does not tell how far its model is off"};
}

std::optional<Zone> parse_domain(const json& object) {
  const auto name = field<std::string>(object, "domain", "");
  const auto found = std::find(kDomainNames.begin(), kDomainNames.end(), name);
  if (!object.is_object() || found == kDomainNames.end()) return std::nullopt;
  Zone zone;
  zone.source = field<std::string>(object, "source", "");
  zone.domain = static_cast<Domain>(found - kDomainNames.begin());
  zone.part = field<std::string>(object, "part", "");
  zone.is_replayed = field<std::string>(object, "kind", "") == kReplayed;
  const auto kind = field<std::string>(object, zone.is_replayed ? "replayed_kind" : "kind", "");
  zone.kind = kind == kind_name(Kind::measured) ? Kind::measured : Kind::modelled;
  zone.resolution_j = std::max(0.0, field(object, "resolution_j", 0.0));
  zone.update_s = std::max(0.0, field(object, "update_s", 0.0));
  zone.accuracy = parse_accuracy(object, zone);
  return zone;
}

// Joules are rounded to the microjoule and seconds to the microsecond. More digits would be noise,
// and nine more in every row.
double rounded(double value) { return std::round(value * 1e6) / 1e6; }

}  // namespace

std::string trace_head_line(const TraceHead& head) {
  json domains = json::array();
  for (const Zone& zone : head.domains) domains.push_back(domain_json(zone));
  return json{
      {"schema", kSchema},
      {"what", kWhat},
      {"host", head.host},
      {"started_unix_s", head.started_unix_s},
      {"period_s", head.period_s},
      {"domains", domains},
      {"total",
       {{"name", head.total.name}, {"kind", kind_name(head.total)}, {"domains", head.total.zones}}}}
      .dump(-1, ' ', false,
            json::error_handler_t::replace);  // labels of sensors may hold any bytes
}

std::string trace_row_line(const TraceRow& row) {
  json joules = json::array();
  json covered = json::array();
  for (const Point& point : row.points) {
    joules.push_back(rounded(point.joules));
    covered.push_back(rounded(point.covered_s));
  }
  json line{{"t", rounded(row.time_s)}, {"j", joules}, {"c", covered}};
  for (const double off_j : row.off_j) line["o"].push_back(rounded(off_j));
  return line.dump();
}

Result<TraceHead> parse_trace_head(const std::string& line) {
  const json object = json::parse(line, nullptr, false);
  if (!object.is_object() || field<std::string>(object, "what", "") != kWhat)
    return fail(Code::corrupt, "is no trace");
  if (const int schema = field(object, "schema", 0); schema != kSchema) {
    return fail(Code::corrupt,
                "has schema " + std::to_string(schema) + ", and this version reads 1");
  }
  TraceHead head;
  head.host = field<std::string>(object, "host", "");
  head.started_unix_s = field(object, "started_unix_s", 0.0);
  head.period_s = field(object, "period_s", 0.0);
  const auto domains = object.find("domains");
  if (domains == object.end() || !domains->is_array() || domains->size() > kMostDomains) {
    return fail(Code::corrupt, "has no domains");
  }
  for (const json& domain : *domains) {
    auto zone = parse_domain(domain);
    if (!zone) return fail(Code::corrupt, "has a domain that is not known");
    head.domains.push_back(std::move(*zone));
  }
  head.total = choose_total(head.domains);
  return head;
}

Result<TraceRow> parse_trace_row(const std::string& line, std::size_t domains) {
  const json object = json::parse(line, nullptr, false);
  if (!object.is_object() || !object.contains("j") || !object.contains("c"))
    return fail(Code::corrupt, "is no row");
  const json& joules = object["j"];
  const json& covered = object["c"];
  if (!joules.is_array() || !covered.is_array() || joules.size() != domains ||
      covered.size() != domains) {
    return fail(Code::corrupt, "has another number of values than there are domains");
  }
  TraceRow row;
  row.time_s = field(object, "t", -1.0);
  for (std::size_t i = 0; i < domains; ++i) {
    if (!joules[i].is_number() || !covered[i].is_number())
      return fail(Code::corrupt, "has a value that is no number");
    row.points.push_back({row.time_s, joules[i].get<double>(), covered[i].get<double>()});
    if (const double told = row.points.back().joules; !(told >= 0 && told <= kMostJ))
      return fail(Code::corrupt, "has energy below 0 or above 1e12 J");
  }
  if (!(row.time_s >= 0)) return fail(Code::corrupt, "has no time");
  const auto off = object.find("o");
  if (off == object.end()) return row;
  if (!off->is_array() || off->size() != domains)
    return fail(Code::corrupt, "has another number of bounds than there are domains");
  for (const json& one : *off) {
    if (!one.is_number() || !(one.get<double>() >= 0))
      return fail(Code::corrupt, "has a bound that is no number of 0 or more");
    row.off_j.push_back(one.get<double>());
  }
  return row;
}

}  // namespace diapause::energy
