// Where the files of datasets lie, of ScrRun.
#include <stdexcept>

#include "run.hpp"
#include "scr.h"

namespace diapause::drop_in {
namespace {

namespace fs = std::filesystem;
using Failure = std::runtime_error;

constexpr std::size_t kLongestPath = 250;  // of a file, for diapause_files

}  // namespace

std::optional<std::string> ScrRun::below_prefix(const std::string& name) const {
  const fs::path path = fs::weakly_canonical(fs::absolute(name));
  const fs::path below = path.lexically_relative(configuration_.prefix);
  const bool is_below = !below.empty() && below != "." && *below.begin() != "..";
  if (!is_below) return std::nullopt;
  return below.string();
}

std::string ScrRun::file_of(const std::string& name) const {
  if (const auto below = below_prefix(name)) return *below;
  throw Failure(fs::absolute(name).string() + " does not lie below the prefix directory " +
                configuration_.prefix + ": set SCR_PREFIX, or give the file another path");
}

fs::path ScrRun::at_prefix(const std::string& file) const {
  return fs::path(configuration_.prefix) / file;
}

std::vector<fs::path> ScrRun::at_prefix(const std::set<std::string>& files) const {
  std::vector<fs::path> paths;
  for (const std::string& file : files) paths.push_back(at_prefix(file));
  return paths;
}

std::string ScrRun::route(const std::string& name) {
  fs::path path = name;
  if (output_) path = path_of_output(name);
  if (!restart_directory_.empty()) path = path_of_restart(name);
  if (path.string().size() < SCR_MAX_FILENAME) return path.string();
  throw Failure(path.string() + " is longer than SCR_MAX_FILENAME allows");
}

fs::path ScrRun::path_of_output(const std::string& name) {
  const std::string file = file_of(name);
  if (output_->is_checkpoint && file.size() > kLongestPath) {
    throw Failure(file + " has " + std::to_string(file.size()) +
                  " bytes: the files of a checkpoint have paths of up to " +
                  std::to_string(kLongestPath) + " below the prefix directory");
  }
  const fs::path path =
      output_->is_checkpoint ? fs::path(output_->directory) / file : at_prefix(file);
  fs::create_directories(path.parent_path());
  output_->files.insert(file);
  return path;
}

// The name of a file without a path will do, wherever the program runs, if it is that of one file.
fs::path ScrRun::path_of_restart(const std::string& name) const {
  const fs::path directory = restart_directory_;
  const bool is_bare = !fs::path(name).has_parent_path();
  const auto below = is_bare ? below_prefix(name) : file_of(name);
  if (below && fs::exists(directory / *below)) return directory / *below;
  std::vector<fs::path> found;
  if (is_bare) {
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      if (entry.is_regular_file() && entry.path().filename() == name) found.push_back(entry.path());
    }
  }
  if (found.size() == 1) return found.front();
  if (found.empty())
    throw Failure(name + " is no file of this rank in the checkpoint " + candidate_->name);
  throw Failure(name + " is the name of " + std::to_string(found.size()) +
                " files of this rank in the checkpoint " + candidate_->name +
                ": give the path of the one that is meant");
}

}  // namespace diapause::drop_in
