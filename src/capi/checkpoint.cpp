// The C functions about checkpoints: taking them, and what is known of them.
#include <fmt/core.h>

#include "capi/arguments.hpp"

namespace {

using diapause::Code;
using diapause::fail;
using diapause::Status;
using diapause::capi::copy_out;
using diapause::capi::described;
using diapause::capi::engine_of;
using diapause::capi::give_path;
using diapause::capi::guarded;
using diapause::capi::in_c;
using diapause::capi::need;

}  // namespace

extern "C" {

int diapause_on_capture(diapause_t* instance, diapause_capture_hook hook, void* context) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    if (hook == nullptr) {
      engine->on_capture({});
      return {};
    }
    engine->on_capture([hook, context]() -> Status {
      const diapause::capi::ProgramFloats floats;
      const int said = hook(context);
      if (said == 0) return {};
      return fail(
          Code::argument,
          fmt::format("the program's hook is not ready for a checkpoint: it said {}", said));
    });
    return {};
  });
}

int diapause_is_due(diapause_t* instance) {
  bool is_due = false;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY_ASSIGN(is_due, engine->is_due());
    return {};
  });
  return status == DIAPAUSE_OK ? static_cast<int>(is_due) : status;
}

int diapause_has_nodes_for(diapause_t* instance, int level) {
  bool has_nodes = false;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY_ASSIGN(has_nodes, engine->has_nodes_for(level));
    return {};
  });
  return status == DIAPAUSE_OK ? static_cast<int>(has_nodes) : status;
}

int diapause_checkpoint_sized(diapause_t* instance, uint64_t version, int level,
                              diapause_checkpoint_info* info, size_t info_bytes) {
  diapause::library::CheckpointInfo done;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->checkpoint(version, level, done);
  });
  copy_out(in_c(done), info, info_bytes);
  return status;
}

int diapause_checkpoint_begin_sized(diapause_t* instance, uint64_t version, int level,
                                    diapause_checkpoint_info* info, size_t info_bytes) {
  diapause::library::CheckpointInfo begun;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->begin_checkpoint(version, level, begun);
  });
  copy_out(in_c(begun), info, info_bytes);
  return status;
}

int diapause_checkpoint_add(diapause_t* instance, const char* region, const void* data,
                            uint64_t count, diapause_type type) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(region, "the region's name"));
    diapause::format::Region description;
    description.count = count;  // the elements are single bytes unless they have a type
    if (type != DIAPAUSE_BYTES) {
      DIAPAUSE_TRY_ASSIGN(description, described(count, type));
    }
    description.name = region;
    // The memory is only read: nothing is restored into it.
    auto* const memory = static_cast<std::byte*>(const_cast<void*>(data));
    return engine->add_to_checkpoint({std::move(description), memory});
  });
}

int diapause_checkpoint_commit_sized(diapause_t* instance, diapause_checkpoint_info* info,
                                     size_t info_bytes) {
  diapause::library::CheckpointInfo done;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->commit_checkpoint(done);
  });
  copy_out(in_c(done), info, info_bytes);
  return status;
}

int diapause_checkpoint_files_sized(diapause_t* instance, uint64_t version, int level, int valid,
                                    diapause_checkpoint_info* info, size_t info_bytes) {
  diapause::library::CheckpointInfo done;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->checkpoint_files(version, level, valid != 0, done);
  });
  copy_out(in_c(done), info, info_bytes);
  return status;
}

int diapause_checkpoint_give_up(diapause_t* instance, const char* why) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->give_up_checkpoint(why == nullptr ? "it says no reason" : why);
  });
}

int diapause_files(diapause_t* instance, const char** directory) {
  return give_path(instance, directory, &diapause::library::Engine::begin_files);
}

int diapause_snapshot_sized(diapause_t* instance, uint64_t version, diapause_checkpoint_info* info,
                            size_t info_bytes) {
  diapause::library::CheckpointInfo done;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->snapshot(version, done);
  });
  copy_out(in_c(done), info, info_bytes);
  return status;
}

int diapause_should_stop_sized(diapause_t* instance, diapause_stop_info* info, size_t info_bytes) {
  std::optional<diapause::library::Stop> stop;
  (void)guarded([&]() -> Status {
    if (const auto engine = engine_of(instance)) stop = (*engine)->should_stop();
    return {};
  });
  if (!stop) return DIAPAUSE_GO_ON;
  const bool by_signal = stop->signal != 0;
  const diapause_stop_info known = {stop->signal, by_signal ? static_cast<int>(stop->rank) : -1};
  copy_out(known, info, info_bytes);
  return by_signal ? DIAPAUSE_STOP_SIGNAL : DIAPAUSE_STOP_END;
}

int diapause_wait(diapause_t* instance, uint64_t version, int level, double seconds) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->wait(version, level, seconds);
  });
}

int diapause_poll_sized(diapause_t* instance, uint64_t version, diapause_progress* progress,
                        size_t progress_bytes) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(progress, "the place for the progress"));
    DIAPAUSE_TRY_ASSIGN(const diapause::library::VersionProgress now, engine->poll(version));
    const diapause_progress known = {now.version, now.level_asked, now.level_reached,
                                     now.in_flight ? 1 : 0, now.captured ? 1 : 0};
    copy_out(known, progress, progress_bytes);
    return {};
  });
}

const char* diapause_background_reason(const diapause_t* instance) {
  const auto engine = engine_of(instance);
  return engine ? (*engine)->background_reason().c_str() : "";
}

}  // extern "C"
