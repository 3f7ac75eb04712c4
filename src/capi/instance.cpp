#include "capi/instance.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "sys/process.hpp"
#include "sys/signals.hpp"

namespace diapause::capi {
namespace {

thread_local std::string last_error_text;

}  // namespace

int report(const Error& error) noexcept {
  try {
    last_error_text = error.message;
  } catch (...) {
    last_error_text.clear();
  }
  return static_cast<int>(error.code);
}

const char* last_error() noexcept { return last_error_text.c_str(); }

Result<library::Engine*> engine_of(const diapause_t* instance) {
  if (instance == nullptr) return fail(Code::argument, "the instance is NULL");
  if (instance->ended)
    return fail(Code::off, "MPI_Finalize has closed the instance; only diapause_close may follow");
  if (is_copy(*instance)) {
    return fail(Code::argument, fmt::format("the instance was opened by process {}, and this is a "
                                            "child of it: only that one may use it",
                                            instance->process));
  }
  if (instance->rank.engine == nullptr) {
    return fail(Code::argument,
                "this rank is dedicated to the checkpoints of its node (async.mode = \"rank\"): "
                "it calls diapause_comm and diapause_close, and nothing else");
  }
  return instance->rank.engine.get();
}

diapause_open_options known_options(const diapause_open_options* options, std::size_t bytes) {
  diapause_open_options known = DIAPAUSE_OPEN_OPTIONS_INIT;
  if (options != nullptr) std::memcpy(&known, options, std::min(bytes, sizeof known));
  return known;
}

LogSink log_to(diapause_log_function function, void* user) {
  if (function == nullptr) return standard_error_sink();
  return [function, user](Severity severity, const std::string& message) {
    function(user, static_cast<int>(severity), message.c_str());
  };
}

bool is_copy(const diapause_t& instance) { return instance.process != sys::process_id(); }

Status end_and_release(diapause_t* instance, End what, double at_most_s) {
  if (instance == nullptr) return {};
  if (!is_copy(*instance)) {
    const std::unique_ptr<diapause_t> owned(instance);
    return end(*owned, what, at_most_s);
  }
  if (what == End::of_instance) return {};
  return fail(Code::argument,
              fmt::format("only process {}, which has opened the instance, can finish the job",
                          instance->process));
}

Status end(diapause_t& instance, End what, double at_most_s) {
  if (instance.ended && what == End::of_job) {
    return fail(Code::off,
                "MPI_Finalize has closed the instance before: its job is not finished, and all of "
                "it is kept");
  }
  if (instance.ended) return *instance.ended;
  Status status;
  if (library::Engine* const engine = instance.rank.engine.get()) {
    status = what == End::of_job ? engine->finish() : engine->close(at_most_s);
  }
  if (instance.rank.dedicated) instance.rank.dedicated->serve();
  instance.rank = {};
  instance.program_comm.reset();
  instance.ended = status;
  return status;
}

Status open(std::unique_ptr<comm::Comm> comm, const char* name,
            const diapause_open_options& options, diapause_t** out) {
  if (options.config_path != nullptr && options.config_text != nullptr) {
    return fail(Code::argument,
                "config_path and config_text exclude each other; set one of them to NULL");
  }
  library::OpenRequest request;
  request.comm = std::move(comm);
  request.kernel = &sys::real_kernel();
  request.name = name;
  request.environment = sys::environment();
  if (options.config_path != nullptr) {
    request.config_path = options.config_path;
  } else if (options.config_text != nullptr) {
    request.config_text = options.config_text;
  } else {
    const auto variable =
        std::find_if(request.environment.begin(), request.environment.end(),
                     [](const auto& entry) { return entry.first == "DIAPAUSE_CONFIG"; });
    if (variable != request.environment.end()) request.config_path = variable->second;
  }
  request.host_name = sys::host_name();
  request.working_directory = sys::current_directory();
  request.user_id = sys::user_id();
  request.log = log_to(options.log, options.log_user);
  request.stop_signals = sys::process_stop_signals();
  auto instance = std::make_unique<diapause_instance>();
  DIAPAUSE_TRY_ASSIGN(instance->rank, library::Engine::open(std::move(request)));
  instance->process = sys::process_id();
  *out = instance.release();
  return {};
}

}  // namespace diapause::capi
