#include "energy/meters/number_files.hpp"

namespace diapause::energy {
namespace {

constexpr double kSearchAgainS = 1;
constexpr double kSlowS = 1;

std::string with_help(const Error& error, std::string_view help) {
  return error.code == Code::denied ? error.message + ". " + std::string(help) : error.message;
}

}  // namespace

Discovery NumberFiles::open(std::string_view name, const Environment& environment, Search search,
                            std::string_view help) {
  std::unique_ptr<NumberFiles> meter(new NumberFiles(name, environment.kernel, std::move(search)));
  Discovery discovery;
  for (NumberFile& found : meter->search_()) {
    auto file = sys::ValueFile::open(environment.kernel, found.path);
    const auto number = file ? file->number() : tl::unexpected(file.error());
    if (!number) {
      discovery.obstacles.push_back({found.zone.source, with_help(number.error(), help)});
      continue;
    }
    meter->zones_.push_back(std::move(found.zone));
    meter->files_.push_back(std::move(*file));
  }
  meter->read_s_.assign(meter->zones_.size(), -1e9);
  if (!meter->zones_.empty()) discovery.meter = std::move(meter);
  return discovery;
}

void NumberFiles::read(double now_s, std::vector<Reading>& out) {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (zones_[i].update_s >= kSlowS && now_s < read_s_[i] + zones_[i].update_s) continue;
    read_s_[i] = now_s;
    auto count = files_[i].number();
    if (!count) {
      reopen(now_s);
      count = files_[i].number();
    }
    out.push_back({i, now_s, std::move(count)});
  }
}

void NumberFiles::reopen(double now_s) {
  if (now_s < searched_s_ + kSearchAgainS) return;
  searched_s_ = now_s;
  for (const NumberFile& found : search_()) {
    for (std::size_t i = 0; i < zones_.size(); ++i) {
      if (zones_[i].domain != found.zone.domain || zones_[i].part != found.zone.part) continue;
      if (auto file = sys::ValueFile::open(kernel_, found.path)) files_[i] = std::move(*file);
    }
  }
}

}  // namespace diapause::energy
