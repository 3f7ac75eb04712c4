// The C functions of diapause.h: each checks its arguments, calls the engine once, and copies the
// results out. There is no logic here.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "capi/instance.hpp"
#include "comm/self_comm.hpp"

namespace diapause::capi {
const char* last_error() noexcept;
}

namespace {

using diapause::Code;
using diapause::fail;
using diapause::Status;
using diapause::capi::engine_of;
using diapause::capi::guarded;

static_assert(static_cast<int>(Code::argument) == DIAPAUSE_ERR_ARGUMENT);
static_assert(static_cast<int>(Code::config) == DIAPAUSE_ERR_CONFIG);
static_assert(static_cast<int>(Code::io) == DIAPAUSE_ERR_IO);
static_assert(static_cast<int>(Code::full) == DIAPAUSE_ERR_FULL);
static_assert(static_cast<int>(Code::busy) == DIAPAUSE_ERR_BUSY);
static_assert(static_cast<int>(Code::corrupt) == DIAPAUSE_ERR_CORRUPT);
static_assert(static_cast<int>(Code::not_found) == DIAPAUSE_ERR_NOT_FOUND);
static_assert(static_cast<int>(Code::mismatch) == DIAPAUSE_ERR_MISMATCH);
static_assert(static_cast<int>(Code::comm) == DIAPAUSE_ERR_COMM);
static_assert(static_cast<int>(Code::off) == DIAPAUSE_ERR_OFF);
static_assert(static_cast<int>(Code::internal) == DIAPAUSE_ERR_INTERNAL);
static_assert(static_cast<int>(Code::denied) == DIAPAUSE_ERR_DENIED);
static_assert(static_cast<int>(Code::memory) == DIAPAUSE_ERR_MEMORY);
static_assert(static_cast<int>(Code::timeout) == DIAPAUSE_ERR_TIMEOUT);
static_assert(static_cast<int>(Code::again) == DIAPAUSE_ERR_AGAIN);
static_assert(static_cast<int>(diapause::format::ElementType::float64) == DIAPAUSE_FLOAT64);

Status need(const void* pointer, const char* what) {
  if (pointer != nullptr) return {};
  return fail(Code::argument, fmt::format("{} is NULL", what));
}

diapause::Result<diapause::format::ElementType> element_type(diapause_type type) {
  const auto number = static_cast<std::uint32_t>(type);
  if (number == 0 || number >= diapause::format::kElementTypes) {
    return fail(Code::argument, fmt::format("{} is not an element type with a size of its own", number));
  }
  return static_cast<diapause::format::ElementType>(number);
}

Status protect(diapause_t* instance, const char* region, void* data, diapause::format::Region description) {
  DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
  DIAPAUSE_TRY(need(region, "the region's name"));
  description.name = region;
  return engine->protect({std::move(description), static_cast<std::byte*>(data)});
}

// Fills the members that the program's header has. Members that only the program's header has become
// zeros.
template <class Struct>
void copy_out(const Struct& from, Struct* to, std::size_t bytes) {
  if (to == nullptr) return;
  std::memcpy(to, &from, std::min(bytes, sizeof from));
  if (bytes > sizeof from) std::memset(reinterpret_cast<std::byte*>(to) + sizeof from, 0, bytes - sizeof from);
}

diapause_checkpoint_info in_c(const diapause::library::CheckpointInfo& from) {
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

diapause_restart_info in_c(const diapause::library::RestartInfo& from) {
  return {from.version, from.level, from.stepped_back ? 1 : 0, from.bytes, from.greatest_error};
}

diapause_region_info in_c(const diapause::format::Region& from) {
  return {from.name.c_str(), static_cast<diapause_type>(from.type), from.element_bytes, from.count};
}

diapause::Result<const diapause::format::ImageIndex*> stored(const diapause_t* instance) {
  DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
  const auto* index = engine->stored();
  if (index == nullptr) return fail(Code::argument, "no restart is open: call diapause_restart_begin first");
  return index;
}

diapause::Result<diapause::format::Region> described(uint64_t count, diapause_type type) {
  diapause::format::Region description;
  DIAPAUSE_TRY_ASSIGN(description.type, element_type(type));
  description.element_bytes = diapause::format::element_bytes_of(description.type);
  description.count = count;
  return description;
}

// Gives out the path of a directory, which the instance keeps.
int give_path(diapause_t* instance, const char** directory,
              diapause::Result<std::string> (diapause::library::Engine::*of)()) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(directory, "the place for the path"));
    DIAPAUSE_TRY_ASSIGN(instance->path, (engine->*of)());
    *directory = instance->path.c_str();
    return {};
  });
}

}  // namespace

