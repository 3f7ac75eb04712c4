// The C++ interface of VELOC, made by Diapause; veloc.h tells what the functions do. They return
// whether they succeeded. The order of the virtual functions is VELOC's: programs that were
// compiled with its header run too.
#ifndef DIAPAUSE_DROP_IN_VELOC_HPP
#define DIAPAUSE_DROP_IN_VELOC_HPP

#include <mpi.h>

#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <string>

#include "veloc/defs.h"

namespace veloc {

class client_t {
 protected:
  static constexpr char default_mem_group[] = "default";
  using serializer_t = std::function<void(std::ostream&)>;
  using deserializer_t = std::function<bool(std::istream&)>;
  using observer_t = std::function<void(const std::string& name, int version)>;

 public:
  virtual bool mem_protect(int id, void* ptr, size_t count, size_t base_size,
                           const std::string& name = default_mem_group) = 0;
  // The data that `s` writes is stored, and given to `d` at a restart.
  virtual bool mem_protect(int id, const serializer_t& s, const deserializer_t& d,
                           const std::string& name = default_mem_group) = 0;
  virtual bool mem_unprotect(int id, const std::string& name = default_mem_group) = 0;
  virtual void mem_clear(const std::string& name = default_mem_group) = 0;
  virtual bool register_observer(int type, const observer_t& obs) = 0;

  // An empty string where there is no place for files.
  virtual std::string route_file(const std::string& original) = 0;
  virtual bool cleanup(const std::string& name) = 0;

  virtual bool checkpoint(const std::string& name, int version) = 0;
  virtual bool checkpoint_begin(const std::string& name, int version) = 0;
  virtual bool checkpoint_mem(int mode, const std::set<int>& ids) = 0;
  virtual bool checkpoint_end(bool success) = 0;
  virtual bool checkpoint_wait() = 0;
  virtual bool checkpoint_finished() = 0;

  // `target_rank`: whose data; only the rank's own can be had (-1, or its number).
  virtual int restart_test(const std::string& name, int version, int target_rank = -1) = 0;
  virtual bool restart(const std::string& name, int version, int target_rank = -1) = 0;
  virtual bool restart_begin(const std::string& name, int version, int target_rank = -1) = 0;
  virtual size_t recover_size(int id) = 0;
  virtual bool recover_mem(int mode, const std::set<int>& ids) = 0;
  virtual bool restart_end(bool success) = 0;

  virtual ~client_t() = 0;
};

// The caller owns the client. Throws std::runtime_error for a configuration that cannot be used.
client_t* get_client(unsigned int id, const std::string& cfg_file);
client_t* get_client(MPI_Comm comm, const std::string& cfg_file);

}  // namespace veloc

#endif
