// Controls are files of this node with one value each that several jobs may want to lower for a
// while. The lowest requested value holds, and the original value is restored when there are no
// requests.
//
// The rules, in the order of every change:
// 1. The present value, and the one to be written, are durable in the journal before the first
// value
//    is written.
// 2. The original value is restored only if the present one is ours; somebody else may have changed
//    it since.
// 3. A value of ours is never taken for the original value.
// 4. Every control is restored independently: one that cannot be restored does not affect the
//    others, and stays in the journal.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "governor/journal.hpp"
#include "sys/file.hpp"

namespace diapause::governor {

struct Setting {
  std::string path;
  std::string value;  // Two values are compared by the numbers that they begin with; "-1" and "max"
                      // mean no limit.
};

// Several objects, also of different processes, may work on the same state directory: a file lock
// orders their changes. One object may be used by several threads.
class Controls {
 public:
  // `state_path` is made if it is missing, and must belong to this user alone. Errors are those of
  // the directory.
  static Result<Controls> open(sys::Kernel& kernel, const std::string& state_path,
                               const std::string& boot_id);

  // Replaces all requests of the owner by these values. If one of them cannot be set, the owner has
  // no requests afterwards, and the first error is returned. Values above the original are not set.
  // Returns the present values in the order of `settings`.
  Result<std::vector<std::string>> want(const Owner& owner, const std::vector<Setting>& settings);

  // The outcome of restoring. `errors` has one entry for each control that could not be restored.
  struct Outcome {
    std::size_t put_back = 0;
    std::size_t left_alone = 0;  // controls that are missing, or that somebody else has changed
    std::vector<Error> errors;
  };
  // Drops all requests of the owner. Fails if the journal cannot be read or locked; nothing was
  // restored then.
  Result<Outcome> want_nothing(const Owner& owner);
  // Drops the requests of all owners that are `gone`, and removes their groups.
  Result<Outcome> clean_up(const std::function<bool(const Owner&)>& gone);

  // Records that the owner is about to make a control group, the directory `path`. Until disband(),
  // clean_up() would remove it.
  Status note_group(const Owner& owner, const std::string& path);
  // Moves the threads of all groups of the owner to the parent groups, and removes the groups.
  Result<Outcome> disband(const Owner& owner);

 private:
  Controls(sys::Directory directory, std::string boot_id)
      : directory_(std::move(directory)), boot_id_(std::move(boot_id)) {}

  class Session;
  Result<Session> begin();

  sys::Directory directory_;
  std::string boot_id_;
};

// Describes an outcome for people; empty if there was nothing to do.
std::string to_text(const Controls::Outcome& outcome);

}  // namespace diapause::governor