extern "C" {

int diapause_open_sized(const char* name, const diapause_open_options* options, size_t options_bytes,
                        diapause_t** out) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY(need(out, "the place for the handle"));
    *out = nullptr;
    DIAPAUSE_TRY(need(name, "the instance's name"));
    const diapause_open_options known = diapause::capi::known_options(options, options_bytes);
    return diapause::capi::open(diapause::comm::make_self_comm(), name, known, out);
  });
}

int diapause_open(const char* name, const char* config_path, diapause_t** out) {
  diapause_open_options options = DIAPAUSE_OPEN_OPTIONS_INIT;
  options.config_path = config_path;
  return diapause_open_with(name, &options, out);
}

int diapause_finish(diapause_t* instance) {
  return guarded([&] { return diapause::capi::end_and_release(instance, diapause::capi::End::of_job); });
}

int diapause_close(diapause_t* instance) { return diapause_close_within(instance, 1e9); }

int diapause_close_within(diapause_t* instance, double seconds) {
  return guarded([&] { return diapause::capi::end_and_release(instance, diapause::capi::End::of_instance, seconds); });
}

int diapause_protect(diapause_t* instance, const char* region, void* data, uint64_t count, diapause_type type) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(auto description, described(count, type));
    return protect(instance, region, data, std::move(description));
  });
}

int diapause_protect_bytes(diapause_t* instance, const char* region, void* data, uint64_t count,
                           uint64_t element_bytes) {
  return guarded([&]() -> Status {
    diapause::format::Region description;
    description.element_bytes = element_bytes;
    description.count = count;
    return protect(instance, region, data, std::move(description));
  });
}

int diapause_protect_block(diapause_t* instance, const char* region, void* data, diapause_type type, int dims,
                           const uint64_t* shape, const uint64_t* global_shape, const uint64_t* start) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(const auto element, element_type(type));
    if (dims < 1 || dims > static_cast<int>(diapause::format::kMaxDims)) {
      return fail(Code::argument, fmt::format("{} dimensions: a block has 1 to {}", dims, diapause::format::kMaxDims));
    }
    DIAPAUSE_TRY(need(shape, "the shape"));
    DIAPAUSE_TRY(need(global_shape, "the global shape"));
    DIAPAUSE_TRY(need(start, "the start"));
    diapause::format::Region description;
    description.type = element;
    description.element_bytes = diapause::format::element_bytes_of(element);
    description.count = 1;
    for (int i = 0; i < dims; ++i) {
      if (shape[i] > global_shape[i] || start[i] > global_shape[i] - shape[i]) {
        return fail(Code::argument, fmt::format("dimension {}: {} elements from {} on do not lie in {}", i, shape[i],
                                                start[i], global_shape[i]));
      }
      if (shape[i] != 0 && description.count > std::numeric_limits<uint64_t>::max() / shape[i]) {
        return fail(Code::argument, "the block has more elements than there can be");
      }
      description.count *= shape[i];
      description.place.push_back({shape[i], global_shape[i], start[i]});
    }
    return protect(instance, region, data, std::move(description));
  });
}

int diapause_unprotect(diapause_t* instance, const char* region) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(region, "the region's name"));
    return engine->unprotect(region);
  });
}

int diapause_declare(diapause_t* instance, const char* region, diapause_declaration declaration) {
  return guarded([&]() -> Status {
    using diapause::capture::Declaration;
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(region, "the region's name"));
    const int number = declaration;
    if (number < DIAPAUSE_CHANGING || number > DIAPAUSE_CONSTANT) {
      return fail(Code::argument, "there is no declaration of that number");
    }
    constexpr Declaration kDeclarations[] = {Declaration::changing, Declaration::stable, Declaration::constant};
    return engine->declare(region, kDeclarations[number]);
  });
}

int diapause_allow_loss(diapause_t* instance, const char* region, diapause_lossy_codec codec, double bound) {
  return guarded([&]() -> Status {
    using diapause::codec::CodecId;
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(region, "the region's name"));
    const int number = codec;
    if (number < DIAPAUSE_LATTICE || number > DIAPAUSE_ZFP) {
      return fail(Code::argument, "there is no lossy codec of that number");
    }
    constexpr CodecId kCodecs[] = {CodecId::lattice, CodecId::sz3, CodecId::zfp};
    return engine->allow_loss(region, {kCodecs[number], bound});
  });
}

