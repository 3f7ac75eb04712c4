// `diapause power`: shows what the node draws now.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "cli/meters.hpp"
#include "cli/power_report.hpp"
#include "cli/verbs.hpp"
#include "energy/openmetrics.hpp"
#include "sys/process.hpp"
#include "sys/text_file.hpp"

namespace diapause::cli {
namespace {

void print(energy::Sampler& sampler, const PowerArguments& arguments, const PowerLook& look) {
  if (arguments.json) {
    fmt::print("{}\n", power_json(sampler, look));
  } else {
    constexpr const char* kClear = "\x1b[H\x1b[2J";
    const bool clears = !arguments.once && sys::is_terminal(stdout);
    fmt::print("{}{}", clears ? kClear : "", power_text(sampler, look));
  }
  std::fflush(stdout);
}

// Updates the file of metrics. Its counters must never decrease, because a reader would take that
// for a restart.
Status keep_metrics(energy::Sampler& sampler, const std::string& file) {
  if (file.empty()) return {};
  std::vector<energy::Amount> amounts;
  for (const energy::Amount& amount : sampler.since_start().domains) amounts.push_back(amount);
  const std::vector<energy::Point> now = sampler.now().points;
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    amounts[i].joules = now[i].joules;
    amounts[i].covered_s = now[i].covered_s;
    amounts[i].gap_s = std::max(0.0, now[i].time_s - sampler.started_s() - now[i].covered_s);
  }
  return sys::replace_text_file(sys::real_kernel(), file,
                                energy::openmetrics_text(sampler.domains(), amounts));
}

}  // namespace

int power(const PowerArguments& arguments) {
  const auto sampler = start_sampler(arguments.choice, Unless::all_meters);
  if (!sampler) return complain(sampler.error());
  energy::Sampler& meters = **sampler;
  (void)meters.domains();  // waits until it is known which sources are live
  double from_s = sys::monotonic_s();
  do {
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.interval_s));
    const double to_s = sys::monotonic_s();
    PowerLook look{sys::host_name(), to_s - from_s, meters.between(from_s, to_s),
                   meters.since_start()};
    from_s = to_s;
    print(meters, arguments, look);
    if (const Status kept = keep_metrics(meters, arguments.openmetrics); !kept)
      return complain(kept.error());
  } while (!arguments.once && std::ferror(stdout) == 0);
  return kDone;
}

}  // namespace diapause::cli
