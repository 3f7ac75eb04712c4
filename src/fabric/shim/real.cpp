#include "fabric/shim/real.hpp"

#include <dlfcn.h>

namespace diapause::fabric {

Real Real::find() {
  Real real;
  // The name under which the folder of this library has the other one.
  void* const library = ::dlopen("libdiapause_real_ibverbs.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return real;
#define DIAPAUSE_FIND(name) \
  real.name = reinterpret_cast<decltype(real.name)>(::dlsym(library, #name));
  DIAPAUSE_VERBS(DIAPAUSE_FIND)
  DIAPAUSE_FIND(ibv_query_gid_type)
#undef DIAPAUSE_FIND
  return real;
}

}  // namespace diapause::fabric
