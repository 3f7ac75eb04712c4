// Whether something saves joules, told from pairs of measurements that are off by noise. Pure.
//
// A sequential test: it looks at the pairs after 4, 8 and 16 of them, each time with Student's interval for an error of
// 1/3 %, so that in all of its looks it says of something that saves nothing in less than 1 of 100 cases that it saves.
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
    open,      // more pairs will tell
    saves,     // the interval of what is saved excludes zero
    does_not,  // it excludes that 1 % is saved: not worth a change of ways
    cannot_be_told
  };

  // What both of a pair took, in one unit; the order of pairs should alternate, so that what drifts favours neither.
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
