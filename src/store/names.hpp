// Names of directories and files in a tier. No text from a checkpoint file ever becomes a path:
// names are made here, and names found in a directory count only if they parse.
//
//   <root>/<job key>[/<node>]/ v<number>-i<incarnation>-<commit id>/ r<rank>.img
//   g<group>-p<member>.img  manifest.a manifest.b
//                                                   a<number>.img   (global: images of several
//                                                   ranks)
//                              spare/   files being written, or kept for reuse
//                              next/    in memory: the directory of the next version
//                              lock     ranks
//   <root>/<job key>/identity  which job this is (store/identity.hpp); global: starts, those of the
//   job
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "format/identity.hpp"
#include "format/ids.hpp"

namespace diapause::store {

std::string version_directory(const format::VersionId& version);
std::optional<format::VersionId> parse_version_directory(std::string_view name);

std::string image_name(std::uint32_t rank);
std::optional<std::uint32_t> parse_image_name(std::string_view name);

std::string parity_name(std::uint32_t group, std::uint32_t member);
std::optional<std::pair<std::uint32_t, std::uint32_t>> parse_parity_name(std::string_view name);

// Returns the name of a file that ranks share in the global tier.
std::string shared_name(std::uint32_t number);
std::optional<std::uint32_t> parse_shared_name(std::string_view name);

// Returns the name in spare/ of a borrowed slot that is free again. The name under which it was
// lent says that it is in use.
std::string returned_name(const std::string& lent_name);

// The name of a job's directory in every tier, "<name>-<8 hex digits>": the first digits of its
// identity.
std::string job_key(std::string_view name, const format::JobId& id);
// Returns the key by which releases without identities knew the job. It depends on how the path of
// the global directory was spelled.
std::string old_job_key(std::string_view name, std::string_view absolute_global_path);
bool is_job_key(std::string_view key);
// Returns the job's name. The key must be one of is_job_key().
std::string name_in_key(std::string_view key);
// Returns whether it is the key of a job of that name.
bool is_key_of(std::string_view key, std::string_view job);

inline constexpr const char* kManifestNames[2] = {"manifest.a", "manifest.b"};
inline constexpr const char* kSpareDirectory = "spare";
inline constexpr const char* kNextDirectory = "next";
inline constexpr const char* kLockName = "lock";
inline constexpr const char* kRanksName = "ranks";
inline constexpr const char* kIdentityName = "identity";
inline constexpr const char* kStartsName = "starts";

}  // namespace diapause::store
