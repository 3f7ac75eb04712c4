#include "sys/library.hpp"

#include <dlfcn.h>

namespace diapause::sys {

Result<Library> Library::open(const std::string& name) {
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return Library(handle);
  const char* why = ::dlerror();
  return fail(Code::not_found, why != nullptr ? why : "cannot load " + name);
}

void* Library::symbol(const char* name) const { return ::dlsym(handle_.get(), name); }

void Library::Close::operator()(void* handle) const { ::dlclose(handle); }

}  // namespace diapause::sys
