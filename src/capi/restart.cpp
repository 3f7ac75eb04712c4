// The C functions about restarts and about what a version holds.
#include <fmt/core.h>

#include "capi/arguments.hpp"

namespace {

using diapause::Code;
using diapause::fail;
using diapause::Status;
using diapause::capi::copy_out;
using diapause::capi::engine_of;
using diapause::capi::give_path;
using diapause::capi::guarded;
using diapause::capi::need;

diapause_restart_info in_c(const diapause::library::RestartInfo& from) {
  return {from.version, from.level,          from.stepped_back ? 1 : 0,
          from.bytes,   from.greatest_error, from.redundancy_lost ? 1 : 0};
}

diapause_region_info in_c(const diapause::format::Region& from) {
  return {from.name.c_str(), static_cast<diapause_type>(from.type), from.element_bytes, from.count};
}

diapause::Result<const diapause::format::ImageIndex*> stored(const diapause_t* instance) {
  DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
  const auto* index = engine->stored();
  if (index == nullptr)
    return fail(Code::argument, "no restart is open: call diapause_restart_begin first");
  return index;
}

}  // namespace

extern "C" {

int diapause_on_restore(diapause_t* instance, diapause_restore_hook hook, void* context) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    if (hook == nullptr) {
      engine->on_restore({});
      return {};
    }
    engine->on_restore([hook, context]() -> Status {
      const diapause::capi::ProgramFloats floats;
      const int said = hook(context);
      if (said == 0) return {};
      return fail(
          Code::argument,
          fmt::format("the program's hook cannot go on from the restored values: it said {}",
                      said));
    });
    return {};
  });
}

int diapause_restore_files(diapause_t* instance, const char** directory) {
  return give_path(instance, directory, &diapause::library::Engine::restore_files);
}

int diapause_restart_begin_sized(diapause_t* instance, uint64_t version,
                                 diapause_restart_info* info, size_t info_bytes) {
  diapause::library::RestartInfo chosen;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->restart_begin(version, chosen);
  });
  copy_out(in_c(chosen), info, info_bytes);
  return status;
}

int diapause_restart_mapped_sized(diapause_t* instance, uint64_t version, int check,
                                  diapause_restart_info* info, size_t info_bytes) {
  using diapause::engine::Purpose;
  diapause::library::RestartInfo chosen;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    if (check != DIAPAUSE_CHECK_FIRST && check != DIAPAUSE_CHECK_BEHIND) {
      return fail(Code::argument, fmt::format("{} is no diapause_check", check));
    }
    const Purpose purpose =
        check == DIAPAUSE_CHECK_FIRST ? Purpose::map_checked : Purpose::map_unchecked;
    return engine->restart_begin(version, chosen, purpose);
  });
  copy_out(in_c(chosen), info, info_bytes);
  return status;
}

int diapause_map(diapause_t* instance, const char* region, void** data) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(region, "the region's name"));
    DIAPAUSE_TRY(need(data, "the place for the address"));
    DIAPAUSE_TRY_ASSIGN(*data, engine->map(region));
    return {};
  });
}

int diapause_unmap(diapause_t* instance, void* data) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->unmap(static_cast<std::byte*>(data));
  });
}

int diapause_scrub_wait(diapause_t* instance) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->scrub_wait();
  });
}

int diapause_restart_sized(diapause_t* instance, uint64_t version, diapause_restart_info* info,
                           size_t info_bytes) {
  diapause::library::RestartInfo chosen;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->restart(version, chosen);
  });
  copy_out(in_c(chosen), info, info_bytes);
  return status;
}

int diapause_newest(diapause_t* instance, uint64_t at_most, uint64_t* version) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(version, "the place for the version"));
    DIAPAUSE_TRY_ASSIGN(*version, engine->newest(at_most));
    return {};
  });
}

int64_t diapause_stored_count(const diapause_t* instance) {
  int64_t count = 0;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(const auto* index, stored(instance));
    count = static_cast<int64_t>(index->regions.size());
    return {};
  });
  return status == DIAPAUSE_OK ? count : status;
}

int diapause_stored_at_sized(const diapause_t* instance, uint64_t position,
                             diapause_region_info* info, size_t info_bytes) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY(need(info, "the place for the description"));
    DIAPAUSE_TRY_ASSIGN(const auto* index, stored(instance));
    if (position >= index->regions.size()) {
      return fail(Code::not_found, fmt::format("there are {} stored regions, no number {}",
                                               index->regions.size(), position));
    }
    copy_out(in_c(index->regions[position]), info, info_bytes);
    return {};
  });
}

int diapause_stored_find_sized(const diapause_t* instance, const char* region,
                               diapause_region_info* info, size_t info_bytes) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY(need(info, "the place for the description"));
    DIAPAUSE_TRY(need(region, "the region's name"));
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(stored(instance));
    const auto* const found = engine->find_stored(region);
    if (found == nullptr)
      return fail(Code::not_found, fmt::format("the stored version holds no region '{}'", region));
    copy_out(in_c(*found), info, info_bytes);
    return {};
  });
}

int diapause_restore(diapause_t* instance, const char* const* regions, uint64_t count) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    std::vector<std::string> names;
    for (uint64_t i = 0; i < count; ++i) {
      DIAPAUSE_TRY(need(regions, "the list of names"));
      DIAPAUSE_TRY(need(regions[i], "a region's name"));
      names.emplace_back(regions[i]);
    }
    return engine->restore(names);
  });
}

int diapause_restart_end(diapause_t* instance) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->restart_end();
  });
}

const char* diapause_restart_reason(const diapause_t* instance) {
  const auto engine = engine_of(instance);
  return engine ? (*engine)->restart_reason().c_str() : "";
}

}  // extern "C"
