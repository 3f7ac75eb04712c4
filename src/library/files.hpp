// Files as content of a version: a region each, named "file:" and their path, in the image of their rank. Whatever
// holds for regions holds for them.
//
// Paths that come from an image are not trusted: they become files below a directory of our own, or an error.
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

inline constexpr const char* kFilesName = "files";  // of the directory in a node's tier that holds those of its ranks

// Of one rank. Directories are made in the first tier of the node that can be written to, and go with this object.
class Files {
 public:
  explicit Files(engine::Context& context) : context_(context) {}
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files();

  // Removes what earlier processes have left. By one process of the node, before anybody begins or restores.
  static void clear(const store::Tier& of_node);

  // An empty directory for the files of the next version.
  Result<std::string> begin();
  bool is_begun() const { return out_.is_open(); }
  // The files that lie there, in the order of their names, as regions. Code::argument names what is neither a file nor
  // a directory, or whose path is too long.
  Result<std::vector<format::Region>> list() const;
  const sys::Directory& directory() const { return out_; }
  // Removes it.
  void end();

  // Writes all files of an image into a directory of their own, which is there until end_restored().
  Result<std::string> restore(store::ImageReader& image);
  void end_restored();

 private:
  Result<sys::Directory> make_empty(const std::string& name);
  void remove(const std::string& name);
  std::string out_name() const;
  std::string restored_name() const;

  engine::Context& context_;
  sys::Directory place_;     // holds those below, of all ranks of the node
  sys::Directory out_;       // open between begin() and end()
  sys::Directory restored_;  // open between restore() and end_restored()
};

// The regions of `memory`, and behind them the files of these regions below `root`; both must outlive the object.
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
  std::size_t opened_ = 0;  // which file that is
  std::shared_ptr<const sys::File> file_;
};

}  // namespace diapause::library
