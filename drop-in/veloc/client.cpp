#include "client.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "../common/together.hpp"

namespace diapause::drop_in {
namespace {

using Failure = std::runtime_error;

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool is_due(long interval_s, double last_s, double now_s) {
  return interval_s == 0 || (interval_s > 0 && now_s - last_s >= static_cast<double>(interval_s));
}

bool is_selected(int mode, const std::set<int>& ids, int id) {
  if (mode == VELOC_CKPT_SOME) return ids.count(id) != 0;
  if (mode == VELOC_CKPT_REST) return ids.count(id) == 0;
  return true;
}

void check_mode(int mode) {
  if (mode < VELOC_CKPT_ALL || mode > VELOC_CKPT_REST) {
    throw Failure("there is no way number " + std::to_string(mode) + " to select regions");
  }
}

}  // namespace

VelocClient::VelocClient(MPI_Comm comm, unsigned int id, const std::string& configuration_path)
    : comm_(comm), rank_(static_cast<int>(id)) {
  on_all([&] { configuration_ = read_veloc_configuration(configuration_path); });
  if (comm_ != MPI_COMM_NULL) MPI_Comm_rank(comm_, &rank_);
  started_s_ = monotonic_s();
  if (rank_ != 0) return;
  for (const std::string& remark : configuration_.remarks) tell(remark);
}

VelocClient::~VelocClient() = default;

void VelocClient::on_all(const std::function<void()>& body) const {
  comm_ == MPI_COMM_NULL ? body() : together(comm_, body);
}

bool VelocClient::close() {
  bool is_safe = true;
  for (auto& [name, dated] : jobs_)
    is_safe = succeeds([&job = *dated.job] { job.close(); }) && is_safe;
  jobs_.clear();
  return is_safe;
}

bool VelocClient::mem_protect(int id, void* ptr, size_t count, size_t base_size,
                              const std::string& name) {
  return succeeds([&] {
    if (base_size != 0 && count > std::numeric_limits<std::ptrdiff_t>::max() / base_size) {
      throw Failure("region " + std::to_string(id) + ": " + std::to_string(count) +
                    " elements of " + std::to_string(base_size) +
                    " bytes are more than there can be");
    }
    if (ptr == nullptr && count * base_size != 0)
      throw Failure("region " + std::to_string(id) + " is NULL");
    const Block block = base_size == 0 ? Block{} : Block{ptr, count, base_size, DIAPAUSE_BYTES};
    regions_[name][id] = {block, {}, {}};
  });
}

bool VelocClient::mem_protect(int id, const serializer_t& s, const deserializer_t& d,
                              const std::string& name) {
  return succeeds([&] {
    if (!s || !d)
      throw Failure("region " + std::to_string(id) + " has no serializer, or no deserializer");
    regions_[name][id] = {{}, s, d};
  });
}

bool VelocClient::mem_unprotect(int id, const std::string& name) {
  return regions_[name].erase(id) > 0;
}

void VelocClient::mem_clear(const std::string& name) { regions_[name].clear(); }

bool VelocClient::register_observer(int type, const observer_t& obs) {
  return succeeds([&] {
    if (type != VELOC_OBSERVE_CKPT_END)
      throw Failure("nothing of number " + std::to_string(type) + " can be observed");
    observers_[type] = obs;
  });
}

// One file of each rank and version, as in VELOC, whatever its name would be.
std::string VelocClient::route_file(const std::string&) {
  std::string file;
  succeeds([&] {
    if (!open_) throw Failure("a checkpoint or a restart must be begun before");
    if (open_->is_taken)
      throw Failure("a checkpoint is of memory or of files: its memory was taken already");
    Job& job = *job_of(open_->name).job;
    const bool is_checkpoint = open_->kind == Open::Kind::checkpoint;
    if (open_->file.empty())
      open_->file = (is_checkpoint ? job.begin_files() : job.restore_files()) + "/file";
    file = open_->file;
  });
  return file;
}

// The copies on nodes of what lies in the persistent directory are part of what keeps it safe: they
// stay, and go by age. Without that directory nothing would ever use the checkpoints again.
bool VelocClient::cleanup(const std::string& name) {
  return succeeds([&] {
    check_name(name, 0);
    open_.reset();
    if (configuration_.has_persistent) return;
    job_of(name).job->finish();
    jobs_.erase(name);
  });
}

// One that fails leaves nothing open: the program tries again with its next version.
bool VelocClient::checkpoint(const std::string& name, int version) {
  if (!checkpoint_begin(name, version)) return false;
  if (checkpoint_mem(VELOC_CKPT_ALL, {})) return checkpoint_end(true);
  open_.reset();
  return false;
}

bool VelocClient::checkpoint_begin(const std::string& name, int version) {
  return succeeds([&] {
    check_name(name, version);
    if (open_ && open_->kind == Open::Kind::checkpoint)
      throw Failure("another checkpoint was begun and not ended");
    open_ = Open{Open::Kind::checkpoint, name, version};
  });
}

bool VelocClient::checkpoint_mem(int mode, const std::set<int>& ids) {
  return succeeds([&] {
    Open& open = opened(Open::Kind::checkpoint, "a checkpoint");
    take(ids, mode);
    open.is_taken = true;
  });
}

void VelocClient::take(const std::set<int>& ids, int mode) {
  std::map<int, std::string> serialized;
  Blocks blocks;
  on_all([&] {
    check_mode(mode);
    if (!open_->file.empty())
      throw Failure("a checkpoint is of memory or of files: a file was asked for already");
    blocks = selected(mode, ids, serialized);
  });
  if (!does_any_have(blocks))
    throw Failure("no region is selected for the checkpoint '" + open_->name + "'");
  Dated& dated = job_of(open_->name);
  dated.job->checkpoint(blocks, static_cast<std::uint64_t>(open_->version), due_level(dated));
}

Blocks VelocClient::selected(int mode, const std::set<int>& ids,
                             std::map<int, std::string>& serialized) {
  Blocks blocks;
  for (auto& [id, region] : regions_of(open_->name)) {
    if (!is_selected(mode, ids, id)) continue;
    Block block = region.memory;
    if (region.serialize) {
      std::ostringstream stream;
      region.serialize(stream);
      std::string& text = serialized[id] = std::move(stream).str();
      block = {text.data(), text.size(), 1, DIAPAUSE_BYTES};
    }
    blocks[std::to_string(id)] = block;
  }
  return blocks;
}

// A rank that has nothing to store takes part in what the others store.
bool VelocClient::does_any_have(const Blocks& blocks) const {
  int has = blocks.empty() ? 0 : 1;
  if (comm_ != MPI_COMM_NULL) MPI_Allreduce(MPI_IN_PLACE, &has, 1, MPI_INT, MPI_MAX, comm_);
  return has != 0;
}

bool VelocClient::checkpoint_end(bool success) {
  return succeeds([&] {
    const Open open = opened(Open::Kind::checkpoint, "a checkpoint");
    open_.reset();
    if (!open.file.empty()) {
      Dated& dated = job_of(open.name);
      std::error_code error;  // what cannot even be looked at was not written
      const bool is_written = std::filesystem::exists(open.file, error);
      if (success && !is_written) {
        tell("the file of checkpoint '" + open.name +
             "' was not written: the program has to write to " + open.file +
             ", the path that VELOC_Route_file has given");
      }
      dated.job->checkpoint_files({}, static_cast<std::uint64_t>(open.version), due_level(dated),
                                  success && is_written);
    } else if (!open.is_taken) {
      if (!success) return;  // what could not be taken is withdrawn
      throw Failure("the checkpoint '" + open.name + "' holds nothing");
    } else if (!success) {
      tell("checkpoint '" + open.name + "': its memory was taken whole, and it stays");
    }
    const auto observer = observers_.find(VELOC_OBSERVE_CKPT_END);
    if (observer != observers_.end()) observer->second(open.name, open.version);
  });
}

bool VelocClient::checkpoint_wait() {
  return succeeds([&] {
    if (open_ && open_->kind == Open::Kind::checkpoint)
      throw Failure("a checkpoint was begun: end it before waiting");
    for (auto& [name, dated] : jobs_) dated.job->wait();
  });
}

bool VelocClient::checkpoint_finished() {
  bool is_done = true;
  const bool could_ask = succeeds([&] {
    if (open_ && open_->kind == Open::Kind::checkpoint)
      throw Failure("a checkpoint was begun: end it before asking");
    for (auto& [name, dated] : jobs_) is_done = dated.job->is_done() && is_done;
  });
  return could_ask && is_done;
}

int VelocClient::restart_test(const std::string& name, int version, int target_rank) {
  int found = -1;
  succeeds([&] {
    on_all([&] {
      check_name(name, version);
      check_target(target_rank);
    });
    const auto newest = job_of(name).job->find(version == 0 ? DIAPAUSE_NEWEST
                                                            : static_cast<std::uint64_t>(version));
    if (!newest) return;
    if (newest->version > std::numeric_limits<int>::max())
      throw Failure("the number of the version is too large");
    found = static_cast<int>(newest->version);
  });
  return found;
}

// It is ended on all ranks, also if only some of them have recovered.
bool VelocClient::restart(const std::string& name, int version, int target_rank) {
  if (!restart_begin(name, version, target_rank)) return false;
  const bool is_recovered = recover_mem(VELOC_RECOVER_ALL, {});
  return restart_end(is_recovered) && is_recovered;
}

bool VelocClient::restart_begin(const std::string& name, int version, int target_rank) {
  return succeeds([&] {
    on_all([&] {
      check_name(name, version);
      check_target(target_rank);
      if (open_ && open_->kind == Open::Kind::checkpoint)
        throw Failure("a checkpoint was begun: end it before");
    });
    job_of(name).job->open(static_cast<std::uint64_t>(version));
    open_ = Open{Open::Kind::restart, name, version};
  });
}

size_t VelocClient::recover_size(int id) {
  size_t bytes = 0;
  succeeds([&] {
    const Open& open = opened(Open::Kind::restart, "a restart");
    bytes = job_of(open.name).job->stored_bytes(std::to_string(id)).value_or(0);
  });
  return bytes;
}

bool VelocClient::recover_mem(int mode, const std::set<int>& ids) {
  return succeeds([&] {
    check_mode(mode);
    const Open& open = opened(Open::Kind::restart, "a restart");
    Job& job = *job_of(open.name).job;
    Regions& regions = regions_of(open.name);
    std::vector<std::pair<int, Region*>> wanted;
    for (const std::string& name : job.stored_names()) {
      if (name.rfind("file:", 0) == 0) continue;  // this is a file, not memory
      const int id = std::stoi(name);
      if (!is_selected(mode, ids, id)) continue;
      const auto region = regions.find(id);
      if (region == regions.end())
        throw Failure("region " + name + " is stored, and not protected");
      const auto stored = job.stored_bytes(name).value_or(0);
      if (!region->second.deserialize && region->second.memory.bytes() < stored) {
        throw Failure("region " + name + " has " + std::to_string(region->second.memory.bytes()) +
                      " bytes, and is stored with " + std::to_string(stored));
      }
      wanted.emplace_back(id, &region->second);
    }
    for (const auto& [id, region] : wanted) recover(job, id, *region);
  });
}

void VelocClient::recover(Job& job, int id, Region& region) {
  const std::string name = std::to_string(id);
  if (!region.deserialize) return job.read(name, region.memory.data);
  std::string text(job.stored_bytes(name).value_or(0), '\0');
  job.read(name, text.data());
  std::istringstream stream(std::move(text));
  if (!region.deserialize(stream)) throw Failure("region " + name + " could not be deserialized");
}

bool VelocClient::restart_end(bool success) {
  if (!open_ && !success) return true;  // a restart that has failed has ended
  return succeeds([&] {
    const Open open = opened(Open::Kind::restart, "a restart");
    open_.reset();
    job_of(open.name).job->end_reading();
    if (!success)
      tell("the program could not restart from version " + std::to_string(open.version));
  });
}

VelocClient::Dated& VelocClient::job_of(const std::string& name) {
  if (const auto known = jobs_.find(name); known != jobs_.end()) return known->second;
  const std::string full_name = comm_ != MPI_COMM_NULL ? name : name + "." + std::to_string(rank_);
  Dated dated;
  dated.job =
      std::make_unique<Job>(comm_, full_name, configuration_.settings, configuration_.directories);
  dated.ec_s = dated.persistent_s = started_s_;
  return jobs_.emplace(name, std::move(dated)).first->second;
}

VelocClient::Regions& VelocClient::regions_of(const std::string& name) {
  const auto own = regions_.find(name);
  return own != regions_.end() && !own->second.empty() ? own->second : regions_[default_mem_group];
}

// Rank 0's clock, so that all ranks choose the same level.
double VelocClient::agreed_time_s() const {
  double now_s = monotonic_s();
  const bool matters = configuration_.persistent_interval_s > 0 || configuration_.ec_interval_s > 0;
  if (matters && comm_ != MPI_COMM_NULL) MPI_Bcast(&now_s, 1, MPI_DOUBLE, 0, comm_);
  return now_s;
}

// The persistent directory survives whatever parity survives: where both are due, it is enough.
int VelocClient::due_level(Dated& dated) {
  const double now_s = agreed_time_s();
  const bool ec = is_due(configuration_.ec_interval_s, dated.ec_s, now_s);
  const bool persistent = is_due(configuration_.persistent_interval_s, dated.persistent_s, now_s);
  if (ec) dated.ec_s = now_s;
  if (persistent) dated.persistent_s = now_s;
  if (persistent) return DIAPAUSE_L4;
  return ec ? DIAPAUSE_L3 : DIAPAUSE_L1;
}

void VelocClient::check_name(const std::string& name, int version) const {
  const auto is_allowed = [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.' || c == '-';
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_allowed)) {
    throw Failure("'" + name + "' cannot name checkpoints: letters, digits, '_', '.' and '-' can");
  }
  if (version < 0) throw Failure("version " + std::to_string(version) + " is negative");
}

