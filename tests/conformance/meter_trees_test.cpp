// Tests the trees of single meters as real machines have them, and what the meters make of them.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "conformance/device_kernel.hpp"
#include "energy/boards.hpp"
#include "energy/collector.hpp"
#include "energy/meters/registry.hpp"
#include "energy/trace.hpp"
#include "sys/process.hpp"

namespace diapause::energy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class Trees : public testing::Test {
 protected:
  Trees() {
    std::string pattern = (std::filesystem::temp_directory_path() / "trees-XXXXXX").string();
    settings_.root = ::mkdtemp(pattern.data());
    profile_ = *parse_profile(built_in_profile("generic"), "generic", {4, 100});
  }
  ~Trees() override { std::filesystem::remove_all(settings_.root); }
  Trees(const Trees&) = delete;
  Trees& operator=(const Trees&) = delete;

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = settings_.root + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  // Makes a zone of powercap.
  void zone(const std::string& directory, const std::string& name, std::uint64_t energy_uj) {
    const std::string folder = "/sys/class/powercap/" + directory + "/";
    write(folder + "name", name);
    write(folder + "max_energy_range_uj", name == "dram" ? "65712999613" : "262143328850");
    write(folder + "energy_uj", std::to_string(energy_uj));
  }
  void remove(const std::string& path) { std::filesystem::remove_all(settings_.root + path); }
  Discovery discover(Discovery (*function)(const Environment&)) {
    return function(Environment{kernel_, settings_, profile_, moved_bytes_});
  }
  static std::vector<std::string> names(const Meter& meter) {
    std::vector<std::string> result;
    for (const Zone& found : meter.zones()) {
      result.push_back(std::string(domain_name(found.domain)) +
                       (found.part.empty() ? "" : " " + found.part));
    }
    return result;
  }

  config::EnergySettings settings_;
  DeviceKernel kernel_;
  Profile profile_;
  std::atomic<std::uint64_t> moved_bytes_{0};
};

TEST_F(Trees, OfPowercapTellWhatAZoneIsByItsName) {
  zone("intel-rapl:0", "psys", 5000000000);
  zone("intel-rapl:1", "package-0", 1000000000);
  zone("intel-rapl:1:0", "core", 600000000);
  zone("intel-rapl:1:1", "uncore", 100000000);
  zone("intel-rapl:1:2", "dram", 300000000);
  zone("intel-rapl:2", "package-1", 9000000000);
  zone("intel-rapl-mmio:0", "package-0", 1000000000);
  const auto discovery = discover(discover_powercap);
  EXPECT_THAT(names(*discovery.meter),
              ElementsAre("psys", "package 0", "core 0", "uncore 0", "dram 0", "package 1"));
  EXPECT_EQ(choose_total(discovery.meter->zones()).name, "psys");
  EXPECT_NEAR(discovery.meter->zones()[1].resolution_j, 61e-6, 1e-6);
  EXPECT_NEAR(discovery.meter->zones()[4].resolution_j, 15.3e-6, 1e-6);
}

TEST_F(Trees, OfPowercapTakeMmioWhereThereIsNoOther) {
  zone("intel-rapl-mmio:0", "package-0", 1000000000);
  EXPECT_THAT(names(*discover(discover_powercap).meter), ElementsAre("package 0"));
}

TEST_F(Trees, OfPowercapShowDiesOnceEachButMirrorsOnlyOnce) {
  zone("intel-rapl:0", "package-0-die-0", 1000000000);
  zone("intel-rapl:1", "package-0-die-1",
       1000000042);  // AMD: the same counter, read a moment later
  zone("intel-rapl:2", "package-1-die-0", 2000000000);
  zone("intel-rapl:3", "package-1-die-1", 7000000000);  // Intel: counters of their own
  EXPECT_THAT(names(*discover(discover_powercap).meter),
              ElementsAre("package 0/0", "package 1/0", "package 1/1"));
}

