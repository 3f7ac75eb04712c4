// FTI's types of elements.
#pragma once

#include <cstdint>
#include <vector>

#include "diapause/diapause.h"
#include "fti.h"

namespace diapause::drop_in {

// Describes the elements of a type.
struct FtiType {
  std::uint64_t bytes;
  diapause_type type;
};

// Types by their numbers: FTI's own, then those of the program.
class FtiTypes {
 public:
  FtiTypes();
  fti_id_t add(std::uint64_t bytes);
  const FtiType& get(fti_id_t id) const;  // throws std::runtime_error for a number that is no type

 private:
  std::vector<FtiType> types_;
};

}  // namespace diapause::drop_in
