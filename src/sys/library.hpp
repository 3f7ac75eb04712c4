// Loads a shared library, which may be missing on the machine, when it is needed.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"

namespace diapause::sys {

class Library {
 public:
  // Loads the library `name`, as the dynamic linker understands it. Fails with Code::not_found if
  // it cannot be loaded.
  static Result<Library> open(const std::string& name);

  // Returns the function of that name, or nullptr if there is none. `Function` is the type of the
  // pointer.
  template <class Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(symbol(name));
  }

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  explicit Library(void* handle) : handle_(handle) {}
  void* symbol(const char* name) const;
  std::unique_ptr<void, Close> handle_;
};

}  // namespace diapause::sys
