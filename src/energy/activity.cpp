#include "energy/activity.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <string_view>

namespace diapause::energy {
namespace {

// Reads the numbers of a line from the field `first` on (0 is the first). A field that is no number
// gives 0.
template <std::size_t kCount>
std::array<std::uint64_t, kCount> fields(std::string_view line, std::size_t first) {
  std::array<std::uint64_t, kCount> values{};
  for (std::size_t field = 0; field < first + kCount; ++field) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (field >= first)
      std::from_chars(line.data(), line.data() + line.size(), values[field - first]);
    line.remove_prefix(std::min(line.find_first_of(" \n"), line.size()));
  }
  return values;
}

double per_second(std::uint64_t now, std::uint64_t before, double seconds) {
  constexpr double kGb = 1e9;
  return now > before ? static_cast<double>(now - before) / kGb / seconds
                      : 0;  // a device that has gone takes its bytes along
}

}  // namespace

unsigned count_cpus(sys::Kernel& kernel, const std::string& root) {
  unsigned count = 0;
  for (const std::string& name : sys::list_names(kernel, root + "/sys/devices/system/cpu")
                                     .value_or(std::vector<std::string>())) {
    if (name.size() > 3 && name.starts_with("cpu") && name[3] >= '0' && name[3] <= '9') ++count;
  }
  return std::max(count, 1U);
}

Result<ActivityReader> ActivityReader::open(sys::Kernel& kernel, std::string root,
                                            const std::atomic<std::uint64_t>& moved_bytes) {
  DIAPAUSE_TRY_ASSIGN(auto stat, sys::ValueFile::open(kernel, root + "/proc/stat"));
  ActivityReader reader(kernel, std::move(root), moved_bytes, std::move(stat));
  reader.find_devices();
  reader.find_clocks();
  DIAPAUSE_TRY_ASSIGN(reader.last_, reader.totals());
  return reader;
}

// Finds real devices only. Those that are built on others (partitions, RAID, bridges) would count
// twice, and have no link to hardware.
void ActivityReader::find_devices() {
  const auto add = [this](const std::string& path, std::vector<sys::ValueFile>& files) {
    if (auto file = sys::ValueFile::open(kernel_, path)) files.push_back(std::move(*file));
  };
  const auto names = [this](const std::string& folder) {
    return sys::list_names(kernel_, folder).value_or(std::vector<std::string>());
  };
  const std::string block = root_ + "/sys/block";
  for (const std::string& name : names(block)) {
    if (sys::list_names(kernel_, block + "/" + name + "/device"))
      add(block + "/" + name + "/stat", disks_);
  }
  const std::string net = root_ + "/sys/class/net";
  for (const std::string& name : names(net)) {
    if (!sys::list_names(kernel_, net + "/" + name + "/device")) continue;
    add(net + "/" + name + "/statistics/rx_bytes", networks_);
    add(net + "/" + name + "/statistics/tx_bytes", networks_);
  }
  const std::string fabric = root_ + "/sys/class/infiniband";
  for (const std::string& adapter : names(fabric)) {
    const std::string ports = fabric + "/" + adapter + "/ports";
    for (const std::string& port : names(ports)) {
      add(ports + "/" + port + "/counters/port_rcv_data", fabrics_);
      add(ports + "/" + port + "/counters/port_xmit_data", fabrics_);
    }
  }
}

void ActivityReader::find_clocks() {
  const std::string policies = root_ + "/sys/devices/system/cpu/cpufreq";
  for (const std::string& name :
       sys::list_names(kernel_, policies).value_or(std::vector<std::string>())) {
    auto clock = sys::ValueFile::open(kernel_, policies + "/" + name + "/scaling_cur_freq");
    const auto khz = clock ? clock->number() : 0ULL;
    if (!clock || !khz) continue;
    clocks_.push_back(std::move(*clock));
    ghz_.push_back(static_cast<double>(*khz) / 1e6);
  }
}

// The fields are "cpu user nice system idle iowait irq softirq steal guest guest_nice"; the times
// of guests are contained in user.
Result<ActivityReader::Ticks> ActivityReader::ticks() const {
  std::array<char, 256> place{};
  DIAPAUSE_TRY_ASSIGN(const std::string_view text, stat_.head(place));
  if (!text.starts_with("cpu "))
    return fail(Code::corrupt, stat_.path() + " does not begin with 'cpu '");
  const auto [user, nice, system, idle, iowait, irq, softirq, steal] = fields<8>(text, 1);
  Ticks ticks;
  ticks.busy = user + nice + system + irq + softirq;
  ticks.all = ticks.busy + idle + iowait + steal;
  return ticks;
}

std::uint64_t ActivityReader::sum(const std::vector<sys::ValueFile>& files) const {
  std::uint64_t bytes = 0;
  for (const sys::ValueFile& file : files) bytes += file.number().value_or(0);
  return bytes;
}

// In /sys/block/*/stat the third field counts sectors of 512 bytes read, and the seventh those
// written.
std::uint64_t ActivityReader::disk_bytes() const {
  std::array<char, 256> place{};
  std::uint64_t sectors = 0;
  for (const sys::ValueFile& file : disks_) {
    const auto from_third = fields<5>(file.head(place).value_or(""), 2);
    sectors += from_third[0] + from_third[4];
  }
  return sectors * 512;
}

Result<ActivityReader::Totals> ActivityReader::totals() const {
  Totals totals;
  DIAPAUSE_TRY_ASSIGN(totals.ticks, ticks());
  totals.disk_bytes = disk_bytes();
  totals.network_bytes = sum(networks_) + 4 * sum(fabrics_);
  totals.memory_bytes = moved_bytes_.load(std::memory_order_relaxed);
  return totals;
}

void ActivityReader::read_a_clock() {
  if (clocks_.empty()) return;
  next_clock_ = (next_clock_ + 1) % clocks_.size();
  if (const auto khz = clocks_[next_clock_].number())
    ghz_[next_clock_] = static_cast<double>(*khz) / 1e6;
}

Result<Activity> ActivityReader::since_last(double now_s) {
  DIAPAUSE_TRY_ASSIGN(const Totals now, totals());
  read_a_clock();
  Activity activity;
  const double seconds = std::max(now_s - last_time_s_, 1e-6);
  const std::uint64_t all = now.ticks.all - last_.ticks.all;
  if (now.ticks.all > last_.ticks.all) {
    activity.utilisation = std::min(
        1.0, static_cast<double>(now.ticks.busy - last_.ticks.busy) / static_cast<double>(all));
  }
  activity.memory_gb_s = per_second(now.memory_bytes, last_.memory_bytes, seconds);
  activity.disk_gb_s = per_second(now.disk_bytes, last_.disk_bytes, seconds);
  activity.network_gb_s = per_second(now.network_bytes, last_.network_bytes, seconds);
  if (!ghz_.empty())
    activity.ghz =
        std::accumulate(ghz_.begin(), ghz_.end(), 0.0) / static_cast<double>(ghz_.size());
  last_ = now;
  last_time_s_ = now_s;
  return activity;
}

}  // namespace diapause::energy
