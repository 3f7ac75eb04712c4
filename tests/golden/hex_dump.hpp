// The hex dumps in docs/formats, read back.
#pragma once

#include <string>

#include "base/bytes.hpp"

namespace diapause::golden {

// The bytes of all code blocks of a document whose lines read "<offset, 8 hex digits>  <bytes, two
// digits each>  <any text>". Bytes that no line shows are zero. A line with an offset alone gives
// the length.
ByteVector parse_hex_dump(const std::string& markdown);

}  // namespace diapause::golden
