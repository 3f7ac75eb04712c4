// Files as content of a version. Each file is a region of its rank's image, named "file:" and its
// path, and is treated like every other region.
//
// Paths in an image are not trusted: they lead to files below a directory of our own, or to an
// error.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "capture/block_source.hpp"
#include "engine/job/context.hpp"
#include "format/image.hpp"
#include "store/file_paths.hpp"
#include "store/image_reader.hpp"
#include "sys/file.hpp"

namespace diapause::library {

// Name of the directory in a node's tier that holds the files of its ranks.
inline constexpr const char* kFilesName = "files";

// The files of one rank. Directories are made in the first writable tier of the node, and are
// removed with this object.
class Files {
 public:
  explicit Files(const engine::Context& context) : context_(context) {}
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files();

  // Removes remains of earlier processes. Called by one process of the node, before any rank begins
  // or restores.
  static void clear(const store::Tier& of_node);

  // Makes an empty directory for the files of the next version and returns its path.
  Result<std::string> begin();
  bool is_begun() const { return out_.is_open(); }
  // Returns the files in that directory, in the order of their names, as regions. Code::argument
  // names an entry that is neither a file nor a directory, or whose path is too long.
  Result<std::vector<format::Region>> list() const;
  const sys::Directory& directory() const { return out_; }
  // Removes what is in the directory.
  void end();

  // Writes all files of an image into a directory of their own, which exists until end_restored(),
  // and returns its path.
  Result<std::string> restore(store::ImageReader& image);
  void end_restored();

 private:
  Result<sys::Directory> make_empty(const std::string& name);
  static Status empty(const sys::Directory& directory);
  void empty_and_close(sys::Directory& directory);
  std::string out_name() const;
  std::string restored_name() const;

  const engine::Context& context_;
  sys::Directory place_;     // holds the directories of all ranks of the node
  sys::Directory out_;       // open between begin() and end()
  sys::Directory restored_;  // open between restore() and end_restored()
};

// Gives the regions of `memory`, followed by the files of these regions below `root`. Both must
// outlive the object.
class FilesSource final : public capture::BlockSource {
 public:
  FilesSource(capture::BlockSource& memory, std::size_t memory_regions, const sys::Directory& root,
              std::vector<format::Region> files)
      : memory_(memory), memory_regions_(memory_regions), root_(root), files_(std::move(files)) {}

  Result<std::uint64_t> copy(std::size_t region, std::uint64_t offset, MutableBytes to) override;

 private:
  Result<std::shared_ptr<const sys::File>> open(std::size_t file);

  capture::BlockSource& memory_;
  std::size_t memory_regions_;
  const sys::Directory& root_;
  std::vector<format::Region> files_;
  std::mutex mutex_;
  std::size_t opened_ = 0;  // number of the file that is open
  std::shared_ptr<const sys::File> file_;
};

}  // namespace diapause::library