int diapause_keep_invariant(diapause_t* instance, const char* const* regions, uint64_t count, diapause_invariant holds,
                            void* context) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(regions, "the list of names"));
    if (holds == nullptr) return fail(Code::argument, "the invariant is NULL");
    diapause::engine::Invariant invariant;
    for (uint64_t i = 0; i < count; ++i) {
      DIAPAUSE_TRY(need(regions[i], "a region's name"));
      invariant.regions.emplace_back(regions[i]);
    }
    invariant.holds = [holds, context](std::span<const diapause::ByteView> views) {
      std::vector<const void*> values;
      for (const diapause::ByteView view : views) values.push_back(view.data());
      return holds(values.data(), context) != 0;
    };
    return engine->keep_invariant(std::move(invariant));
  });
}

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
      return fail(Code::argument,
                  fmt::format("the program's hook cannot go on from the restored values: it said {}", said));
    });
    return {};
  });
}

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
      return fail(Code::argument, fmt::format("the program's hook is not ready for a checkpoint: it said {}", said));
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

int diapause_checkpoint_sized(diapause_t* instance, uint64_t version, int level, diapause_checkpoint_info* info,
                              size_t info_bytes) {
  diapause::engine::CheckpointInfo done;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->checkpoint(version, level, done);
  });
  copy_out(in_c(done), info, info_bytes);
  return status;
}

int diapause_checkpoint_begin_sized(diapause_t* instance, uint64_t version, int level, diapause_checkpoint_info* info,
                                    size_t info_bytes) {
  diapause::library::CheckpointInfo begun;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->begin_checkpoint(version, level, begun);
  });
  copy_out(in_c(begun), info, info_bytes);
  return status;
}

int diapause_checkpoint_add(diapause_t* instance, const char* region, const void* data, uint64_t count,
                            diapause_type type) {
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

int diapause_checkpoint_commit_sized(diapause_t* instance, diapause_checkpoint_info* info, size_t info_bytes) {
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
  diapause::engine::CheckpointInfo done;
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

int diapause_restore_files(diapause_t* instance, const char** directory) {
  return give_path(instance, directory, &diapause::library::Engine::restore_files);
}

int diapause_snapshot_sized(diapause_t* instance, uint64_t version, diapause_checkpoint_info* info, size_t info_bytes) {
  diapause::engine::CheckpointInfo done;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->snapshot(version, done);
  });
  copy_out(in_c(done), info, info_bytes);
  return status;
}

int diapause_should_stop_sized(diapause_t* instance, diapause_stop_info* info, size_t info_bytes) {
  std::optional<diapause::engine::Stop> stop;
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

int diapause_worker_of(const diapause_t* instance) {
  diapause_worker worker = DIAPAUSE_WORKER_CALL;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(const diapause::library::Engine* const engine, engine_of(instance));
    worker = static_cast<diapause_worker>(engine->worker());
    return {};
  });
  return status == DIAPAUSE_OK ? static_cast<int>(worker) : status;
}

int diapause_wait(diapause_t* instance, uint64_t version, int level, double seconds) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->wait(version, level, seconds);
  });
}

int diapause_poll_sized(diapause_t* instance, uint64_t version, diapause_progress* progress, size_t progress_bytes) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(progress, "the place for the progress"));
    DIAPAUSE_TRY_ASSIGN(const diapause::engine::VersionProgress now, engine->poll(version));
    const diapause_progress known = {now.version, now.level_asked, now.level_reached, now.in_flight ? 1 : 0,
                                     now.captured ? 1 : 0};
    copy_out(known, progress, progress_bytes);
    return {};
  });
}

const char* diapause_background_reason(const diapause_t* instance) {
  const auto engine = engine_of(instance);
  return engine ? (*engine)->background_reason().c_str() : "";
}

int diapause_restart_begin_sized(diapause_t* instance, uint64_t version, diapause_restart_info* info,
                                 size_t info_bytes) {
  diapause::engine::RestartInfo chosen;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    return engine->restart_begin(version, chosen);
  });
  copy_out(in_c(chosen), info, info_bytes);
  return status;
}

