#include "cli/vigil.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/collection.hpp"
#include "energy/ledger.hpp"
#include "sys/supervisor.hpp"
#include "sys/tasks.hpp"

namespace diapause::cli {
namespace {

constexpr double kBeforeKilling_s = 5;  // between SIGTERM and SIGKILL

bool is_launcher(const std::string& program) {
  constexpr const char* kLaunchers[] = {"mpirun",  "mpiexec", "mpiexec.hydra", "mpirun_rsh",
                                        "orterun", "prterun", "prun",          "srun",
                                        "jsrun",   "aprun"};
  return std::find(std::begin(kLaunchers), std::end(kLaunchers), program) != std::end(kLaunchers);
}

}  // namespace

std::vector<LauncherVigil::Order> LauncherVigil::look(std::int64_t leader, double now_s) {
  std::vector<Order> orders;
  if (linger_s_ <= 0 || leader <= 0) return orders;
  std::vector<std::int64_t> waiting = {leader};
  while (!waiting.empty()) {
    const std::int64_t process = waiting.back();
    waiting.pop_back();
    const std::vector<std::int64_t> children = sys::living_children(sys::real_kernel(), process);
    waiting.insert(waiting.end(), children.begin(), children.end());
    const std::string name = sys::program_name(sys::real_kernel(), process);
    if (!is_launcher(name)) continue;
    if (const auto order = judge(process, name, !children.empty(), now_s)) orders.push_back(*order);
  }
  return orders;
}

std::optional<LauncherVigil::Order> LauncherVigil::judge(std::int64_t process,
                                                         const std::string& name, bool has_children,
                                                         double now_s) {
  if (has_children) {
    had_children_.insert(process);
    alone_since_s_.erase(process);
    return std::nullopt;
  }
  // It has not begun, or its children are on other machines.
  if (!had_children_.contains(process)) return std::nullopt;
  const double since_s = alone_since_s_.emplace(process, now_s).first->second;
  if (now_s - since_s < linger_s_) return std::nullopt;
  const auto [told, is_first] = told_s_.emplace(process, now_s);
  if (is_first) return Order{process, name, SIGTERM};
  if (now_s - told->second < kBeforeKilling_s) return std::nullopt;
  return Order{process, name, SIGKILL};
}

bool ProgressVigil::has_stalled(double now_s) {
  // This is frequent enough, and no burden for a parallel file system.
  constexpr double kLooksPerStall = 10;
  if (stall_s_ <= 0) return false;
  if (last_ && now_s - looked_s_ < stall_s_ / kLooksPerStall) return false;
  looked_s_ = now_s;
  std::optional<std::string> now = footprint();
  // The time in which nobody could look says nothing about the command.
  if (!now || !last_ || *last_ != *now) {
    last_ = std::move(now);
    changed_s_ = now_s;
  }
  return now_s - changed_s_ >= stall_s_;
}

std::optional<std::string> ProgressVigil::footprint() const {
  const auto collection = collect(places_);
  if (!collection) return std::nullopt;
  std::string text;
  for (const store::SurveyedPlace& place : collection->places) {
    text += place.directory.path();
    const auto ledger = place.directory.open_file(energy::Ledger::kFileName, sys::Access::read);
    if (ledger) text += fmt::format(" {}", ledger->size().value_or(0));
    for (const store::FoundVersion& found : place.versions) {
      text += fmt::format(" {}.{}:{}", found.id.number, found.id.commit.hex(), found.images.size());
    }
  }
  return text;
}

}  // namespace diapause::cli
