// This is a note on this machine of the versions that a job has failed soon after. A restart takes
// them only if no other can be had.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "format/ids.hpp"

namespace diapause::agent {

class Doubts {
 public:
  explicit Doubts(std::string path) : path_(std::move(path)) {}

  // Returns whether a version is in doubt. A note that cannot be read puts none in doubt.
  bool hold(const format::VersionId& version) const;
  Status add(const format::VersionId& version) const;
  void clear() const;

 private:
  std::vector<std::string> lines() const;

  std::string path_;
};

}  // namespace diapause::agent
