// Serializers for client_t::mem_protect, of types that Boost.Serialization can archive. Its headers
// and its library, boost_serialization, are not part of Diapause.
#ifndef DIAPAUSE_DROP_IN_VELOC_BOOST_HPP
#define DIAPAUSE_DROP_IN_VELOC_BOOST_HPP

#include <boost/archive/binary_iarchive.hpp>
#include <boost/archive/binary_oarchive.hpp>
#if __has_include(<boost/serialization/library_version_type.hpp>)
// Headers of containers in Boost 1.74 lean on it and do not include it.
#include <boost/serialization/library_version_type.hpp>
#endif
#include <exception>
#include <functional>
#include <istream>
#include <ostream>

namespace veloc::boost {

using namespace ::boost;

// `data` must live as long as it is protected.
template <typename T>
std::function<void(std::ostream&)> serializer(T& data) {
  return [&data](std::ostream& to) {
    ::boost::archive::binary_oarchive archive(to);
    archive << data;
  };
}

template <typename T>
std::function<bool(std::istream&)> deserializer(T& data) {
  return [&data](std::istream& from) {
    try {
      ::boost::archive::binary_iarchive archive(from);
      archive >> data;
      return true;
    } catch (const std::exception&) {
      return false;  // what is stored is of another type
    }
  };
}

}  // namespace veloc::boost

#endif
