#include "energy/node_share.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "sys/process.hpp"
#include "sys/tasks.hpp"

namespace diapause::energy {

Result<ProcessorTimeReader> ProcessorTimeReader::open(sys::Kernel& kernel, const std::string& root,
                                                      JobProcesses processes) {
  DIAPAUSE_TRY_ASSIGN(auto stat, sys::ValueFile::open(kernel, root + "/proc/stat"));
  ProcessorTimeReader reader(kernel, std::move(stat));
  if (processes.have_descendants) {
    reader.families_ = std::move(processes.ids);
    DIAPAUSE_TRY_ASSIGN(reader.last_families_s_,
                        sys::processor_s_of_families(kernel, reader.families_));
  } else {
    for (const std::int64_t process : processes.ids) {
      DIAPAUSE_TRY_ASSIGN(const double used_s, sys::processor_s_of(process));
      reader.clocks_.push_back({process, used_s});
    }
  }
  DIAPAUSE_TRY_ASSIGN(reader.last_busy_s_, reader.busy_s());
  return reader;
}

// The line has "cpu  user nice system idle iowait irq softirq steal guest guest_nice"; guests are
// in user already.
Result<double> ProcessorTimeReader::busy_s() const {
  std::array<char, 256> place{};
  DIAPAUSE_TRY_ASSIGN(std::string_view text, stat_.head(place));
  if (!text.starts_with("cpu "))
    return fail(Code::corrupt, stat_.path() + " does not begin with 'cpu '");
  text.remove_prefix(4);
  constexpr bool kIsBusy[] = {true, true, true, false, false, true, true};
  std::uint64_t ticks = 0;
  for (const bool is_busy : kIsBusy) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    if (is_busy) ticks += value;
    text.remove_prefix(std::min(text.find_first_of(" \n"), text.size()));
  }
  return static_cast<double>(ticks) / sys::ticks_per_second();
}

double ProcessorTimeReader::job_s() {
  double sum_s = families_s();
  for (Clock& clock : clocks_) {
    const auto now_s = sys::processor_s_of(clock.process);
    if (!now_s || *now_s < clock.last_s)
      continue;  // it has ended, and another process may have its number
    sum_s += *now_s - std::exchange(clock.last_s, *now_s);
  }
  return sum_s;
}

// A process that ends without being waited for takes its time with it.
double ProcessorTimeReader::families_s() {
  if (families_.empty()) return 0;
  const auto now_s = sys::processor_s_of_families(kernel_, families_);
  if (!now_s) return 0;
  return std::max(0.0, *now_s - std::exchange(last_families_s_, *now_s));
}

Result<ProcessorTimes> ProcessorTimeReader::since_last() {
  DIAPAUSE_TRY_ASSIGN(const double now_s, busy_s());
  ProcessorTimes times;
  times.job_s = job_s();
  times.others_s = std::max(0.0, now_s - std::exchange(last_busy_s_, now_s) - times.job_s);
  return times;
}

NodeShare share_of(const ProcessorTimes& times) {
  const double used_s = times.job_s + times.others_s;
  if (!(used_s > 0)) return {};
  const double share = times.job_s / used_s;
  const auto if_it_costs = [share](double ratio) {
    return ratio * share / (ratio * share + 1 - share);
  };
  return {share,
          std::max(if_it_costs(kMostPowerRatio) - share, share - if_it_costs(1 / kMostPowerRatio))};
}

}  // namespace diapause::energy