TEST_F(Trees, OfPowercapMayChangeTheirNumbersWhileTheyAreRead) {
  zone("intel-rapl:0", "package-0", 1000000000);
  zone("intel-rapl:1", "package-1", 8000000000);
  auto discovery = discover(discover_powercap);
  remove("/sys/class/powercap");
  kernel_.lose_open_files();
  std::vector<Reading> readings;
  discovery.meter->read(100, readings);
  EXPECT_FALSE(readings[0].count.has_value());
  zone("intel-rapl:0", "psys", 4000000000);
  zone("intel-rapl:1", "package-0", 1000000500);
  zone("intel-rapl:2", "package-1", 8000000500);
  readings.clear();
  discovery.meter->read(102, readings);
  EXPECT_THAT(names(*discovery.meter), ElementsAre("package 0", "package 1"));
  EXPECT_EQ(readings[0].count.value_or(0), 1000000500U);
  EXPECT_EQ(readings[1].count.value_or(0), 8000000500U);
}

TEST_F(Trees, OfHwmonAreReadWhateverNumberAChipHas) {
  write("/sys/class/hwmon/hwmon7/name", "power_meter");
  write("/sys/class/hwmon/hwmon7/power1_average", "420000000");
  write("/sys/class/hwmon/hwmon2/name", "amd_energy");
  write("/sys/class/hwmon/hwmon2/energy1_label", "Ecore000");
  write("/sys/class/hwmon/hwmon2/energy1_input", "5000000");
  write("/sys/class/hwmon/hwmon2/energy2_label", "Esocket0");
  write("/sys/class/hwmon/hwmon2/energy2_input", "500000000");
  write("/sys/class/hwmon/hwmon0/name", "ina231");
  write("/sys/class/hwmon/hwmon0/power1_input", "12000000");
  write("/sys/class/hwmon/hwmon1/name", "nvme");
  write("/sys/class/hwmon/hwmon1/temp1_input", "40000");
  EXPECT_THAT(names(*discover(discover_hwmon).meter),
              UnorderedElementsAre("node", "package 0", "other ina231 power1"));
}

TEST_F(Trees, OfHwmonHaveTheBoardsOfAmdAndNotGraphicsInsideAProcessor) {
  const auto board = [&](const std::string& number, const char* reading) {
    const std::string folder = "/sys/class/hwmon/hwmon" + number + "/";
    write(folder + "name", "amdgpu");
    write(folder + "power1_label", "PPT");
    write(folder + reading, "90000000");
    return folder;
  };
  write(board("1", "power1_average") + "power1_cap", "300000000");
  write(board("2", "power1_input") + "power1_cap", "300000000");
  board("3", "power1_input");
  const auto discovery = discover(discover_hwmon);
  EXPECT_THAT(names(*discovery.meter),
              ElementsAre("gpu amdgpu", "gpu amdgpu#2", "other amdgpu PPT"));
  EXPECT_EQ(discovery.meter->zones()[0].quantity, Quantity::power);
}

TEST_F(Trees, OfPciShowBoardsThatNoMeterTellsOf) {
  const auto device = [&](const std::string& at, const char* pci_class, const char* vendor) {
    write("/sys/bus/pci/devices/" + at + "/class", pci_class);
    write("/sys/bus/pci/devices/" + at + "/vendor", vendor);
  };
  device("0000:01:00.0", "0x030200", "0x10de");
  device("0000:01:00.1", "0x040300", "0x10de");  // its sound
  device("0000:02:00.0", "0x030200", "0x10de");
  device("0000:03:00.0", "0x120000", "0x1002");
  device("0000:04:00.0", "0x030000", "0x1a03");  // the display of the management controller
  std::vector<Zone> zones(2);
  zones[0].source = "powercap intel-rapl:0";
  zones[0].domain = Domain::package;
  zones[1].source = "nvml energy of board 0";
  zones[1].domain = Domain::gpu;
  const auto left_out = boards_left_out(kernel_, settings_.root, zones);
  ASSERT_THAT(left_out, SizeIs(2));
  EXPECT_THAT(left_out[0].source + ": " + left_out[0].why,
              HasSubstr("NVIDIA: 2 seen, of which meters tell of 1"));
  EXPECT_THAT(left_out[1].source + ": " + left_out[1].why,
              HasSubstr("AMD: 1 seen, of which meters tell of 0"));
  zones[0].domain = Domain::node;
  EXPECT_THAT(boards_left_out(kernel_, settings_.root, zones), IsEmpty());
}

