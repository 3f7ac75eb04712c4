#include "capi/instance.hpp"

#include <algorithm>

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

Result<engine::Engine*> engine_of(const diapause_t* instance) {
  if (instance == nullptr) return fail(Code::argument, "the instance is NULL");
  if (instance->rank.engine == nullptr) {
    return fail(
        Code::argument,
        "this rank is set aside for the checkpoints of its node (async.mode = \"rank\"): it calls diapause_comm "
        "and diapause_close, and nothing else");
  }
  return instance->rank.engine.get();
}

Status open(std::unique_ptr<comm::Comm> comm, const char* name, const char* config_path, diapause_t** out) {
  engine::OpenRequest request;
  request.comm = std::move(comm);
  request.kernel = &sys::real_kernel();
  request.name = name;
  request.environment = sys::environment();
  if (config_path != nullptr) {
    request.config_path = config_path;
  } else {
    const auto variable = std::find_if(request.environment.begin(), request.environment.end(),
                                       [](const auto& entry) { return entry.first == "DIAPAUSE_CONFIG"; });
    if (variable != request.environment.end()) request.config_path = variable->second;
  }
  request.host_name = sys::host_name();
  request.working_directory = sys::current_directory();
  request.user_id = sys::user_id();
  request.log = standard_error_sink();
  request.stop_signals = sys::process_stop_signals();
  auto instance = std::make_unique<diapause_instance>();
  DIAPAUSE_TRY_ASSIGN(instance->rank, engine::Engine::open(std::move(request)));
  *out = instance.release();
  return {};
}

}  // namespace diapause::capi
