// Reads schedules such as "ckp(3,5,7,11)/e1".
#include <fmt/core.h>

#include <array>
#include <charconv>

#include "config/keys.hpp"

namespace diapause::config {
namespace {

// Reads from left to right. Spaces may stand between any two parts.
class Reader {
 public:
  explicit Reader(const std::string& text)
      : text_(text), at_(text.data()), end_(text.data() + text.size()) {}

  Status expect(std::string_view part) {
    skip_spaces();
    if (!std::string_view(at_, end_).starts_with(part))
      return wrong(fmt::format("\"{}\" was expected", part));
    at_ += part.size();
    return {};
  }

  template <class T>
  Result<T> number(const std::string& what) {
    skip_spaces();
    T value{};
    const auto [end, error] = std::from_chars(at_, end_, value);
    if (error != std::errc()) return wrong(what + " was expected");
    at_ = end;
    return value;
  }

  bool at_end() {
    skip_spaces();
    return at_ == end_;
  }

  tl::unexpected<Error> wrong(const std::string& why) const {
    return fail(
        Code::config,
        fmt::format("schedule {}: {} at character {}; a schedule is \"auto\", or ckp(a,b,c,d), the "
                    "minutes between checkpoints of level 1 to 4, 0 for never, and may end in /eN, "
                    "the bit to flip",
                    quoted(text_), why, at_ - text_.data() + 1));
  }

 private:
  void skip_spaces() {
    while (at_ != end_ && *at_ == ' ') ++at_;
  }

  const std::string& text_;
  const char* at_;
  const char* end_;
};

}  // namespace

Status apply_schedule(const std::string& text, double minute_s, Settings& settings) {
  settings.auto_schedule.is_on = text == kAutoSchedule;
  if (settings.auto_schedule.is_on) return {};
  Reader reader(text);
  std::array<double, 5> seconds{};
  DIAPAUSE_TRY(reader.expect("ckp"));
  for (std::size_t level = 1; level <= 4; ++level) {
    DIAPAUSE_TRY(reader.expect(level == 1 ? "(" : ","));
    DIAPAUSE_TRY_ASSIGN(const double minutes, reader.number<double>("a number of minutes"));
    seconds[level] = minutes * minute_s;
    // The condition is written so that NaN is out of range.
    if (!(minutes >= 0 && seconds[level] <= kMostSeconds)) {
      return reader.wrong(fmt::format(
          "an interval from 0 to {:.0f} s was expected before what comes", kMostSeconds));
    }
  }
  DIAPAUSE_TRY(reader.expect(")"));
  std::optional<std::uint32_t> bit;
  if (!reader.at_end()) {
    DIAPAUSE_TRY(reader.expect("/e"));
    DIAPAUSE_TRY_ASSIGN(bit, reader.number<std::uint32_t>("the number of a bit"));
    if (!reader.at_end()) return reader.wrong("the end was expected");
  }
  for (int level = 1; level <= 4; ++level) {
    settings.level(level).interval = {seconds[static_cast<std::size_t>(level)], 0};
  }
  if (bit) settings.flips.bit = bit;
  return {};
}

}  // namespace diapause::config
