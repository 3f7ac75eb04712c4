// The boundary between C and C++: every C function runs inside `guarded`, which lets nothing but a
// status through, and computes in a floating-point environment of its own.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "capi/floats.hpp"
#include "diapause/diapause.h"
#include "library/engine.hpp"

// The object that a handle points to. Members are destroyed in reverse order, so that the member
// that closes the instance at MPI_Finalize goes first.
struct diapause_instance {
  diapause::library::Opened rank;
  std::shared_ptr<const void> program_comm;  // an MPI_Comm, if it was opened with MPI
  // The result of closing, if MPI_Finalize has closed the instance.
  std::optional<diapause::Status> ended;
  std::shared_ptr<void> before_finalize;  // if it was opened with MPI
  std::string path;                       // the path that was given out last
  // The process that opened it; a child by fork has a copy that it must not use.
  std::int64_t process = 0;
};

namespace diapause::capi {

// Stores the text for diapause_last_error and returns the status.
int report(const Error& error) noexcept;
// Returns the text that was stored last in this thread.
const char* last_error() noexcept;

template <class Body>
int guarded(Body body) noexcept {
  try {
    const LibraryFloats floats;
    Status status = body();
    return status ? DIAPAUSE_OK : report(status.error());
  } catch (const std::bad_alloc&) {
    return report(Error{Code::memory, "out of memory"});
  } catch (const std::exception& defect) {
    return report(Error{Code::internal, std::string("defect in Diapause: ") + defect.what()});
  } catch (...) {
    return report(Error{Code::internal, "defect in Diapause"});
  }
}

// Returns the engine of a computing rank. Code::argument without an instance, on a dedicated rank,
// and in a child of the process that has opened it.
Result<library::Engine*> engine_of(const diapause_t* instance);

// Returns the options of a program whose struct may be smaller or larger than ours. NULL means
// defaults.
diapause_open_options known_options(const diapause_open_options* options, std::size_t bytes);

// Messages go to standard error if the function is NULL.
LogSink log_to(diapause_log_function function, void* user);

// Opens an instance; shared by the functions with and without MPI.
Status open(std::unique_ptr<comm::Comm> comm, const char* name,
            const diapause_open_options& options, diapause_t** out);

// Returns whether this process is a child by fork of the one that opened the instance. The threads
// that the instance needs run in the parent only.
bool is_copy(const diapause_t& instance);

enum class End { of_instance, of_job };

// Closes the instance, or finishes its job and closes it, and releases the object. `instance` may
// be NULL. A child by fork ends nothing: its copy remains, because nothing in it can be waited for.
Status end_and_release(diapause_t* instance, End what, double at_most_s = 1e9);

// Does the same, but the object remains, and keeps what closing has returned.
Status end(diapause_t& instance, End what, double at_most_s = 1e9);

}  // namespace diapause::capi