TEST_F(Trees, OfHwmonNameTheRailsOfGrace) {
  const char* rails[] = {"Module Power Socket 0", "Grace Power Socket 0", "CPU Power Socket 0",
                         "SysIO Power Socket 0", "Module Power Socket 1"};
  for (int i = 0; i < 5; ++i) {
    const std::string folder = "/sys/class/hwmon/hwmon" + std::to_string(i) + "/";
    write(folder + "name", "power_meter");
    write(folder + "power1_oem_info", rails[i]);
    write(folder + "power1_average", "100000000");
  }
  const auto discovery = discover(discover_hwmon);
  EXPECT_THAT(names(*discovery.meter), ElementsAre("module 0", "socket 0", "package 0",
                                                   "other SysIO Power Socket 0", "module 1"));
  EXPECT_EQ(choose_total(discovery.meter->zones()).zones, (std::vector<std::size_t>{0, 4}));
}

TEST_F(Trees, OfPmCountersNameNodeProcessorMemoryAndBoards) {
  for (const char* file :
       {"energy", "cpu_energy", "memory_energy", "accel0_energy", "accel1_energy"}) {
    write(std::string("/sys/cray/pm_counters/") + file, "6954361 J 1644940393293043 us");
  }
  write("/sys/cray/pm_counters/power", "322 W 1644940393293043 us");
  EXPECT_THAT(names(*discover(discover_pm_counters).meter),
              ElementsAre("gpu accel0", "gpu accel1", "package", "node", "dram"));
}

// A virtual machine of today: the event is there, opens, and is always 0.
TEST_F(Trees, OfPerfMayHaveAPsysThatIsDead) {
  const std::string unit = "/sys/bus/event_source/devices/power/";
  write(unit + "type", "17");
  write(unit + "cpumask", "0");
  write(unit + "events/energy-psys", "event=0x05");
  write(unit + "events/energy-psys.scale", "2.3283064365386962890625e-10");
  kernel_.perf[{5, 0}] = 0;
  auto discovery = discover(discover_perf);
  ASSERT_NE(discovery.meter, nullptr);
  std::vector<std::unique_ptr<Meter>> meters;
  meters.push_back(std::move(discovery.meter));
  Collector collector(std::move(meters), 0.1);
  for (int i = 0; i < 5; ++i) collector.collect(100 + 0.1 * i);
  collector.decide(Collector::Models::always);
  EXPECT_THAT(collector.zones(), IsEmpty());
  ASSERT_THAT(collector.dropped(), SizeIs(1));
  EXPECT_THAT(collector.dropped()[0].why, HasSubstr("stands still at 0"));
}

TEST_F(Trees, OfIpmiWithoutDcmiSaySo) {
  write("/dev/ipmi0", "");
  kernel_.on_ioctl = [](unsigned long, void*) { return -EINVAL; };
  auto discovery = discover(discover_ipmi);
  std::vector<Reading> readings;
  discovery.meter->read(100, readings);
  ASSERT_THAT(readings, SizeIs(1));
  EXPECT_THAT(readings[0].count.error().message, HasSubstr("/dev/ipmi0"));
}

// A sensor that tells once a second, sampled more often.
TEST_F(Trees, OfAReplayTellWhenTheSourceHasTold) {
  settings_.trace = settings_.root + "/run.trace";
  TraceHead head;
  head.period_s = 0.5;
  Zone zone;
  zone.source = "hwmon node";
  zone.update_s = 1;
  head.domains.push_back(zone);
  std::string text = trace_head_line(head);
  for (const auto& [time_s, joules] :
       {std::pair(0.0, 0.0), {0.5, 0.0}, {1.0, 100.0}, {1.5, 100.0}, {2.0, 200.0}, {2.5, 200.0}}) {
    text += "\n" + trace_row_line({time_s, {{time_s, joules, joules / 100}}});
  }
  write("/run.trace", text);
  auto discovery = discover(discover_replay);
  std::vector<Reading> readings;
  discovery.meter->read(100, readings);
  discovery.meter->read(102, readings);
  ASSERT_THAT(readings, SizeIs(3));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(readings[i].time_s, 100.0 + static_cast<double>(i));
    EXPECT_FALSE(readings[i].is_after_gap);
  }
}

