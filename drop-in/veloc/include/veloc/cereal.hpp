// Serializers for client_t::mem_protect, of types that cereal can archive. Its headers are not part
// of Diapause.
#ifndef DIAPAUSE_DROP_IN_VELOC_CEREAL_HPP
#define DIAPAUSE_DROP_IN_VELOC_CEREAL_HPP

#include <cereal/archives/binary.hpp>
#include <exception>
#include <functional>
#include <istream>
#include <ostream>

namespace veloc::cereal {

using namespace ::cereal;

// `data` must live as long as it is protected.
template <typename T>
std::function<void(std::ostream&)> serializer(T& data) {
  return [&data](std::ostream& to) {
    ::cereal::BinaryOutputArchive archive(to);
    archive(data);
  };
}

template <typename T>
std::function<bool(std::istream&)> deserializer(T& data) {
  return [&data](std::istream& from) {
    try {
      ::cereal::BinaryInputArchive archive(from);
      archive(data);
      return true;
    } catch (const std::exception&) {
      return false;  // what is stored is of another type
    }
  };
}

}  // namespace veloc::cereal

#endif
