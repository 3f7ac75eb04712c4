// Files that several ranks write together.
#pragma once

#include <cstdint>
#include <string>

#include "base/byte_source.hpp"
#include "base/result.hpp"

namespace diapause::comm {

// One rank's part of such a file.
struct FilePart {
  std::string path;  // the path of a file that exists
  // Identifies the file: all parts with the same path have the same number.
  std::uint32_t number = 0;
  std::uint64_t offset = 0;
};

class FileWriter {
 public:
  virtual ~FileWriter() = default;

  // Writes `bytes` with collective writes, syncs them and reads them back. All ranks call this,
  // each with its own part. Returns Code::io if this rank's part is not in its file; the other
  // ranks do not learn of that.
  virtual Status write(const FilePart& part, ByteSource& bytes) = 0;
};

}  // namespace diapause::comm
