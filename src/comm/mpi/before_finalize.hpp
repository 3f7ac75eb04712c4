// What has to be done while MPI can still be used.
#pragma once

#include <functional>
#include <memory>

#include "base/result.hpp"

namespace diapause::comm {

// Has `last_call`, which must not throw, called at the beginning of MPI_Finalize, unless the object returned is gone by
// then: an attribute of MPI_COMM_SELF, which MPI deletes first of all. Several are called in the reverse order in which
// they were made, the same on all ranks, and may communicate.
Result<std::shared_ptr<void>> call_before_finalize(std::function<void()> last_call);

}  // namespace diapause::comm
