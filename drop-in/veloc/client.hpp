// VELOC's client on top of Diapause: one job (common/job.hpp) for each name of checkpoints.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "../common/job.hpp"
#include "configuration.hpp"
#include "veloc.hpp"

namespace diapause::drop_in {

class VelocClient final : public veloc::client_t {
 public:
  // MPI_COMM_NULL: of this process alone, and `id` is its number. Throws std::runtime_error.
  VelocClient(MPI_Comm comm, unsigned int id, const std::string& configuration_path);
  ~VelocClient() override;

  // Waits until all checkpoints are where they are to be, and whether they are. Nothing but
  // destruction may follow.
  bool close();

  bool mem_protect(int id, void* ptr, size_t count, size_t base_size,
                   const std::string& name) override;
  bool mem_protect(int id, const serializer_t& s, const deserializer_t& d,
                   const std::string& name) override;
  bool mem_unprotect(int id, const std::string& name) override;
  void mem_clear(const std::string& name) override;
  bool register_observer(int type, const observer_t& obs) override;

  std::string route_file(const std::string& original) override;
  bool cleanup(const std::string& name) override;

  bool checkpoint(const std::string& name, int version) override;
  bool checkpoint_begin(const std::string& name, int version) override;
  bool checkpoint_mem(int mode, const std::set<int>& ids) override;
  bool checkpoint_end(bool success) override;
  bool checkpoint_wait() override;
  bool checkpoint_finished() override;

  int restart_test(const std::string& name, int version, int target_rank) override;
  bool restart(const std::string& name, int version, int target_rank) override;
  bool restart_begin(const std::string& name, int version, int target_rank) override;
  size_t recover_size(int id) override;
  bool recover_mem(int mode, const std::set<int>& ids) override;
  bool restart_end(bool success) override;

  // VELOC's names for C, which leave out the group.
  static std::string default_group() { return default_mem_group; }

 private:
  struct Region {
    Block memory;            // if there is no serializer
    serializer_t serialize;  // if it is not empty, `deserialize` is not either
    deserializer_t deserialize;
  };
  using Regions = std::map<int, Region>;

  struct Dated {
    std::unique_ptr<Job> job;
    double ec_s = 0;  // time at which the last checkpoint of that kind was due
    double persistent_s = 0;
  };

  // The checkpoint or restart that was begun and not ended.
  struct Open {
    enum class Kind { checkpoint, restart } kind;
    std::string name;
    int version;
    bool is_taken = false;  // whether the memory of a checkpoint is taken
    // The file that the program writes or reads itself; empty if it has not asked.
    std::string file = {};
  };

  // Calls `body`. If it throws on one rank, all throw. Collective.
  void on_all(const std::function<void()>& body) const;
  Dated& job_of(const std::string& name);
  Regions& regions_of(const std::string& name);
  double agreed_time_s() const;
  int due_level(Dated& dated);
  void check_name(const std::string& name, int version) const;
  void check_target(int target_rank) const;
  Open& opened(Open::Kind kind, const char* what);
  void take(const std::set<int>& ids, int mode);
  Blocks selected(int mode, const std::set<int>& ids, std::map<int, std::string>& serialized);
  bool does_any_have(const Blocks& blocks) const;
  void recover(Job& job, int id, Region& region);
  void tell(const std::string& text) const;
  template <class Body>
  bool succeeds(Body body);

  MPI_Comm comm_;
  int rank_ = 0;
  VelocConfiguration configuration_;
  double started_s_ = 0;
  std::map<std::string, Regions> regions_;  // by group
  std::map<std::string, Dated> jobs_;       // by the name of checkpoints
  std::map<int, observer_t> observers_;
  std::optional<Open> open_;
};

}  // namespace diapause::drop_in
