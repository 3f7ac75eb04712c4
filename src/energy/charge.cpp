#include "energy/charge.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace diapause::energy {
namespace {

constexpr double kPieceS = 1;  // length of a piece of the time in which the program is alone
constexpr double kMostPiecesOfSlice = 64;  // a longer slice is cut into so many pieces
constexpr std::size_t kMostPieces = 512;
constexpr std::size_t kMostWindows = 96;  // kept for each length
constexpr std::size_t kLeastBlocks = 4;   // fewer do not tell how far others may be off
constexpr double kSpread = 3;             // standard deviations that are taken for a bound
constexpr double kFew = 4;                // additional ones, where few values were seen

// A stretch of time in which the same spans are under way.
struct Slice {
  double from_s;
  double to_s;
  std::vector<std::size_t> held_up, waiting, behind;
  std::vector<Amount> used = {};
  bool is_charged_later = false;  // some span of it is

  bool is_alone() const {
    return held_up.empty() && waiting.empty() && behind.empty() && !is_charged_later;
  }
  bool is_paid_for(double until_s) const { return to_s <= until_s; }
};

// Returns the slices between the two times. `at_s` is a boundary, too.
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
  for (std::size_t i = 0; i + 1 < edges.size(); ++i)
    slices.push_back({edges[i], edges[i + 1], {}, {}, {}});
  const auto slice_at = [&](double time_s) {
    return static_cast<std::size_t>(std::lower_bound(edges.begin(), edges.end(), time_s) -
                                    edges.begin());
  };
  for (std::size_t s = 0; s < spans.size(); ++s) {
    const std::size_t end = slice_at(std::min(spans[s].to_s, to_s));
    for (std::size_t i = slice_at(std::max(spans[s].from_s, from_s)); i < end; ++i) {
      slices[i].is_charged_later = slices[i].is_charged_later || spans[s].is_charged_later;
      if (spans[s].is_charged_later) continue;
      auto& kind = spans[s].beside == Beside::nothing   ? slices[i].held_up
                   : spans[s].beside == Beside::waiting ? slices[i].waiting
                                                        : slices[i].behind;
      kind.push_back(s);
    }
  }
  return slices;
}

Charge nothing_of(std::size_t quantities) {
  return {std::vector<double>(quantities), std::vector<Uncertainty>(quantities),
          std::vector<bool>(quantities, true)};
}

// The error of sampling arises at the ends of a stretch and does not grow with the cuts in it. A
// source is off by the same share in all that it tells. `read` is what was read for the stretch,
// `whole` for all the time.
void judge(Charge& charge, const std::vector<Amount>& read, const std::vector<Amount>& whole,
           double share) {
  for (std::size_t q = 0; q < charge.joules.size(); ++q) {
    charge.off[q].sampling_j = share * read[q].off.sampling_j;
    charge.off[q].is_bounded = whole[q].off.is_bounded;
    if (whole[q].joules > 0) {
      charge.off[q].sensor_j = whole[q].off.sensor_j / whole[q].joules * std::abs(charge.joules[q]);
    }
    if (!(read[q].covered_s > 0)) charge.is_known[q] = false;
  }
}

void move_unknown(Charge& from, Charge& to) {
  for (std::size_t q = 0; q < from.joules.size(); ++q) {
    if (from.is_known[q]) continue;
    to.joules[q] += std::exchange(from.joules[q], 0);
    from.off[q] = {};
  }
}

}  // namespace

void Charger::Alone::add(const Piece& piece) {
  joules += piece.joules;
  seconds += piece.seconds;
  pieces.push_back(piece);
  if (pieces.size() > kMostPieces) pieces.pop_front();
}

void Charger::Alone::add_window(std::size_t length, double watts) {
  windows_w[length].push_back(watts);
  if (windows_w[length].size() > kMostWindows) windows_w[length].pop_front();
}

