// The C functions of veloc.h: one client a process, and what it answers in VELOC's numbers.
#include "veloc.h"

#include <cstdio>
#include <exception>
#include <limits>
#include <memory>

#include "client.hpp"

namespace {

using diapause::drop_in::VelocClient;

// The interface has no handle. It is never destroyed by the end of the process: a program that ends
// without VELOC_Finalize has no MPI left to talk with.
std::unique_ptr<VelocClient>& client() {
  static auto* const only = new std::unique_ptr<VelocClient>;
  return *only;
}

int init(MPI_Comm comm, unsigned int id, const char* cfg_file) {
  try {
    client() = std::make_unique<VelocClient>(comm, id, cfg_file == nullptr ? "" : cfg_file);
    return VELOC_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "veloc: %s\n", error.what());
  }
  return VELOC_FAILURE;
}

template <class Call>
int status_of(Call call) {
  if (client() == nullptr) {
    std::fprintf(stderr, "veloc: VELOC_Init must come first, and VELOC_Finalize last\n");
    return VELOC_FAILURE;
  }
  try {
    return call(*client()) ? VELOC_SUCCESS : VELOC_FAILURE;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "veloc: %s\n", error.what());
  }
  return VELOC_FAILURE;
}

const char* text(const char* name) { return name == nullptr ? "" : name; }

std::set<int> set_of(const int* ids, int count) {
  return ids == nullptr || count <= 0 ? std::set<int>{} : std::set<int>(ids, ids + count);
}

}  // namespace

extern "C" {

int VELOC_Init(MPI_Comm comm, const char* cfg_file) { return init(comm, 0, cfg_file); }

int VELOC_Init_single(unsigned int id, const char* cfg_file) {
  return init(MPI_COMM_NULL, id, cfg_file);
}

int VELOC_Finalize(int) {
  return status_of([](VelocClient& c) {
    const bool is_safe = c.close();
    client().reset();
    return is_safe;
  });
}

int VELOC_Mem_protect(int id, void* ptr, size_t count, size_t base_size) {
  return status_of(
      [&](VelocClient& c) { return c.mem_protect(id, ptr, count, base_size, c.default_group()); });
}

int VELOC_Region_protect(int id, void* ptr, size_t count, size_t base_size, const char* name) {
  return status_of(
      [&](VelocClient& c) { return c.mem_protect(id, ptr, count, base_size, text(name)); });
}

int VELOC_Mem_unprotect(int id) {
  return status_of([&](VelocClient& c) { return c.mem_unprotect(id, c.default_group()); });
}

int VELOC_Region_unprotect(int id, const char* name) {
  return status_of([&](VelocClient& c) { return c.mem_unprotect(id, text(name)); });
}

int VELOC_Mem_clear() {
  return status_of([&](VelocClient& c) {
    c.mem_clear(c.default_group());
    return true;
  });
}

int VELOC_Region_clear(const char* name) {
  return status_of([&](VelocClient& c) {
    c.mem_clear(text(name));
    return true;
  });
}

int VELOC_Route_file(const char* original, char* routed) {
  return status_of([&](VelocClient& c) {
    const std::string path = c.route_file(text(original));
    if (path.empty() || path.size() >= VELOC_MAX_NAME || routed == nullptr) return false;
    std::snprintf(routed, VELOC_MAX_NAME, "%s", path.c_str());
    return true;
  });
}

int VELOC_Cleanup(const char* name) {
  return status_of([&](VelocClient& c) { return c.cleanup(text(name)); });
}

int VELOC_Checkpoint(const char* name, int version) {
  return status_of([&](VelocClient& c) { return c.checkpoint(text(name), version); });
}

int VELOC_Checkpoint_begin(const char* name, int version) {
  return status_of([&](VelocClient& c) { return c.checkpoint_begin(text(name), version); });
}

int VELOC_Checkpoint_mem() {
  return status_of([](VelocClient& c) { return c.checkpoint_mem(VELOC_CKPT_ALL, {}); });
}

int VELOC_Checkpoint_selective(int mode, int* ids, int id_count) {
  return status_of([&](VelocClient& c) { return c.checkpoint_mem(mode, set_of(ids, id_count)); });
}

int VELOC_Checkpoint_end(int success) {
  return status_of([&](VelocClient& c) { return c.checkpoint_end(success != 0); });
}

int VELOC_Checkpoint_wait() {
  return status_of([](VelocClient& c) { return c.checkpoint_wait(); });
}

int VELOC_Checkpoint_finished() {
  return status_of([](VelocClient& c) { return c.checkpoint_finished(); });
}

int VELOC_Restart_test(const char* name, int version) {
  int found = -1;
  status_of([&](VelocClient& c) {
    found = c.restart_test(text(name), version, -1);
    return true;
  });
  return found;
}

int VELOC_Restart(const char* name, int version) {
  return status_of([&](VelocClient& c) { return c.restart(text(name), version, -1); });
}

int VELOC_Restart_begin(const char* name, int version) {
  return status_of([&](VelocClient& c) { return c.restart_begin(text(name), version, -1); });
}

int VELOC_Recover_mem() {
  return status_of([](VelocClient& c) { return c.recover_mem(VELOC_RECOVER_ALL, {}); });
}

int VELOC_Recover_selective(int mode, int* ids, int id_count) {
  return status_of([&](VelocClient& c) { return c.recover_mem(mode, set_of(ids, id_count)); });
}

int VELOC_Recover_size(int id) {
  int bytes = -1;
  status_of([&](VelocClient& c) {
    const size_t found = c.recover_size(id);
    if (found <= std::numeric_limits<int>::max()) bytes = static_cast<int>(found);
    return true;
  });
  return bytes;
}

int VELOC_Restart_end(int success) {
  return status_of([&](VelocClient& c) { return c.restart_end(success != 0); });
}

}  // extern "C"
