// Decides who used the energy of a node: the program, or which phase of which checkpoint.
// docs/energy-account.md tells the rule with an example. The code is pure.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "energy/series.hpp"

namespace diapause::energy {

// Says what the program does while a phase goes on.
enum class Beside {
  nothing,  // it is held up by the phase
  waiting,  // it is held up until phases behind it are done
  program   // it computes, and the phase goes on behind it
};

// Times are sys::monotonic_s().
struct Span {
  double from_s = 0;
  double to_s = 0;
  Beside beside = Beside::nothing;
  double share = 1;  // part of its time, where several take turns within one stretch
  // It is given again to a later call, and charged there. In this call the program pays for it.
  bool is_charged_later = false;
};

// Each vector has an entry for every domain, and last one for their total.
struct Charge {
  std::vector<double> joules;    // 0 where unknown: the program is then charged with them
  std::vector<Uncertainty> off;  // how far the joules may be off, either way
  // Two times are unknown: one about which no source knows anything, and a phase beside the program
  // before it was known what the program uses alone.
  std::vector<bool> is_known;
};

struct Charges {
  std::vector<Charge> spans;  // in the order of the spans
  Charge program;
  Charge whole;      // all others add up to this
  double gap_s = 0;  // seconds about which no source knows anything
  // The beginning and the end of the whole's time add so much to its sampling errors (Amount).
  // There is an entry for every domain, and the last one is for their total. The error at the end
  // cancels with that of the next call at its beginning.
  std::vector<std::array<double, 2>> ends_off_j;
};

// All calls have the same quantities, in the same order.
class Charger {
 public:
  using Between = std::function<std::vector<Amount>(double from_s, double to_s)>;

  // Divides what was used from `from_s` to `to_s` among the spans, as far as they lie before its
  // end, and the program:
  //   * While a phase holds the program up, it has all of it. If there are several phases, each has
  //     a part as large as its share.
  //   * While the program waits for phases behind it, they have all of it. If there are none, the
  //     wait has it.
  //   * While a phase goes on beside the program, it has what is more than the program uses alone,
  //     and the program has the rest. Of several phases, each has a part as large as its share. A
  //     phase has less than nothing where less is used than the program uses alone: were it made 0,
  //     phases that use nothing would on the mean be told to use something.
  // What the program uses alone is its mean power over all times, so far and in this call, at which
  // no phase went on. The uncertainty of the attribution is how far its mean over as long a time
  // has been off that. If sources that tell late have corrected the energy of earlier calls since,
  // the difference is the program's now. A span that has begun before `from_s` was not known of
  // when that time was divided: the program, which has paid for it, gets that back.
  Charges charge(std::span<const Span> spans, double from_s, double to_s, const Between& between);

 private:
  // Windows of time are as long as a power of two of seconds, from 2^kShortest to 2^kLongest.
  static constexpr int kShortest = -5, kLongest = 3;
  static constexpr std::size_t kLengths = kLongest - kShortest + 1;

  // A piece of the time in which the program was alone.
  struct Piece {
    double joules = 0;
    double seconds = 0;
  };
  // This is what the program has used alone so far, and in what time. The spread of its power
  // depends on the time that is looked at: the mean over a second hides what goes up and down
  // within it.
  struct Alone {
    double joules = 0;
    double seconds = 0;
    std::deque<Piece> pieces;                            // the last ones
    std::array<std::deque<double>, kLengths> windows_w;  // mean powers of the last windows

    void add(const Piece& piece);
    void add_window(std::size_t length, double watts);
    // Returns how far the mean power over so many seconds may be off that over all; nullopt if too
    // little was seen to tell.
    std::optional<double> off_w(double seconds) const;

   private:
    std::optional<double> spread_of(std::span<const double> watts) const;
    std::vector<double> blocks_w(double length_s) const;
  };
  // This is what the calls so far have told of their time together.
  struct Told {
    double from_s = 0, to_s = 0;
    std::vector<double> joules;
  };
  void learn_alone(double from_s, double to_s, const Between& between);
  void learn_windows(double from_s, double to_s, const Between& between);
  void put_right(double from_s, double to_s, Charges& charges, const Between& between);

  std::vector<Alone> alone_;  // by quantity
  std::uint64_t learnt_pieces_ = 0;
  std::optional<Told> told_;
};

}  // namespace diapause::energy
