// Decides from pairs of noisy measurements whether something saves joules. The class is pure.
//
// It is a sequential test: it looks at the pairs after 4, 8 and 16 of them, each time with
// Student's interval for an error of 1/3 %, so that over all looks it claims a saving that does not
// exist in fewer than 1 of 100 cases.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace diapause::policy {

class PairedTrials {
 public:
  static constexpr std::size_t kFirstLook = 4;
  static constexpr std::size_t kMost = 16;

  enum class Answer {
    open,      // more pairs will decide
    saves,     // the interval of the saving excludes zero
    does_not,  // the interval excludes a saving of 1 %, the least that is worth a change
    cannot_be_told
  };

  // Adds what the two of a pair took, in the same unit. The order within the pairs should
  // alternate, so that drift favours neither.
  void add(double without, double with);
  std::size_t pairs() const { return pairs_.size(); }
  Answer answer() const { return answer_; }
  void forget();

 private:
  struct Pair {
    double without, with;
  };
  Answer look() const;

  std::vector<Pair> pairs_;  // the last kMost
  Answer answer_ = Answer::open;
};

}  // namespace diapause::policy
