// Images that belong to no version: captured, and not published when their processes ended.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "format/image.hpp"
#include "store/image_reader.hpp"
#include "sys/file.hpp"

namespace diapause::store {

// Only the header was looked at. The rest of the file may belong to another capture.
struct OrphanedImage {
  format::ImageHeader header;
  std::string directory;  // below the place: spare/, or that of a version without a manifest
  std::string file;
};

// The images of ranks among what lies in spare/ and in the directories of what never became a
// version.
Result<std::vector<OrphanedImage>> find_orphaned_images(const sys::Directory& place);

// One that was found before; Code::not_found if it is not there any more.
Result<OrphanedImage> find_orphaned_image(const sys::Directory& place, const std::string& directory,
                                          const std::string& file);

// Code::corrupt if index and header do not belong together.
Result<ImageReader> open_orphaned_image(const sys::Directory& place, const OrphanedImage& orphan);

// Syncs the image, makes the directory of its version, and gives the image its name there. It is
// not durable before that directory is synced.
Status settle_orphaned_image(const sys::Directory& place, const OrphanedImage& orphan);

}  // namespace diapause::store
