#include "store/file_paths.hpp"

#include <fmt/core.h>

namespace diapause::store {

Result<std::optional<std::vector<std::string>>> path_in_name(std::string_view region) {
  if (!region.starts_with(kFilePrefix)) return std::nullopt;
  std::string_view rest = region.substr(kFilePrefix.size());
  std::vector<std::string> parts;
  while (true) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (!sys::is_plain_name(part) || parts.size() == kDeepestFile) {
      return fail(Code::corrupt,
                  fmt::format("'{}' is no path of a file below a directory", region));
    }
    parts.emplace_back(part);
    if (slash == std::string_view::npos) return parts;
    rest.remove_prefix(slash + 1);
  }
}

Result<sys::File> open_below(const sys::Directory& root, const std::vector<std::string>& path,
                             Opening opening) {
  sys::Directory below;
  const sys::Directory* at = &root;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    auto next =
        opening == Opening::new_file ? at->make_child(path[i]) : at->open_own_child(path[i]);
    if (!next) return fail(std::move(next.error()));
    below = std::move(*next);
    at = &below;
  }
  return opening == Opening::new_file ? at->create_new_file(path.back())
                                      : at->open_file(path.back(), sys::Access::read);
}

}  // namespace diapause::store
