#include "comm/mpi/before_finalize.hpp"

#include <mpi.h>

#include <utility>

namespace diapause::comm {
namespace {

class LastCall {
 public:
  explicit LastCall(std::function<void()> call) : call_(std::move(call)) {}
  LastCall(LastCall&&) = delete;
  ~LastCall() {
    call_ = nullptr;
    // Either MPI_Finalize has come, or the attribute was never set.
    if (keyval_ == MPI_KEYVAL_INVALID) return;
    int finalized = 0;
    if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0) return;
    MPI_Comm_delete_attr(MPI_COMM_SELF, keyval_);
    MPI_Comm_free_keyval(&keyval_);
  }

  bool attach() {
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_deletion, &keyval_, nullptr) !=
        MPI_SUCCESS)
      return false;
    return MPI_Comm_set_attr(MPI_COMM_SELF, keyval_, this) == MPI_SUCCESS;
  }

 private:
  // MPI calls this in MPI_Finalize, or when the destructor deletes the attribute.
  static int at_deletion(MPI_Comm, int, void* value, void*) {
    auto* const self = static_cast<LastCall*>(value);
    if (!self->call_) return MPI_SUCCESS;
    MPI_Comm_free_keyval(&self->keyval_);  // MPI frees it when this attribute is deleted
    std::exchange(self->call_, nullptr)();
    return MPI_SUCCESS;
  }

  std::function<void()> call_;
  int keyval_ = MPI_KEYVAL_INVALID;
};

}  // namespace

Result<std::shared_ptr<void>> call_before_finalize(std::function<void()> last_call) {
  auto attribute = std::make_shared<LastCall>(std::move(last_call));
  if (!attribute->attach()) return fail(Code::comm, "MPI_COMM_SELF takes no attribute");
  return std::shared_ptr<void>(std::move(attribute));
}

}  // namespace diapause::comm
