#include "together.hpp"

#include <stdexcept>

namespace diapause::drop_in {

void agree(MPI_Comm comm, const std::string& failure) {
  int mine = failure.empty() ? 0 : 1;
  int any = 0;
  MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, comm);
  if (mine != 0) throw std::runtime_error(failure);
  if (any != 0) throw std::runtime_error("another rank has failed");
}

void together(MPI_Comm comm, const std::function<void()>& body) {
  std::string failure;
  try {
    body();
  } catch (const std::exception& error) {
    failure = error.what();
    if (failure.empty()) failure = "a failure without a text";
  }
  agree(comm, failure);
}

}  // namespace diapause::drop_in
