#include "energy/charge.hpp"

#include <algorithm>
#include <utility>

namespace diapause::energy {
namespace {

// A stretch of time in which the same spans are under way.
struct Slice {
  double from_s;
  double to_s;
  std::vector<std::size_t> held_up, waiting, behind;
  std::vector<Amount> used;

  bool is_alone() const { return held_up.empty() && waiting.empty() && behind.empty(); }
  bool is_settled(double until_s) const { return to_s <= until_s; }
};

// At `at_s`, too.
std::vector<Slice> cut(std::span<const Span> spans, double from_s, double to_s, double at_s) {
  std::vector<double> edges{from_s, at_s, to_s};
  for (const Span& span : spans) {
    for (const double edge : {span.from_s, span.to_s}) {
      if (edge > from_s && edge < to_s) edges.push_back(edge);
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  std::vector<Slice> slices;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) slices.push_back({edges[i], edges[i + 1], {}, {}, {}, {}});
  const auto slice_at = [&](double time_s) {
    return static_cast<std::size_t>(std::lower_bound(edges.begin(), edges.end(), time_s) - edges.begin());
  };
  for (std::size_t s = 0; s < spans.size(); ++s) {
    const std::size_t end = slice_at(std::min(spans[s].to_s, to_s));
    for (std::size_t i = slice_at(std::max(spans[s].from_s, from_s)); i < end; ++i) {
      auto& kind = spans[s].beside == Beside::nothing   ? slices[i].held_up
                   : spans[s].beside == Beside::waiting ? slices[i].waiting
                                                        : slices[i].behind;
      kind.push_back(s);
    }
  }
  return slices;
}

Charge nothing_of(std::size_t quantities) {
  return {std::vector<double>(quantities), std::vector<double>(quantities), std::vector<bool>(quantities, true)};
}

// The uncertainty of a reading is that of the ends of a stretch, and does not grow with the cuts in it.
void judge(Charge& charge, const std::vector<Amount>& amounts, double share) {
  for (std::size_t q = 0; q < charge.joules.size(); ++q) {
    charge.uncertainty_j[q] = share * amounts[q].uncertainty_j;
    if (!(amounts[q].covered_s > 0)) charge.is_known[q] = false;
  }
}

void move_unknown(Charge& from, Charge& to) {
  for (std::size_t q = 0; q < from.joules.size(); ++q) {
    if (from.is_known[q]) continue;
    to.joules[q] += std::exchange(from.joules[q], 0);
    from.uncertainty_j[q] = 0;
  }
}

}  // namespace

Charges Charger::charge(std::span<const Span> spans, double from_s, double to_s, const Between& between) {
  Charges charges;
  if (!(to_s > from_s)) return charges;
  const std::vector<Amount> whole = between(from_s, to_s);
  const std::size_t quantities = whole.size();
  alone_.resize(quantities);
  charges.program = charges.whole = nothing_of(quantities);
  charges.spans.assign(spans.size(), nothing_of(quantities));
  if (!whole.empty()) charges.gap_s = whole.back().gap_s;

  double first_s = from_s;
  for (const Span& span : spans) first_s = std::min(first_s, span.from_s);
  std::vector<Slice> slices = cut(spans, first_s, to_s, from_s);
  for (Slice& slice : slices) {
    slice.used = between(slice.from_s, slice.to_s);
    if (!slice.is_alone() || slice.is_settled(from_s)) continue;
    for (std::size_t q = 0; q < quantities; ++q) {
      if (!(slice.used[q].covered_s > 0)) continue;  // of a sum, some parts may be known all the same
      alone_[q].joules += slice.used[q].joules;
      alone_[q].seconds += slice.used[q].covered_s;
    }
  }
  for (const Slice& slice : slices) {
    const bool is_paid_by_program = slice.held_up.empty() && slice.waiting.empty();
    const auto& payers = !slice.held_up.empty() ? slice.held_up : !slice.behind.empty() ? slice.behind : slice.waiting;
    double shares = 0;
    for (const std::size_t payer : payers) shares += spans[payer].share;
    for (std::size_t q = 0; q < quantities; ++q) {
      const Amount& used = slice.used[q];
      const Alone& alone = alone_[q];
      const bool is_unknown = is_paid_by_program && !(alone.seconds > 0);
      double alone_j = 0;
      if (is_paid_by_program && !is_unknown) alone_j = alone.joules / alone.seconds * used.covered_s;
      alone_j = payers.empty() || is_unknown ? used.joules : std::min(alone_j, used.joules);
      // It has paid for what is settled.
      charges.program.joules[q] += slice.is_settled(from_s) ? alone_j - used.joules : alone_j;
      if (!slice.is_settled(from_s)) charges.whole.joules[q] += used.joules;
      for (const std::size_t payer : payers) {
        charges.spans[payer].joules[q] += (used.joules - alone_j) * spans[payer].share / shares;
        if (is_unknown) charges.spans[payer].is_known[q] = false;
      }
    }
  }
  judge(charges.whole, whole, 1);
  judge(charges.program, whole, 1);
  for (std::size_t s = 0; s < spans.size(); ++s) {
    if (!(spans[s].to_s > spans[s].from_s)) continue;  // nothing is used in no time
    judge(charges.spans[s], between(spans[s].from_s, std::min(spans[s].to_s, to_s)), spans[s].share);
    move_unknown(charges.spans[s], charges.program);
  }
  return charges;
}

}  // namespace diapause::energy
