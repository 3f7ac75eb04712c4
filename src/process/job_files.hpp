// Finds the files that belong to a job by their names, whether or not a process has them open, and
// adds them to what was taken down of the job.
#pragma once

#include <sys/stat.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "process/dump.hpp"

namespace diapause::process {

// Says which files this node looks after. What several nodes see is looked after by the first.
struct FileView {
  // No file below these directories, and none of these files, belongs to the job.
  std::vector<std::string> apart;
  enum class Node { first, other, on_machine_of_first };
  Node node = Node::first;

  bool is_apart(const std::string& path) const;
  bool is_shown_here(const std::string& directory) const;
  // Returns whether its file system shows the same on several machines.
  static bool is_on_many_machines(const std::string& path);
};

// Returns the paths, in rising order and without links, of the regular files that match one of the
// patterns and lie below no directory that does not belong to the job. A pattern is an absolute
// path, a directory with all that is below it, or a glob. Links are followed where a pattern names
// them, and not below a directory. What may not be read is passed over, and so is what a restart
// has put aside.
Result<std::vector<std::string>> files_matching(const std::vector<std::string>& patterns,
                                                const FileView& view);
// Returns the same patterns as absolute paths.
std::vector<std::string> absolute_patterns(const std::vector<std::string>& patterns,
                                           const std::string& directory);

// A restart puts a file aside by giving it this name, or one that goes on with "." and a number.
inline constexpr std::string_view kAside = ".undone";
bool is_put_aside(std::string_view path);

// Returns the paths of the files that a restart writes or cuts because processes have them open.
std::set<std::string> paths_of_open_files(const Job& job);

// Takes down files. It must be asked to look before each time that the job is stopped.
class JobFiles {
 public:
  JobFiles() = default;
  JobFiles(std::vector<std::string> patterns, FileView view)
      : patterns_(std::move(patterns)), view_(std::move(view)) {}

  // Reads what probably does not change any more until the job stands still, and has not changed
  // for a while at this time since 1970. Fails if there are more files than an image should have.
  Status look(std::uint64_t now_ns);
  bool is_used() const { return !patterns_.empty(); }
  // Returns the open files that the first node sees, too, and must leave to this one.
  std::set<std::string> open_here(const Job& job) const;
  // Adds the files to `dump` while the job stands still. Those that processes have open are in it
  // already, and those in `elsewhere` in what other nodes take down. The standard streams of the
  // job are noted without contents, because a restart has its own.
  Status add_to(Dump& dump, const std::set<std::string>& elsewhere);

 private:
  struct Seen {
    struct stat state {};
    ByteVector bytes;
  };
  ByteVector take_contents(const std::string& path, struct stat& state, bool is_mapped);

  std::vector<std::string> patterns_;
  FileView view_;
  std::map<std::string, Seen> seen_;
};

}  // namespace diapause::process
