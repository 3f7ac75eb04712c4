#include "cli/export_target.hpp"

#include <fmt/format.h>

#include "store/file_paths.hpp"

namespace diapause::cli {
namespace {

std::uint64_t bytes_of(const ArrayShape& shape) {
  std::uint64_t bytes = shape.element_bytes;
  for (const std::uint64_t dim : shape.dims) bytes *= dim;
  return bytes;
}

}  // namespace

Status ManyFiles::array(const std::string& name, const ArrayShape& shape, const Filling& fill) {
  const std::string temporary = name + ".tmp";
  DIAPAUSE_TRY_ASSIGN(const sys::File file, directory_.create_file(temporary));
  const std::string head = npy_head(shape);
  DIAPAUSE_TRY(file.write_all(as_byte_view(head), 0));
  DIAPAUSE_TRY(fill_or_leave(file, head.size(), bytes_of(shape), fill));
  DIAPAUSE_TRY(directory_.rename(temporary, directory_, name));
  written_.push_back(fmt::format("{}/{}", directory_.path(), name));
  return {};
}

Status ManyFiles::file(const std::vector<std::string>& path, std::uint64_t bytes,
                       const Filling& fill) {
  DIAPAUSE_TRY_ASSIGN(const sys::File file,
                      store::open_below(directory_, path, store::Opening::new_file));
  DIAPAUSE_TRY(fill_or_leave(file, 0, bytes, fill));
  written_.push_back(fmt::format("{}/{}", directory_.path(), fmt::join(path, "/")));
  return {};
}

Status ManyFiles::fill_or_leave(const sys::File& file, std::uint64_t begin, std::uint64_t bytes,
                                const Filling& fill) const {
  return content_ == Content::written ? fill(file, begin) : file.truncate(begin + bytes);
}

Status OneFile::array(const std::string& name, const ArrayShape& shape, const Filling& fill) {
  return put(name, bytes_of(shape), fill);
}

Status OneFile::file(const std::vector<std::string>& path, std::uint64_t bytes,
                     const Filling& fill) {
  return put(fmt::format("{}", fmt::join(path, "/")), bytes, fill);
}

Status OneFile::put(const std::string& name, std::uint64_t bytes, const Filling& fill) const {
  if (bytes == 0) return {};
  const auto place = places_.find(name);
  if (place == places_.end())
    return fail(Code::internal, fmt::format("{} has no room for {}", file_.path(), name));
  return fill(file_, place->second);
}

}  // namespace diapause::cli