// Returns how far another mean power may be off the mean over all. That is several standard
// deviations, more where few values were seen, and at least as far as any of them was off.
std::optional<double> Charger::Alone::spread_of(std::span<const double> watts) const {
  if (watts.size() < kLeastBlocks) return std::nullopt;
  const double mean_w = joules / seconds;
  double squares = 0, farthest_w = 0;
  for (const double one : watts) {
    squares += (one - mean_w) * (one - mean_w);
    farthest_w = std::max(farthest_w, std::abs(one - mean_w));
  }
  const double others = static_cast<double>(watts.size()) - 1;
  const double deviation_w = std::sqrt(squares / others * (1 + 1 / (others + 1)));
  return std::max(farthest_w, kSpread * (1 + kFew / others) * deviation_w);
}

std::vector<double> Charger::Alone::blocks_w(double length_s) const {
  std::vector<double> watts;
  Piece block;
  for (const Piece& piece : pieces) {
    block.joules += piece.joules;
    block.seconds += piece.seconds;
    if (block.seconds < length_s * (1 - 1e-9)) continue;
    watts.push_back(block.joules / block.seconds);
    block = {};
  }
  return watts;
}

// The means over stretches of the same length decide. Where there are too few of them, shorter ones
// do, which vary more.
std::optional<double> Charger::Alone::off_w(double wanted_s) const {
  const double longest_s = std::ldexp(1, kLongest);
  for (double length_s = wanted_s; length_s > longest_s; length_s /= 2) {
    if (const auto off = spread_of(blocks_w(length_s))) return off;
  }
  for (std::size_t length = kLengths; length-- > 0;) {
    if (length > 0 && std::ldexp(1, kShortest + static_cast<int>(length)) > wanted_s) continue;
    const auto& windows = windows_w[length];
    if (const auto off = spread_of(std::vector(windows.begin(), windows.end()))) return off;
  }
  return std::nullopt;
}

void Charger::learn_alone(double from_s, double to_s, const Between& between) {
  const double pieces = std::clamp(std::floor((to_s - from_s) / kPieceS), 1.0, kMostPiecesOfSlice);
  for (double i = 0; i < pieces; ++i) {
    const double begin_s = std::lerp(from_s, to_s, i / pieces);
    const double end_s = std::lerp(from_s, to_s, (i + 1) / pieces);
    const std::vector<Amount> used = between(begin_s, end_s);
    for (std::size_t q = 0; q < used.size(); ++q) {
      if (used[q].covered_s > 0) alone_[q].add({used[q].joules, used[q].covered_s});
    }
    learn_windows(begin_s, to_s, between);
  }
}

// Looks at windows of every third length from a piece on, in turn. Their beginnings in the piece
// have no rhythm, and they are up to a third shorter than their length says, because a program may
// have a rhythm that a fixed length would hide.
void Charger::learn_windows(double from_s, double to_s, const Between& between) {
  constexpr std::size_t kTurns = 3;
  constexpr double kGoldenRatio = 0.6180339887498949, kRootOf2 = 1.4142135623730951;
  const std::uint64_t turn = learnt_pieces_++;
  const double place = std::fmod(static_cast<double>(turn) * kGoldenRatio, 1);
  const double shorter = 1 - std::fmod(static_cast<double>(turn) * kRootOf2, 1) / 3;
  for (std::size_t length = turn % kTurns; length < kLengths; length += kTurns) {
    const double seconds = std::ldexp(shorter, kShortest + static_cast<int>(length));
    const double room_s = std::min(to_s - from_s, kPieceS + seconds) - seconds;
    if (room_s < 0) continue;
    const double begin_s = from_s + place * room_s;
    const std::vector<Amount> used = between(begin_s, begin_s + seconds);
    for (std::size_t q = 0; q < used.size(); ++q) {
      if (used[q].covered_s > 0) alone_[q].add_window(length, used[q].joules / used[q].covered_s);
    }
  }
}

