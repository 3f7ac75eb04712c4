// The floating-point environment: rounding, traps, and whether tiny numbers count as zero.
#pragma once

#include <cfenv>

namespace diapause::capi {

// While one of these lives, this thread computes as C programs do when they start, and so do the
// threads that it starts. A program may round otherwise, flush tiny numbers to zero, or be ended
// by a division by zero; none of this may reach what the library computes. Afterwards everything
// is as the program had it, also the exceptions that it has raised.
class LibraryFloats {
 public:
  LibraryFloats();
  LibraryFloats(const LibraryFloats&) = delete;
  LibraryFloats& operator=(const LibraryFloats&) = delete;
  ~LibraryFloats();

 private:
  friend class ProgramFloats;
  std::fenv_t of_program_{};
  LibraryFloats* outer_;  // if a hook of the program has called the library
};

// Inside of LibraryFloats: the program's own environment, for a hook of the program, whose results
// must not depend on who calls it.
class ProgramFloats {
 public:
  ProgramFloats();
  ProgramFloats(const ProgramFloats&) = delete;
  ProgramFloats& operator=(const ProgramFloats&) = delete;
  ~ProgramFloats();
};

}  // namespace diapause::capi
