// Forks copies of the processes of a frozen job. They keep the memory as it is while the job itself
// runs on: a page is copied only when somebody writes to it.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

#include "base/result.hpp"
#include "process/dump.hpp"

namespace diapause::process {

// This is memory that copies of processes need not have, by the process.
using Spared = std::map<pid_t, std::vector<Extent>>;

// The copies never run, have no open files, and are children of process 1 of the job, whoever else
// might wait for its children. They end with the object, or with this process.
class Copies {
 public:
  // Makes a copy of every process that runs. On failure there are none, and the job is as it was.
  static Result<Copies> make(FrozenJob& frozen, const Spared& spared);
  Copies(Copies&& other) noexcept = default;
  Copies& operator=(Copies&&) = delete;
  ~Copies();

  // Confirms what was foreseen of the processes, see Foresight::confirm().
  Status confirm(const Foresight& foresight) const;
  // Makes `dump` read from the copies what they hold, which is all contents with is_forked.
  void redirect(Dump& dump) const;

 private:
  struct Copy {
    pid_t original = 0, here = 0;
  };
  Copies() = default;
  Status add(FrozenProcess& frozen);
  Status add(FrozenProcess& frozen, const std::vector<Extent>& spared);

  std::vector<Copy> copies_;
};

}  // namespace diapause::process
