// Values of this node that several jobs want changed for a while, each a file that holds one value: the lowest one that
// anybody wants holds, and what stood there before comes back when nobody wants anything any more.
//
// The rules, in the order of every change:
// 1. What stands there, and what we are about to write, is durable in the journal before the first value is written.
// 2. What stood there is put back only if what stands there now is ours; somebody else may have changed it since.
// 3. What stands there is never taken for the original value if it is a value of ours.
// 4. Every control is put back by itself: one that cannot be does not keep the others from it, and stays in the
// journal.
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
  std::string value;  // compared by the number it begins with; "-1" and "max" mean no limit
};

// Several objects, also of different processes, may work on the same state directory: a file lock puts their changes in
// an order. One object may be used by several threads.
class Controls {
 public:
  // `state_path` is made if it is not there, and must belong to this user alone. Errors are those of its directory.
  static Result<Controls> open(sys::Kernel& kernel, const std::string& state_path, const std::string& boot_id);

  // From here on the owner wants these values, instead of all it wanted before. All or none: if one cannot be set, it
  // wants nothing afterwards, and the error is that of the first which failed. Values above the original are not set.
  // What stands there now, in the order of `settings`.
  Result<std::vector<std::string>> want(const Owner& owner, const std::vector<Setting>& settings);

  // What came of putting back. `errors` has one for each control that could not be.
  struct Outcome {
    std::size_t put_back = 0;
    std::size_t left_alone = 0;  // changed by somebody else, or gone
    std::vector<Error> errors;
  };
  // The owner wants nothing any more. Fails if the journal cannot be read or locked; then nothing was put back.
  Result<Outcome> want_nothing(const Owner& owner);
  // The same for all owners that are `gone`, with their groups.
  Result<Outcome> clean_up(const std::function<bool(const Owner&)>& gone);

  // The owner is about to make a control group, a directory of that path. Until disband(), clean_up() would do it.
  Status note_group(const Owner& owner, const std::string& path);
  // Moves the threads of all groups of the owner to the groups these are in, and removes them.
  Result<Outcome> disband(const Owner& owner);

 private:
  Controls(sys::Directory directory, std::string boot_id)
      : directory_(std::move(directory)), boot_id_(std::move(boot_id)) {}

  class Session;
  Result<Session> begin();

  sys::Directory directory_;
  std::string boot_id_;
};

// What Outcome says, for people; empty if there was nothing to do.
std::string to_text(const Controls::Outcome& outcome);

}  // namespace diapause::governor
