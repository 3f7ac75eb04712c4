// Where an export writes arrays and files: each into a file of its own, or all into one file that
// has room for them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/npy.hpp"
#include "sys/file.hpp"

namespace diapause::cli {

// Writes bytes into a file in which they begin at `begin`.
using Filling = std::function<Status(const sys::File& file, std::uint64_t begin)>;

class ExportTarget {
 public:
  ExportTarget() = default;
  ExportTarget(const ExportTarget&) = delete;
  ExportTarget& operator=(const ExportTarget&) = delete;
  virtual ~ExportTarget() = default;

  // Take an array under the name of a NumPy file, and a file of the program under the parts of
  // its path. `fill` writes the elements, or the content.
  virtual Status array(const std::string& name, const ArrayShape& shape, const Filling& fill) = 0;
  virtual Status file(const std::vector<std::string>& path, std::uint64_t bytes,
                      const Filling& fill) = 0;
};

// Files below a directory: arrays of NumPy, and the program's own.
class ManyFiles final : public ExportTarget {
 public:
  // With Content::left_out the files have their lengths, and zeros in place of their content.
  enum class Content { written, left_out };
  ManyFiles(const sys::Directory& directory, Content content)
      : directory_(directory), content_(content) {}

  Status array(const std::string& name, const ArrayShape& shape, const Filling& fill) override;
  Status file(const std::vector<std::string>& path, std::uint64_t bytes,
              const Filling& fill) override;

  // Returns the paths of the files so far.
  std::vector<std::string>& written() { return written_; }

 private:
  Status fill_or_leave(const sys::File& file, std::uint64_t begin, std::uint64_t bytes,
                       const Filling& fill) const;
  const sys::Directory& directory_;
  Content content_;
  std::vector<std::string> written_;
};

// One file with room for the content of all files that ManyFiles would make; `places` says where
// each begins. What is empty may have no place.
class OneFile final : public ExportTarget {
 public:
  using Places = std::unordered_map<std::string, std::uint64_t>;
  OneFile(sys::File file, Places places) : file_(std::move(file)), places_(std::move(places)) {}

  Status array(const std::string& name, const ArrayShape& shape, const Filling& fill) override;
  Status file(const std::vector<std::string>& path, std::uint64_t bytes,
              const Filling& fill) override;

 private:
  Status put(const std::string& name, std::uint64_t bytes, const Filling& fill) const;
  sys::File file_;
  Places places_;
};

}  // namespace diapause::cli
