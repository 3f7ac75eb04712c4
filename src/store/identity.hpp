// Finds a job's directory in a tier. The identity in the directory decides, whatever path leads
// there and whatever the machines are called
// (docs/decisions/0030-identity-lies-in-the-directory.md).
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "format/identity.hpp"
#include "format/starts.hpp"
#include "sys/file.hpp"

namespace diapause::store {

// Tells whether a job's directory in the global tier lies where the identity in it says.
enum class Standing {
  home,    // it lies where the identity says, whatever path leads there
  moved,   // nothing of the job is left where the identity says
  copy,    // the original is still where the identity says
  unnamed  // it has no identity that can be read: an older release made it
};

struct FoundJob {
  std::string directory;         // its name in the root
  format::JobIdentity identity;  // empty where it is unnamed
  Standing standing = Standing::unnamed;
  std::string trouble;  // the reason why an existing identity cannot be read
};

// Code::not_found where there is none.
Result<format::JobIdentity> read_identity(const sys::Directory& job);
// Durable when this returns. `writer` keeps those apart who write to one directory at the same
// time.
Status write_identity(const sys::Directory& job, const format::JobIdentity& identity,
                      std::string_view writer);

// Reads the starts of the job from the global tier in the same way.
Result<format::Starts> read_starts(const sys::Directory& job);
Status write_starts(const sys::Directory& job, const format::Starts& starts);

// A new one, of that name; its id is random.
Result<format::JobIdentity> draw_identity(std::string_view job, std::string_view home);

// Compares where `job`, a directory in the root of a global tier, lies with what `identity` says.
Standing standing_of(const sys::Directory& root, const sys::Directory& job,
                     const format::JobIdentity& identity);

// Returns the directories of jobs of that name in the root of a global tier, in no order. A second
// directory of one identity in the same root is left out.
Result<std::vector<FoundJob>> find_jobs(const sys::Directory& root, std::string_view name);

// Returns the directory to go on with. A directory with an identity comes before others, then the
// one with the newest version.
const FoundJob& choose_job(const sys::Directory& root, const std::vector<FoundJob>& found);

// The root of a tier that nobody has chosen: `usual`, or, where another user has made a directory
// of that name, the first of "<usual>-1", "<usual>-2", ... that is this user's or that nobody has.
// The same for everybody who asks on this machine, as long as it is there.
std::string own_root(sys::Kernel& kernel, const std::string& usual);

// Finds a node's directories in `job`, of a node tier, whose names are no present name of a node:
// this machine had another name when it made them. Their contents become `node`'s; directories in
// use are left alone. Returns the old names.
Result<std::vector<std::string>> take_over_renamed(const sys::Directory& job,
                                                   const std::string& node,
                                                   const std::set<std::string>& nodes_there_are);

}  // namespace diapause::store
