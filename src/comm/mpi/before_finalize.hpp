// Calls that must be made while MPI can still be used.
#pragma once

#include <functional>
#include <memory>

#include "base/result.hpp"

namespace diapause::comm {

// Registers `last_call` to be called at the beginning of MPI_Finalize, unless the returned object
// has been destroyed by then. `last_call` must not throw; it may communicate. It hangs on an
// attribute of MPI_COMM_SELF, which MPI deletes before anything else. Several of them are called in
// the reverse order of their registration, which must be the same on all ranks.
Result<std::shared_ptr<void>> call_before_finalize(std::function<void()> last_call);

}  // namespace diapause::comm
