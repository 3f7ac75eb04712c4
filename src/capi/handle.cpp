// The C functions about an instance as a whole: open, close, messages, and the version of the
// library.
#include "capi/arguments.hpp"
#include "comm/self_comm.hpp"

namespace {

using diapause::Code;
using diapause::Status;
using diapause::capi::engine_of;
using diapause::capi::guarded;
using diapause::capi::need;

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

}  // namespace

extern "C" {

int diapause_open_sized(const char* name, const diapause_open_options* options,
                        size_t options_bytes, diapause_t** out) {
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
  return guarded(
      [&] { return diapause::capi::end_and_release(instance, diapause::capi::End::of_job); });
}

int diapause_close(diapause_t* instance) { return diapause_close_within(instance, 1e9); }

int diapause_close_within(diapause_t* instance, double seconds) {
  return guarded([&] {
    return diapause::capi::end_and_release(instance, diapause::capi::End::of_instance, seconds);
  });
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

const char* diapause_version(void) { return DIAPAUSE_VERSION; }

}  // extern "C"
