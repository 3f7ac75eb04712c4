#include "simulate/failures.hpp"

#include <algorithm>
#include <cmath>

namespace diapause::simulate {

Failures::Failures(const std::vector<FailureClass>& classes, std::uint32_t nodes,
                   std::uint64_t seed)
    : nodes_(nodes) {
  Random seeds(seed);
  for (const FailureClass& one : classes) {
    const std::uint64_t each = std::max<std::uint32_t>(one.nodes_each, 1);
    Source source{one, (nodes + each - 1) / each};
    source.random = Random(seeds.next());
    source.hazard = one.law.cumulative_hazard(one.age_s);
    sources_.push_back(std::move(source));
    if (one.law.mean_s > 0 && std::isfinite(one.law.mean_s)) plan_fresh(sources_.size() - 1);
  }
}

void Failures::plan_fresh(std::size_t index) {
  Source& source = sources_[index];
  // Memoryless units need not be told apart: all of them are always as good as new.
  const bool forgets = source.of.law.kind == model::LawKind::exponential;
  const std::uint64_t fresh = forgets ? source.units : source.units - source.failed.size();
  if (fresh == 0) return;
  source.hazard += source.random.exponential() / static_cast<double>(fresh);
  const double time_s = source.of.law.age_at(source.hazard) - source.of.age_s;
  if (std::isfinite(time_s)) due_.push({time_s, index, kFresh});
}

std::uint64_t Failures::draw_fresh(Source& source) {
  std::uint64_t unit = source.random.below(source.units);
  if (source.of.law.kind == model::LawKind::exponential) return unit;
  while (!source.failed.insert(unit).second) {
    unit = source.random.below(source.units);
    // When few are left, the next one in order is taken.
    if (source.failed.size() * 8 > source.units * 7) {
      while (source.failed.contains(unit)) unit = (unit + 1) % source.units;
    }
  }
  return unit;
}

Failure Failures::next() {
  if (due_.empty()) return {};
  const Due due = due_.top();
  due_.pop();
  Source& source = sources_[due.source];
  std::uint64_t unit = due.unit;
  if (unit == kFresh) {
    unit = draw_fresh(source);
    plan_fresh(due.source);
  }
  if (source.of.law.kind != model::LawKind::exponential) {
    due_.push({due.time_s + source.of.law.age_at(source.random.exponential()), due.source, unit});
  }
  const auto each = static_cast<std::uint32_t>(std::max<std::uint32_t>(source.of.nodes_each, 1));
  const auto first = static_cast<std::uint32_t>(unit * each);
  return {due.time_s, due.source, first, std::min(each, nodes_ - first)};
}

std::size_t Failures::remembered() const {
  std::size_t count = 0;
  for (const Source& source : sources_) count += source.failed.size();
  return count;
}

}  // namespace diapause::simulate
