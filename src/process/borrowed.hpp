// Gets a descriptor in this process that is the same open file as one of another process.
#pragma once

#include <sys/types.h>

#include <utility>

#include "base/result.hpp"

namespace diapause::process {

class Borrowed {
 public:
  static Result<Borrowed> of(pid_t process, int number);
  Borrowed(Borrowed&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Borrowed& operator=(Borrowed&&) = delete;
  ~Borrowed();

  int number() const { return number_; }

 private:
  explicit Borrowed(int number) : number_(number) {}
  int number_;
};

}  // namespace diapause::process
