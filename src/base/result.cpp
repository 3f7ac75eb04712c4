#include "base/result.hpp"

#include <cerrno>
#include <system_error>

namespace diapause {

Code code_of_errno(int os_errno) {
  switch (os_errno) {
    case ENOSPC:
    case EDQUOT:
      return Code::full;
    case EACCES:
    case EPERM:
      return Code::denied;
    case ENOMEM:
      return Code::memory;
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case ENOBUFS:
    case EINTR:
      return Code::again;
    default:
      return Code::io;
  }
}

bool is_of_the_moment(Code code) {
  return code == Code::again || code == Code::memory || code == Code::full || code == Code::timeout;
}

Error os_error(const std::string& what, int os_errno) {
  return Error{code_of_errno(os_errno), what + ": " + std::generic_category().message(os_errno),
               os_errno};
}

}  // namespace diapause