int diapause_restart_mapped_sized(diapause_t* instance, uint64_t version, int check, diapause_restart_info* info,
                                  size_t info_bytes) {
  using diapause::engine::Purpose;
  diapause::engine::RestartInfo chosen;
  const int status = guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    if (check != DIAPAUSE_CHECK_FIRST && check != DIAPAUSE_CHECK_BEHIND) {
      return fail(Code::argument, fmt::format("{} is no diapause_check", check));
    }
    const Purpose purpose = check == DIAPAUSE_CHECK_FIRST ? Purpose::map_checked : Purpose::map_unchecked;
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

int diapause_restart_sized(diapause_t* instance, uint64_t version, diapause_restart_info* info, size_t info_bytes) {
  diapause::engine::RestartInfo chosen;
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

int diapause_stored_at_sized(const diapause_t* instance, uint64_t position, diapause_region_info* info,
                             size_t info_bytes) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY(need(info, "the place for the description"));
    DIAPAUSE_TRY_ASSIGN(const auto* index, stored(instance));
    if (position >= index->regions.size()) {
      return fail(Code::not_found,
                  fmt::format("there are {} stored regions, no number {}", index->regions.size(), position));
    }
    copy_out(in_c(index->regions[position]), info, info_bytes);
    return {};
  });
}

int diapause_stored_find_sized(const diapause_t* instance, const char* region, diapause_region_info* info,
                               size_t info_bytes) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY(need(info, "the place for the description"));
    DIAPAUSE_TRY(need(region, "the region's name"));
    DIAPAUSE_TRY_ASSIGN(const auto* index, stored(instance));
    for (const auto& candidate : index->regions) {
      if (candidate.name != region) continue;
      copy_out(in_c(candidate), info, info_bytes);
      return {};
    }
    return fail(Code::not_found, fmt::format("the stored version holds no region '{}'", region));
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

const char* diapause_last_error(void) { return diapause::capi::last_error(); }

const char* diapause_status_name(int status) {
  switch (status) {
    case DIAPAUSE_OK:
      return "DIAPAUSE_OK";
    case DIAPAUSE_ERR_ARGUMENT:
      return "DIAPAUSE_ERR_ARGUMENT";
    case DIAPAUSE_ERR_CONFIG:
      return "DIAPAUSE_ERR_CONFIG";
    case DIAPAUSE_ERR_IO:
      return "DIAPAUSE_ERR_IO";
    case DIAPAUSE_ERR_FULL:
      return "DIAPAUSE_ERR_FULL";
    case DIAPAUSE_ERR_BUSY:
      return "DIAPAUSE_ERR_BUSY";
    case DIAPAUSE_ERR_CORRUPT:
      return "DIAPAUSE_ERR_CORRUPT";
    case DIAPAUSE_ERR_NOT_FOUND:
      return "DIAPAUSE_ERR_NOT_FOUND";
    case DIAPAUSE_ERR_MISMATCH:
      return "DIAPAUSE_ERR_MISMATCH";
    case DIAPAUSE_ERR_COMM:
      return "DIAPAUSE_ERR_COMM";
    case DIAPAUSE_ERR_OFF:
      return "DIAPAUSE_ERR_OFF";
    case DIAPAUSE_ERR_INTERNAL:
      return "DIAPAUSE_ERR_INTERNAL";
    case DIAPAUSE_ERR_DENIED:
      return "DIAPAUSE_ERR_DENIED";
    case DIAPAUSE_ERR_MEMORY:
      return "DIAPAUSE_ERR_MEMORY";
    case DIAPAUSE_ERR_TIMEOUT:
      return "DIAPAUSE_ERR_TIMEOUT";
    case DIAPAUSE_ERR_AGAIN:
      return "DIAPAUSE_ERR_AGAIN";
    default:
      return "unknown status";
  }
}

int diapause_set_log(diapause_t* instance, diapause_log_function function, void* user) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY(need(instance, "the instance"));
    diapause::LogSink log = diapause::capi::log_to(function, user);
    if (instance->rank.engine) instance->rank.engine->set_log(log);
    if (instance->rank.dedicated) instance->rank.dedicated->set_log(std::move(log));
    return {};
  });
}

int diapause_inject_bit_flip(diapause_t* instance, const char* region, uint64_t element, uint32_t bit) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(region, "the region's name"));
    return engine->inject_bit_flip(region, element, bit);
  });
}

const char* diapause_version(void) { return DIAPAUSE_VERSION; }

}  // extern "C"
