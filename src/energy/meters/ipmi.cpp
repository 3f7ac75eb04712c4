// Reads the power of the whole node from its management controller, by "Get Power Reading" of
// IPMI's data centre extension (DCMI). Answers take long and the controllers are slow, so one
// question is asked every two seconds.
#include "sys/ipmi.hpp"

#include <array>

#include "energy/meters/registry.hpp"

namespace diapause::energy {
namespace {

constexpr const char* kDevice = "/dev/ipmi0";
constexpr std::string_view kIpmiHelp =
    "Only root may use it: `chmod a+rw` it as root, or let a udev rule do so at each boot";
constexpr double kAskEachS = 2;
constexpr double kWaitS = 10;  // after this time the answer is taken for lost

constexpr std::uint8_t kGroupExtension = 0x2c;
constexpr std::uint8_t kGetPowerReading = 0x02;
constexpr std::uint8_t kDcmi = 0xdc;
constexpr std::array<std::uint8_t, 4> kSystemPower = {kDcmi, 0x01, 0x00, 0x00};
// The answer holds a completion code, the DCMI id, watts now, least, most and mean (2 bytes each),
// a time (4), a period (4), and a state.
constexpr std::size_t kAnswerBytes = 18;
constexpr std::uint8_t kIsMeasured = 0x40;

Result<std::uint64_t> watts_in(const std::vector<std::uint8_t>& data) {
  if (!data.empty() && data[0] != 0) {
    return fail(Code::io, "the management controller refuses Get Power Reading with code " +
                              std::to_string(data[0]) + ": it has no DCMI power management");
  }
  if (data.size() < kAnswerBytes || data[1] != kDcmi)
    return fail(Code::corrupt, "the answer is no power reading");
  if ((data[kAnswerBytes - 1] & kIsMeasured) == 0)
    return fail(Code::io, "power measurement is switched off there");
  return static_cast<std::uint64_t>(data[2] + 256 * data[3]);
}

class Ipmi final : public Meter {
 public:
  explicit Ipmi(sys::IpmiDevice device) : device_(std::move(device)) {
    Zone zone;
    zone.source = "ipmi DCMI power reading";
    zone.domain = Domain::node;
    zone.quantity = Quantity::power;
    zone.unit = 1;
    zone.resolution_j = kAskEachS;  // steps of 1 W
    zone.update_s = kAskEachS;
    zones_.push_back(std::move(zone));
  }

  std::string_view name() const override { return "ipmi"; }
  const std::vector<Zone>& zones() const override { return zones_; }

  void read(double now_s, std::vector<Reading>& out) override {
    if (is_waiting_) take(now_s, out);
    const bool is_lost = is_waiting_ && now_s > asked_s_ + kWaitS;
    if (is_lost)
      out.push_back({0, now_s, fail(Code::timeout, "the management controller does not answer")});
    if (is_lost || (!is_waiting_ && now_s >= asked_s_ + kAskEachS)) ask(now_s, out);
  }

 private:
  void ask(double now_s, std::vector<Reading>& out) {
    asked_s_ = now_s;
    const Status sent = device_.send(kGroupExtension, kGetPowerReading, kSystemPower, ++id_);
    is_waiting_ = sent.has_value();
    if (!sent) out.push_back({0, now_s, fail(sent.error())});
  }

  void take(double now_s, std::vector<Reading>& out) {
    auto answer = device_.receive();
    if (!answer) {
      is_waiting_ = false;
      out.push_back({0, now_s, fail(answer.error())});
    } else if (*answer && (*answer)->id == id_) {
      // Other answers are late ones to questions that were given up.
      is_waiting_ = false;
      out.push_back({0, now_s, watts_in((*answer)->data)});
    }
  }

  sys::IpmiDevice device_;
  std::vector<Zone> zones_;
  bool is_waiting_ = false;
  double asked_s_ = -kAskEachS;
  long id_ = 0;
};

}  // namespace

Discovery discover_ipmi(const Environment& environment) {
  auto device = sys::IpmiDevice::open(environment.kernel, environment.path(kDevice));
  if (device) return {std::make_unique<Ipmi>(std::move(*device)), {}};
  if (device.error().code == Code::not_found) return {};
  std::string why = device.error().message;
  if (device.error().code == Code::denied) why += ". " + std::string(kIpmiHelp);
  return {nullptr, {{"ipmi", std::move(why)}}};
}

}  // namespace diapause::energy
