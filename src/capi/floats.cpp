#include "capi/floats.hpp"

#include <utility>

namespace diapause::capi {
namespace {

thread_local LibraryFloats* innermost_floats = nullptr;

}  // namespace

LibraryFloats::LibraryFloats() : outer_(std::exchange(innermost_floats, this)) {
  std::fegetenv(&of_program_);
  std::fesetenv(FE_DFL_ENV);
}

LibraryFloats::~LibraryFloats() {
  std::fesetenv(&of_program_);
  innermost_floats = outer_;
}

ProgramFloats::ProgramFloats() {
  if (innermost_floats != nullptr) std::fesetenv(&innermost_floats->of_program_);
}

ProgramFloats::~ProgramFloats() {
  if (innermost_floats == nullptr) return;
  std::fegetenv(&innermost_floats->of_program_);
  std::fesetenv(FE_DFL_ENV);
}

}  // namespace diapause::capi