void Charger::put_right(double from_s, double to_s, Charges& charges, const Between& between) {
  std::vector<double>& whole = charges.whole.joules;
  if (!told_ || told_->to_s != from_s)
    told_ = Told{from_s, from_s, std::vector<double>(whole.size())};
  const std::vector<Amount> now = between(told_->from_s, told_->to_s);
  for (std::size_t q = 0; q < now.size(); ++q) {
    if (!(now[q].covered_s > 0)) continue;
    const double more_j = now[q].joules - told_->joules[q];
    whole[q] += more_j;
    charges.program.joules[q] += more_j;
  }
  for (std::size_t q = 0; q < whole.size(); ++q) told_->joules[q] += whole[q];
  told_->to_s = to_s;
}

Charges Charger::charge(std::span<const Span> spans, double from_s, double to_s,
                        const Between& between) {
  Charges charges;
  if (!(to_s > from_s)) return charges;
  const std::vector<Amount> whole = between(from_s, to_s);
  const std::size_t quantities = whole.size();
  alone_.resize(quantities);
  charges.program = charges.whole = nothing_of(quantities);
  charges.spans.assign(spans.size(), nothing_of(quantities));
  if (!whole.empty()) charges.gap_s = whole.back().gap_s;
  for (const Amount& one : whole) charges.ends_off_j.push_back({one.begin_off_j, one.end_off_j});

  double first_s = from_s;
  for (const Span& span : spans) {
    if (!span.is_charged_later) first_s = std::min(first_s, span.from_s);
  }
  std::vector<Slice> slices = cut(spans, first_s, to_s, from_s);
  for (Slice& slice : slices) {
    slice.used = between(slice.from_s, slice.to_s);
    if (slice.is_alone() && !slice.is_paid_for(from_s))
      learn_alone(slice.from_s, slice.to_s, between);
  }
  for (const Slice& slice : slices) {
    const bool is_paid_by_program = slice.held_up.empty() && slice.waiting.empty();
    const auto& payers = !slice.held_up.empty()  ? slice.held_up
                         : !slice.behind.empty() ? slice.behind
                                                 : slice.waiting;
    double shares = 0;
    for (const std::size_t payer : payers) shares += spans[payer].share;
    for (std::size_t q = 0; q < quantities; ++q) {
      const Amount& used = slice.used[q];
      const Alone& alone = alone_[q];
      const bool is_unknown = is_paid_by_program && !(alone.seconds > 0);
      double alone_j = 0;
      if (is_paid_by_program && !is_unknown)
        alone_j = alone.joules / alone.seconds * used.covered_s;
      if (payers.empty() || is_unknown) alone_j = used.joules;
      double off_j = 0;
      if (is_paid_by_program && !is_unknown && !payers.empty()) {
        const auto off_w = alone.off_w(used.covered_s);
        off_j = off_w ? *off_w * used.covered_s : std::max(used.joules, alone_j);
        charges.program.off[q].attribution_j += off_j;
      }
      // Energy that was charged before is paid for.
      charges.program.joules[q] += slice.is_paid_for(from_s) ? alone_j - used.joules : alone_j;
      if (!slice.is_paid_for(from_s)) charges.whole.joules[q] += used.joules;
      for (const std::size_t payer : payers) {
        charges.spans[payer].joules[q] += (used.joules - alone_j) * spans[payer].share / shares;
        charges.spans[payer].off[q].attribution_j += off_j * spans[payer].share / shares;
        if (is_unknown) charges.spans[payer].is_known[q] = false;
      }
    }
  }
  put_right(from_s, to_s, charges, between);
  judge(charges.whole, whole, whole, 1);
  judge(charges.program, whole, whole, 1);
  for (std::size_t s = 0; s < spans.size(); ++s) {
    if (!(spans[s].to_s > spans[s].from_s)) continue;  // nothing is used in no time
    judge(charges.spans[s], between(spans[s].from_s, std::min(spans[s].to_s, to_s)), whole,
          spans[s].share);
    move_unknown(charges.spans[s], charges.program);
  }
  return charges;
}

}  // namespace diapause::energy
