#include "energy/charge.hpp"

#include <algorithm>

namespace diapause::energy {
namespace {

// A stretch of time in which the same spans are under way.
struct Slice {
  double from_s;
  double to_s;
  std::vector<std::size_t> held_up, waiting, behind;
  std::vector<Amount> used;

  bool is_alone() const { return held_up.empty() && waiting.empty() && behind.empty(); }
};

std::vector<Slice> cut(std::span<const Span> spans, double from_s, double to_s) {
  std::vector<double> edges{from_s, to_s};
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

Charge nothing_of(std::size_t quantities) { return {std::vector<double>(quantities), std::vector<double>(quantities)}; }

// The uncertainty of a reading is that of the ends of a stretch, and does not grow with the cuts in it.
void set_uncertainty(Charge& charge, const std::vector<Amount>& amounts, double share) {
  for (std::size_t q = 0; q < amounts.size(); ++q) charge.uncertainty_j[q] = share * amounts[q].uncertainty_j;
}

}  // namespace

Charges Charger::charge(std::span<const Span> spans, double from_s, double to_s, const Between& between) {
  Charges charges;
  if (!(to_s > from_s)) return charges;
  const std::vector<Amount> whole = between(from_s, to_s);
  const std::size_t quantities = whole.size();
  alone_j_.resize(quantities);
  charges.program = charges.whole = nothing_of(quantities);
  charges.spans.assign(spans.size(), nothing_of(quantities));
  if (!whole.empty()) charges.gap_s = whole.back().gap_s;

  std::vector<Slice> slices = cut(spans, from_s, to_s);
  for (Slice& slice : slices) {
    slice.used = between(slice.from_s, slice.to_s);
    if (!slice.is_alone()) continue;
    alone_s_ += slice.used.empty() ? 0 : slice.used.back().covered_s;
    for (std::size_t q = 0; q < quantities; ++q) alone_j_[q] += slice.used[q].joules;
  }
  for (const Slice& slice : slices) {
    const bool is_paid_by_program = slice.held_up.empty() && slice.waiting.empty();
    const auto& payers = !slice.held_up.empty() ? slice.held_up : !slice.behind.empty() ? slice.behind : slice.waiting;
    double shares = 0;
    for (const std::size_t payer : payers) shares += spans[payer].share;
    for (std::size_t q = 0; q < quantities; ++q) {
      const Amount& used = slice.used[q];
      double alone_j = 0;
      if (is_paid_by_program) alone_j = alone_s_ > 0 ? alone_j_[q] / alone_s_ * used.covered_s : used.joules;
      alone_j = payers.empty() ? used.joules : std::min(alone_j, used.joules);
      charges.whole.joules[q] += used.joules;
      charges.program.joules[q] += alone_j;
      for (const std::size_t payer : payers) {
        charges.spans[payer].joules[q] += (used.joules - alone_j) * spans[payer].share / shares;
      }
    }
    for (const std::size_t payer : payers) {
      if (is_paid_by_program && alone_s_ <= 0) charges.spans[payer].is_known = false;
    }
  }
  set_uncertainty(charges.whole, whole, 1);
  set_uncertainty(charges.program, whole, 1);
  for (std::size_t s = 0; s < spans.size(); ++s) {
    const double begin_s = std::max(spans[s].from_s, from_s);
    const double end_s = std::min(spans[s].to_s, to_s);
    if (end_s > begin_s) set_uncertainty(charges.spans[s], between(begin_s, end_s), spans[s].share);
  }
  return charges;
}

}  // namespace diapause::energy
