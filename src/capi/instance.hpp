// The wall between C and C++: every C entry runs inside `guarded`, which lets nothing through but a status.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "diapause/diapause.h"
#include "engine/engine.hpp"

// What a handle points to.
struct diapause_instance {
  diapause::engine::Opened rank;
  std::shared_ptr<const void> program_comm;  // an MPI_Comm, if it was opened with MPI
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

// Shared by the openings with and without MPI.
Status open(std::unique_ptr<comm::Comm> comm, const char* name, const char* config_path, diapause_t** out);

}  // namespace diapause::capi
