// `diapause power record`: records a trace of what the node draws.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/meters.hpp"
#include "cli/power_report.hpp"
#include "cli/verbs.hpp"
#include "energy/trace.hpp"
#include "sys/process.hpp"
#include "sys/text_file.hpp"

namespace diapause::cli {
namespace {

energy::TraceHead head_of(energy::Sampler& sampler) {
  const double unix_of_monotonic_s =
      static_cast<double>(sys::unix_time_ns()) / 1e9 - sys::monotonic_s();
  return {sys::host_name(), unix_of_monotonic_s + sampler.started_s(), sampler.period_s(),
          sampler.domains(), sampler.total()};
}

// Records rows until the end. It may be stopped between two lines or inside one, which a reader
// then ignores.
Status record_rows(energy::Sampler& sampler, sys::TextWriter& file, double seconds) {
  const double begin_s = sampler.started_s();
  double next_s = sys::monotonic_s();
  while (true) {
    const auto [points, off_j] = sampler.now();
    const double time_s = points.empty() ? sys::monotonic_s() : points.front().time_s;
    DIAPAUSE_TRY(file.add_line(energy::trace_row_line({time_s - begin_s, points, off_j})));
    if (seconds > 0 && time_s - begin_s >= seconds) return {};
    next_s = std::max(next_s + sampler.period_s(), sys::monotonic_s());
    std::this_thread::sleep_for(std::chrono::duration<double>(next_s - sys::monotonic_s()));
  }
}

}  // namespace

int power_record(const PowerRecordArguments& arguments) {
  const auto sampler = start_sampler(arguments.choice, Unless::automatic);
  if (!sampler) return complain(sampler.error());
  if ((*sampler)->domains().empty())
    return complain("nothing tells what this node draws; `diapause power` says why");
  auto file = sys::TextWriter::create(sys::real_kernel(), arguments.file);
  if (!file) return complain(file.error());
  Status done = file->add_line(trace_head_line(head_of(**sampler)));
  if (done) done = record_rows(**sampler, *file, arguments.seconds);
  if (!done) return complain(done.error());
  const auto& total = (*sampler)->total();
  const energy::Amount amount = (*sampler)->since_start().total;
  fmt::print("{}: {:.1f} s, {}, {}: {}{}\n", arguments.file, amount.covered_s, total.name,
             kind_name(total), joules_text(amount), parts_text(amount));
  return kDone;
}

}  // namespace diapause::cli