void VelocClient::check_target(int target_rank) const {
  if (target_rank < 0 || target_rank == rank_) return;
  throw Failure("rank " + std::to_string(rank_) + " cannot restart from the data of rank " +
                std::to_string(target_rank) + ": only from its own");
}

VelocClient::Open& VelocClient::opened(Open::Kind kind, const char* what) {
  if (open_ && open_->kind == kind) return *open_;
  throw Failure(std::string(what) + " must be begun before");
}

void VelocClient::tell(const std::string& text) const {
  std::fprintf(stderr, "veloc: %s\n", text.c_str());
}

template <class Body>
bool VelocClient::succeeds(Body body) {
  try {
    body();
    return true;
  } catch (const std::exception& error) {
    tell(error.what());
  } catch (...) {
    tell("an exception of the program's own went through");
  }
  return false;
}

}  // namespace diapause::drop_in

veloc::client_t::~client_t() = default;

veloc::client_t* veloc::get_client(unsigned int id, const std::string& cfg_file) {
  return new diapause::drop_in::VelocClient(MPI_COMM_NULL, id, cfg_file);
}

veloc::client_t* veloc::get_client(MPI_Comm comm, const std::string& cfg_file) {
  return new diapause::drop_in::VelocClient(comm, 0, cfg_file);
}
