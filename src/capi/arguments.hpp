// Shared by the C functions: checks of arguments, and the structs of diapause.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "base/result.hpp"
#include "capi/instance.hpp"
#include "diapause/diapause.h"
#include "library/engine.hpp"

namespace diapause::capi {

// Code::argument if the pointer is null; `what` describes it.
Status need(const void* pointer, const char* what);

// Code::argument if elements of that type have no size of their own.
Result<format::ElementType> element_type(diapause_type type);
Result<format::Region> described(uint64_t count, diapause_type type);

// Fills the members that the program's header has. Members that only the program's header has
// become zeros.
template <class Struct>
void copy_out(const Struct& from, Struct* to, std::size_t bytes) {
  if (to == nullptr) return;
  std::memcpy(to, &from, std::min(bytes, sizeof from));
  if (bytes > sizeof from)
    std::memset(reinterpret_cast<std::byte*>(to) + sizeof from, 0, bytes - sizeof from);
}

diapause_checkpoint_info in_c(const library::CheckpointInfo& from);

// Gives out the path of a directory, which the instance keeps.
int give_path(diapause_t* instance, const char** directory,
              Result<std::string> (library::Engine::*of)());

}  // namespace diapause::capi
