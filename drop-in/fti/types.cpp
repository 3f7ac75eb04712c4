#include "types.hpp"

#include <array>
#include <stdexcept>
#include <string>

namespace diapause::drop_in {
namespace {

template <class T>
constexpr diapause_type integer(diapause_type of_8, diapause_type of_16, diapause_type of_32,
                                diapause_type of_64) {
  constexpr std::array kBytes = {1, 2, 4, 8};
  const std::array types = {of_8, of_16, of_32, of_64};
  for (std::size_t i = 0; i < kBytes.size(); ++i) {
    if (kBytes[i] == sizeof(T)) return types[i];
  }
  return DIAPAUSE_BYTES;
}

template <class T>
FtiType signed_type() {
  return {sizeof(T), integer<T>(DIAPAUSE_INT8, DIAPAUSE_INT16, DIAPAUSE_INT32, DIAPAUSE_INT64)};
}

template <class T>
FtiType unsigned_type() {
  return {sizeof(T), integer<T>(DIAPAUSE_UINT8, DIAPAUSE_UINT16, DIAPAUSE_UINT32, DIAPAUSE_UINT64)};
}

}  // namespace

FtiTypes::FtiTypes()
    : types_{signed_type<char>(),
             signed_type<short>(),
             signed_type<int>(),
             signed_type<long>(),
             unsigned_type<unsigned char>(),
             unsigned_type<unsigned short>(),
             unsigned_type<unsigned int>(),
             unsigned_type<unsigned long>(),
             {sizeof(float), DIAPAUSE_FLOAT32},
             {sizeof(double), DIAPAUSE_FLOAT64},
             {sizeof(long double), DIAPAUSE_BYTES}} {}

fti_id_t FtiTypes::add(std::uint64_t bytes) {
  if (bytes == 0) throw std::runtime_error("a type must have a size");
  types_.push_back({bytes, DIAPAUSE_BYTES});
  return static_cast<fti_id_t>(types_.size()) - 1;
}

const FtiType& FtiTypes::get(fti_id_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= types_.size()) {
    throw std::runtime_error("there is no type of number " + std::to_string(id));
  }
  return types_[static_cast<std::size_t>(id)];
}

}  // namespace diapause::drop_in
