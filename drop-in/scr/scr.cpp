// The C functions of scr.h: one run a process, and what it answers in SCR's numbers.
#include "scr.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>

#include "run.hpp"

namespace {

using diapause::drop_in::ScrParameters;
using diapause::drop_in::ScrRun;
using diapause::drop_in::ScrSettings;

constexpr int kFailure = 1;

// The interface has no handle. Neither is destroyed by the end of the process: a program that ends
// without SCR_Finalize has no MPI left to talk with.
std::unique_ptr<ScrRun>& run() {
  static auto* const only = new std::unique_ptr<ScrRun>;
  return *only;
}

ScrParameters& of_program() {
  static auto* const only = new ScrParameters;
  return *only;
}

template <class Body>
int status_of(Body body) {
  try {
    body();
    return SCR_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "scr: %s\n", error.what());
  }
  return kFailure;
}

template <class Call>
int in_run(Call call) {
  return status_of([&] {
    if (run() == nullptr)
      throw std::runtime_error("SCR_Init must come first, and SCR_Finalize last");
    call(*run());
  });
}

// Answers a question by a flag. All ranks ask, also one that has no flag.
template <class Question>
int ask(int* flag, Question question) {
  if (flag != nullptr) *flag = 0;
  return in_run([&](ScrRun& r) {
    const bool is_so = question(r);
    if (flag == nullptr) throw std::runtime_error("there is no address for the flag");
    *flag = is_so ? 1 : 0;
  });
}

// The library never gives out more than SCR_MAX_FILENAME bytes.
void give(const std::string& text, char* to) {
  if (to != nullptr) std::memcpy(to, text.c_str(), text.size() + 1);
}

std::string text(const char* name) { return name == nullptr ? "" : name; }

}  // namespace

extern "C" {

int SCR_Init(void) {
  return status_of([] {
    if (run() != nullptr) throw std::runtime_error("SCR_Init was called before");
    const ScrSettings settings(of_program());
    if (settings.number("SCR_ENABLE", 1) == 0)
      throw std::runtime_error("SCR_ENABLE = 0: nothing is done");
    run() = std::make_unique<ScrRun>(of_program());
  });
}

int SCR_Finalize(void) {
  const int status = in_run([](ScrRun& r) { r.close(); });
  run().reset();
  of_program() = {};
  return status;
}

const char* SCR_Config(const char* config) {
  const char* value = nullptr;
  status_of([&] {
    const ScrParameters::Answer answer = of_program().apply(text(config));
    if (!answer.is_query) return;
    const bool is_plain = text(config).find('=') == std::string::npos;
    const auto found = is_plain ? ScrSettings(of_program()).get(text(config)) : answer.value;
    if (found) value = strdup(found->c_str());
  });
  return value;
}

const char* SCR_Configf(const char* format, ...) {
  char line[4096];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length >= 0 && static_cast<std::size_t>(length) < sizeof line) return SCR_Config(line);
  std::fprintf(stderr, "scr: a line of %d bytes is too long for SCR_Configf\n", length);
  return nullptr;
}

int SCR_Route_file(const char* name, char* file) {
  return status_of([&] {
    if (text(name).empty() || file == nullptr)
      throw std::runtime_error(
          "SCR_Route_file needs the name of a file, and an address for its path");
    if (text(name).size() >= SCR_MAX_FILENAME)
      throw std::runtime_error("the name of a file is longer than SCR_MAX_FILENAME allows");
    give(run() == nullptr ? text(name) : run()->route(name), file);
  });
}

int SCR_Have_restart(int* flag, char* name) {
  return ask(flag, [&](ScrRun& r) {
    const auto candidate = r.candidate();
    if (candidate) give(*candidate, name);
    return candidate.has_value();
  });
}

int SCR_Start_restart(char* name) {
  return in_run([&](ScrRun& r) { give(r.start_restart(), name); });
}

int SCR_Complete_restart(int valid) {
  return in_run([&](ScrRun& r) { r.complete_restart(valid != 0); });
}

int SCR_Need_checkpoint(int* flag) {
  return ask(flag, [](ScrRun& r) { return r.is_checkpoint_due(); });
}

int SCR_Start_output(const char* name, int flags) {
  return in_run([&](ScrRun& r) { r.start_output(text(name), flags); });
}

int SCR_Complete_output(int valid) {
  return in_run([&](ScrRun& r) { r.complete_output(valid != 0); });
}

int SCR_Start_checkpoint(void) { return SCR_Start_output(nullptr, SCR_FLAG_CHECKPOINT); }

int SCR_Complete_checkpoint(int valid) { return SCR_Complete_output(valid); }

int SCR_Current(const char* name) {
  return in_run([&](ScrRun& r) { r.restart_from(text(name)); });
}

int SCR_Drop(const char* name) {
  return in_run([&](ScrRun& r) { r.drop(text(name)); });
}

int SCR_Delete(const char* name) {
  return in_run([&](ScrRun& r) { r.remove(text(name)); });
}

char* SCR_Get_version(void) {
  static char version[] = SCR_VERSION;
  return version;
}

int SCR_Should_exit(int* flag) {
  return ask(flag, [](ScrRun& r) { return r.is_near_the_end(); });
}

}  // extern "C"
