// Names of directories and files in a tier. Nothing read from a checkpoint file ever becomes a path: names are made
// here, and names found in a directory count only if they parse.
//
//   <root>/<job key>[/<node>]/ v<number>-i<incarnation>-<commit id>/ r<rank>.img  g<group>-p<member>.img  manifest.a
//   manifest.b
//                                                   a<number>.img   (global: images of several ranks)
//                              spare/   files being written, or kept for reuse
//                              lock     ranks
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "format/ids.hpp"

namespace diapause::store {

std::string version_directory(const format::VersionId& version);
std::optional<format::VersionId> parse_version_directory(std::string_view name);

std::string image_name(std::uint32_t rank);
std::optional<std::uint32_t> parse_image_name(std::string_view name);

std::string parity_name(std::uint32_t group, std::uint32_t member);
std::optional<std::pair<std::uint32_t, std::uint32_t>> parse_parity_name(std::string_view name);

// A file that ranks share in the global tier.
std::string shared_name(std::uint32_t number);
std::optional<std::uint32_t> parse_shared_name(std::string_view name);

// A job is its name and its global directory: two programs of one name in different directories do not share a tier.
// "<name>-<8 hex digits>".
std::string job_key(std::string_view name, std::string_view absolute_global_path);

inline constexpr const char* kManifestNames[2] = {"manifest.a", "manifest.b"};
inline constexpr const char* kSpareDirectory = "spare";
inline constexpr const char* kLockName = "lock";
inline constexpr const char* kRanksName = "ranks";

}  // namespace diapause::store
