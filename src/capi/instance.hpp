// The wall between C and C++: every C entry runs inside `guarded`, which lets nothing through but a status.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "diapause/diapause.h"
#include "library/engine.hpp"

// What a handle points to. Members go in the reverse order: what closes the instance at MPI_Finalize first.
struct diapause_instance {
  diapause::engine::Opened rank;
  std::shared_ptr<const void> program_comm;  // an MPI_Comm, if it was opened with MPI
  std::optional<diapause::Status> ended;     // MPI_Finalize has closed it, and this is what closing has returned
  std::shared_ptr<void> before_finalize;     // if it was opened with MPI
  std::string path;                          // that was handed out last
};

namespace diapause::capi {

// Remembers the text for diapause_last_error and returns the status.
int report(const Error& error) noexcept;

template <class Body>
int guarded(Body body) noexcept {
  try {
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

// The engine of a rank that computes. Code::argument without an instance, and on a rank that is set aside.
Result<engine::Engine*> engine_of(const diapause_t* instance);

// Of a program that may know fewer options than there are, or more. NULL: none.
diapause_open_options known_options(const diapause_open_options* options, std::size_t bytes);

LogSink log_to(diapause_log_function function, void* user);  // NULL: to standard error

// Shared by the openings with and without MPI.
Status open(std::unique_ptr<comm::Comm> comm, const char* name, const diapause_open_options& options, diapause_t** out);

// Closes the instance, or finishes its job and closes it. What is left of it tells what closing has returned.
enum class End { of_instance, of_job };
Status end(diapause_t& instance, End what, double at_most_s = 1e9);

}  // namespace diapause::capi
