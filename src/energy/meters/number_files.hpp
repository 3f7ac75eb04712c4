// This is shared by meters whose zones are files with one number each.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "energy/meter.hpp"
#include "energy/meters/registry.hpp"
#include "sys/value_file.hpp"

namespace diapause::energy {

struct NumberFile {
  Zone zone;
  std::string path;
};

class NumberFiles final : public Meter {
 public:
  // Returns every file that exists at the moment, with its present path.
  using Search = std::function<std::vector<NumberFile>()>;

  // Opens what `search` finds. A file that cannot be read becomes an obstacle; `help` is added
  // where permission is missing. Where a file fails later, it searches again, at most once a
  // second, and goes on with the file of the same domain and part, wherever it is now. Files of
  // zones whose update_s is a second or more are read once in that time.
  static Discovery open(std::string_view name, const Environment& environment, Search search,
                        std::string_view help);

  std::string_view name() const override { return name_; }
  const std::vector<Zone>& zones() const override { return zones_; }
  void read(double now_s, std::vector<Reading>& out) override;

 private:
  NumberFiles(std::string_view name, sys::Kernel& kernel, Search search)
      : name_(name), kernel_(kernel), search_(std::move(search)) {}
  void reopen(double now_s);

  std::string_view name_;
  sys::Kernel& kernel_;
  Search search_;
  std::vector<Zone> zones_;
  std::vector<sys::ValueFile> files_;  // one for each zone
  std::vector<double> read_s_;         // when each was read last
  double searched_s_ = -1e9;
};

}  // namespace diapause::energy
