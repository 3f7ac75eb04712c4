#include "capi/arguments.hpp"

#include <fmt/core.h>

namespace diapause::capi {

Status need(const void* pointer, const char* what) {
  if (pointer != nullptr) return {};
  return fail(Code::argument, fmt::format("{} is NULL", what));
}

Result<format::ElementType> element_type(diapause_type type) {
  const auto number = static_cast<std::uint32_t>(type);
  if (number == 0 || number >= format::kElementTypes) {
    return fail(Code::argument,
                fmt::format("{} is not an element type with a size of its own", number));
  }
  return static_cast<format::ElementType>(number);
}

Result<format::Region> described(uint64_t count, diapause_type type) {
  format::Region description;
  DIAPAUSE_TRY_ASSIGN(description.type, element_type(type));
  description.element_bytes = format::element_bytes_of(description.type);
  description.count = count;
  return description;
}

diapause_checkpoint_info in_c(const library::CheckpointInfo& from) {
  return {from.taken ? 1 : 0,
          from.version,
          from.level_asked,
          from.level_reached,
          from.bytes,
          from.bytes_total,
          from.blocked_s,
          from.skipped ? 1 : 0,
          from.waited_s,
          static_cast<int>(from.background),
          from.background_version};
}

int give_path(diapause_t* instance, const char** directory,
              Result<std::string> (library::Engine::*of)()) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(directory, "the place for the path"));
    DIAPAUSE_TRY_ASSIGN(instance->path, (engine->*of)());
    *directory = instance->path.c_str();
    return {};
  });
}

}  // namespace diapause::capi
