// Images that no file has any more: they are computed from the other images and the parity of their
// group while they are read.
#pragma once

#include <cstdint>

#include "cli/collection.hpp"
#include "store/image_reader.hpp"

namespace diapause::cli {

// Opens the image of a rank without its file. `version` has a manifest. Code::not_found if there is
// too little parity within reach. What is read is checked as in every image. One thread reads.
Result<store::ImageReader> rebuild_image(const CollectedVersion& version, std::uint32_t rank);

}  // namespace diapause::cli