TEST_F(Trees, OfAStreamWithoutUnitsAreRefused) {
  settings_.stream = settings_.root + "/rails.csv";
  write("/rails.csv", "time_s,cpu");
  const auto discovery = discover(discover_stream);
  ASSERT_THAT(discovery.obstacles, SizeIs(1));
  EXPECT_THAT(discovery.obstacles[0].why, HasSubstr("column 'cpu' must end in its unit"));
}

TEST_F(Trees, OfAStreamSkipCellsWithoutANumber) {
  const double begin_s = sys::monotonic_s();
  settings_.stream = settings_.root + "/rails.csv";
  write("/rails.csv", "time_s,cpu0_w,cpu1_w,pump_w");
  auto discovery = discover(discover_stream);
  EXPECT_THAT(names(*discovery.meter), ElementsAre("package 0", "package 1", "other pump"));
  const double unix_s = static_cast<double>(sys::unix_time_ns()) / 1e9;
  std::ofstream(settings_.stream, std::ios::app) << std::fixed << unix_s << ",10,n/a\nnonsense\n";
  std::vector<Reading> readings;
  discovery.meter->read(sys::monotonic_s(), readings);
  ASSERT_THAT(readings, SizeIs(1));
  EXPECT_EQ(readings[0].count.value_or(0), 10000000U);
  // Two clocks are compared, and between looking at one and at the other there is as much time as
  // the machine takes.
  const double end_s = sys::monotonic_s();
  EXPECT_GE(readings[0].time_s, begin_s - (end_s - begin_s));
  EXPECT_LE(readings[0].time_s, end_s + (end_s - begin_s));
}

TEST_F(Trees, OfAStreamChangeAsOftenAsItsLinesTell) {
  settings_.stream = settings_.root + "/rails.csv";
  // Returns the interval of a file whose lines are so far apart, and whose values each stand in so
  // many lines.
  const auto told = [&](double apart_s, int lines, int repeats) {
    write("/rails.csv", "time_s,cpu0_w");
    std::ofstream file(settings_.stream, std::ios::app);
    for (int line = 0; line < lines; ++line) {
      const double pause_s = line == lines / 2 ? 3600 : 0;  // the meter was off
      file << std::fixed << 1000 + line * apart_s + pause_s << "," << 100 + line / repeats << "\n";
    }
    file.close();
    return discover(discover_stream).meter->zones()[0].update_s;
  };
  EXPECT_NEAR(told(0.1, 50, 1), 0.1, 1e-5);
  EXPECT_NEAR(told(10, 50, 1), 10, 1e-5);
  EXPECT_NEAR(told(0.1, 200, 5), 0.5, 1e-5);  // it is asked more often than it looks
  EXPECT_EQ(told(0.1, 50, 50), 1);            // nobody can tell
  EXPECT_EQ(told(0.1, 3, 1), 1);
}

TEST_F(Trees, OfAStreamLeaveOutLinesOfAnotherTimeAndSaySo) {
  settings_.stream = settings_.root + "/rails.csv";
  write("/rails.csv", "time_s,cpu0_w");
  auto discovery = discover(discover_stream);
  const double unix_s = static_cast<double>(sys::unix_time_ns()) / 1e9;
  const auto read_with = [&](double off_s) {
    std::ofstream(settings_.stream, std::ios::app) << std::fixed << unix_s + off_s << ",10\n";
    std::vector<Reading> readings;
    discovery.meter->read(sys::monotonic_s(), readings);
    EXPECT_THAT(readings, SizeIs(1));
    return readings.front().count;
  };
  for (const double off_s : {-3600.0, 3600.0}) {
    EXPECT_THAT(read_with(off_s).error().message, HasSubstr("energy.stream_offset_s"));
  }
  EXPECT_EQ(read_with(0).value_or(0), 10000000U);
}

}  // namespace
}  // namespace diapause::energy
