// A shared library that may or may not be on the machine, loaded when it is wanted.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"

namespace diapause::sys {

class Library {
 public:
  // `name` as the dynamic linker takes it. Code::not_found if it cannot be loaded.
  static Result<Library> open(const std::string& name);

  // The function of that name; nullptr if there is none. `Function`: its type, a pointer.
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
