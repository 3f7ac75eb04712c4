// Serializers for client_t::mem_protect, of types that bitsery can write. Its headers are not part
// of Diapause.
#ifndef DIAPAUSE_DROP_IN_VELOC_BITSERY_HPP
#define DIAPAUSE_DROP_IN_VELOC_BITSERY_HPP

#include <bitsery/adapter/stream.h>
#include <bitsery/bitsery.h>

#include <cstdint>
#include <functional>
#include <istream>
#include <ostream>

namespace veloc::bitsery {

using namespace ::bitsery;

// `data` must live as long as it is protected.
template <typename T>
std::function<void(std::ostream&)> serializer(T& data) {
  return [&data](std::ostream& to) {
    ::bitsery::Serializer<::bitsery::OutputBufferedStreamAdapter> writer{to};
    writer.object(data);
    writer.adapter().flush();
  };
}

template <typename T>
std::function<bool(std::istream&)> deserializer(T& data) {
  return [&data](std::istream& from) {
    const auto read = ::bitsery::quickDeserialization<::bitsery::InputStreamAdapter>(from, data);
    return read.first == ::bitsery::ReaderError::NoError;
  };
}

}  // namespace veloc::bitsery

#endif
