#include "run.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <stdexcept>

namespace diapause::drop_in {
namespace {

using Failure = std::runtime_error;

// Makes an execution id as FTI does, from the time of the start.
std::string new_execution_id(MPI_Comm comm) {
  std::array<char, FTI_BUFS> text{};
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::strftime(text.data(), text.size(), "%Y-%m-%d_%H-%M-%S", &local);
  MPI_Bcast(text.data(), FTI_BUFS, MPI_CHAR, 0, comm);
  return text.data();
}

std::string region_name(int id, const std::string& name) {
  return name.empty() ? std::to_string(id) : std::to_string(id) + ":" + name;
}

template <class T>
constexpr diapause_type integer(diapause_type of_8, diapause_type of_16, diapause_type of_32,
                                diapause_type of_64) {
  constexpr std::array kBytes = {1, 2, 4, 8};
  const std::array types = {of_8, of_16, of_32, of_64};
  for (std::size_t i = 0; i < kBytes.size(); ++i) {
    if (kBytes[i] == sizeof(T)) return types[i];
  }
  return DIAPAUSE_BYTES;
}

template <class T>
FtiType signed_type() {
  return {sizeof(T), integer<T>(DIAPAUSE_INT8, DIAPAUSE_INT16, DIAPAUSE_INT32, DIAPAUSE_INT64)};
}

template <class T>
FtiType unsigned_type() {
  return {sizeof(T), integer<T>(DIAPAUSE_UINT8, DIAPAUSE_UINT16, DIAPAUSE_UINT32, DIAPAUSE_UINT64)};
}

// Throws the same failure on all ranks, if any of them has one.
void agree(MPI_Comm comm, const std::string& failure) {
  int mine = failure.empty() ? 0 : 1;
  int any = 0;
  MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, comm);
  if (mine != 0) throw Failure(failure);
  if (any != 0) throw Failure("another rank has failed");
}

}  // namespace

FtiTypes::FtiTypes()
    : types_{signed_type<char>(),
             signed_type<short>(),
             signed_type<int>(),
             signed_type<long>(),
             unsigned_type<unsigned char>(),
             unsigned_type<unsigned short>(),
             unsigned_type<unsigned int>(),
             unsigned_type<unsigned long>(),
             {sizeof(float), DIAPAUSE_FLOAT32},
             {sizeof(double), DIAPAUSE_FLOAT64},
             {sizeof(long double), DIAPAUSE_BYTES}} {}

fti_id_t FtiTypes::add(std::uint64_t bytes) {
  if (bytes == 0) throw Failure("a type must have a size");
  types_.push_back({bytes, DIAPAUSE_BYTES});
  return static_cast<fti_id_t>(types_.size()) - 1;
}

const FtiType& FtiTypes::get(fti_id_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= types_.size()) {
    throw Failure("there is no type of number " + std::to_string(id));
  }
  return types_[static_cast<std::size_t>(id)];
}

FtiRun::FtiRun(const std::string& configuration_path, MPI_Comm comm) : path_(configuration_path) {
  int ranks = 0;
  MPI_Comm_rank(comm, &world_rank_);
  MPI_Comm_size(comm, &ranks);
  std::string failure;
  try {
    configuration_ = read_fti_configuration(path_, ranks);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  agree(comm, failure);
  for (const std::string& remark : configuration_.remarks) tell(remark);
  status_ = configuration_.failure;
  execution_id_ = status_ == 0 ? new_execution_id(comm) : configuration_.execution_id;
  open(comm);
  tell(status_ == 0 ? "The execution ID is: " + execution_id_
                    : "This is a restart. The execution ID is: " + execution_id_);
}

void FtiRun::open(MPI_Comm comm) {
  job_ = std::make_unique<Job>(comm, "fti-" + execution_id_, configuration_.settings);
  const MPI_Comm program = job_->program_comm();
  is_head_ = program == MPI_COMM_NULL;
  if (is_head_) return;
  MPI_Comm_dup(program, &comm_);
  MPI_Comm_rank(comm_, &rank_);
  set_restart(configuration_.failure);
  is_noted_ = configuration_.failure == 1;
  last_flip_s_ = MPI_Wtime();
}

void FtiRun::serve() { job_->close(); }

// The first rank that computes writes it, for the next run.
void FtiRun::set_restart(int failure) {
  std::string problem;
  try {
    if (rank_ == 0) write_fti_restart(path_, failure, execution_id_);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  agree(comm_, problem);
}

bool FtiRun::find() {
  const auto found = status_ == 0 ? std::nullopt : job_->find(DIAPAUSE_NEWEST);
  next_version_ = (found ? found->version : job_->newest()) + 1;
  if (!found) {
    const bool should_be = status_ != 0;
    status_ = 0;
    return !should_be;
  }
  job_->restore_redundancy();
  read_stored_names();
  tell("Recovering successfully from level " + std::to_string(found->level) + ".");
  return true;
}

void FtiRun::read_stored_names() {
  stored_.clear();
  for (const std::string& region : job_->stored_names()) {
    const auto colon = region.find(':');
    const int id = std::stoi(region.substr(0, colon));
    const std::string name = colon == std::string::npos ? "" : region.substr(colon + 1);
    stored_[id] = {region, name, job_->stored_bytes(region).value_or(0)};
  }
}

void FtiRun::protect(int id, void* data, std::int64_t count, fti_id_t type) {
  if (id < 0 || count < 0)
    throw Failure("variable " + std::to_string(id) + ": its number or count is negative");
  const FtiType& element = types.get(type);
  if (variables_.count(id) == 0) tell("Variable ID " + std::to_string(id) + " to protect.");
  variables_[id].block = {data, static_cast<std::uint64_t>(count), element.bytes, element.type};
}

FtiVariable& FtiRun::variable(int id) {
  const auto found = variables_.find(id);
  if (found == variables_.end())
    throw Failure("variable " + std::to_string(id) + " is not protected");
  return found->second;
}

int FtiRun::id_of(const std::string& name) const {
  for (const auto& [id, variable] : variables_) {
    if (variable.name == name) return id;
  }
  for (const auto& [id, stored] : stored_) {
    if (stored.name == name) return id;
  }
  return -1;
}

int FtiRun::id_for(const std::string& name) {
  if (name.empty() || name.size() >= FTI_BUFS - 16)
    throw Failure("'" + name + "' is too short or too long for a name");
  int id = id_of(name);
  if (id < 0) {
    id = static_cast<int>(variables_.size());
    while (variables_.count(id) != 0 || stored_.count(id) != 0) ++id;
  }
  variables_[id].name = name;
  return id;
}

Blocks FtiRun::blocks() const {
  Blocks blocks;
  for (const auto& [id, variable] : variables_)
    blocks[region_name(id, variable.name)] = variable.block;
  return blocks;
}

void FtiRun::checkpoint(int id, int level) { take(blocks(), id, level); }

void FtiRun::take(const Blocks& blocks, int id, int level) {
  if (level < FTI_L1 || level > FTI_L4_H5_SINGLE)
    throw Failure("there is no level " + std::to_string(level));
  if (level == FTI_L4_H5_SINGLE) {
    throw Failure("level " + std::to_string(level) +
                  " is one file of HDF5, which is not written here: take level 4");
  }
  if (level > FTI_L4) level = level == FTI_L4_DCP ? FTI_L4 : level - FTI_L4;
  job_->checkpoint(blocks, next_version_++, level);
  job_->wait_if_only_calls_advance();
  note_first();
  tell("Ckpt. ID " + std::to_string(id) + " (L" + std::to_string(level) + ") is captured.");
}

// From now on the next run recovers: there must be something.
void FtiRun::note_first() {
  if (is_noted_) return;
  job_->wait_for(DIAPAUSE_L1);
  set_restart(1);
  is_noted_ = true;
}

int FtiRun::snapshot() {
  if (status_ != 0) {
    recover();
    return FTI_SCES;
  }
  const std::uint64_t version = next_version_;
  const int level = job_->snapshot([this] { return blocks(); }, version);
  if (level == 0) return FTI_SCES;
  ++next_version_;
  note_first();
  tell("Ckpt. ID " + std::to_string(version) + " (L" + std::to_string(level) + ") is captured.");
  return FTI_DONE;
}

// In a restart ranks try, make room where it does not fit, and try again: that is not collective.
// Without one, what was taken last comes back, and all ranks call.
void FtiRun::recover() {
  if (!can_recover() && job_->has_last()) {
    job_->open_last();
    read_stored_names();
  }
  if (!can_recover()) throw Failure("there is no checkpoint to recover from");
  if (stored_.size() != variables_.size()) {
    throw Failure(std::to_string(stored_.size()) + " variables are stored, and " +
                  std::to_string(variables_.size()) + " protected");
  }
  for (const auto& [id, variable] : variables_) check_fits(id, variable);
  for (const auto& [id, variable] : variables_) job_->read(stored_[id].region, variable.block.data);
  status_ = 0;
}

void FtiRun::check_fits(int id, const FtiVariable& variable) const {
  const auto stored = stored_.find(id);
  if (stored == stored_.end()) throw Failure("variable " + std::to_string(id) + " is not stored");
  if (stored->second.bytes == variable.block.bytes()) return;
  throw Failure("variable " + std::to_string(id) + " has " +
                std::to_string(variable.block.bytes()) + " bytes, and is stored with " +
                std::to_string(stored->second.bytes));
}

void FtiRun::recover_variable(int id) {
  if (!can_recover()) throw Failure("there is no checkpoint to recover from");
  const FtiVariable& wanted = variable(id);
  check_fits(id, wanted);
  job_->read(stored_[id].region, wanted.block.data);
}

std::uint64_t FtiRun::stored_bytes(int id) const {
  const auto stored = stored_.find(id);
  return stored == stored_.end() ? 0 : stored->second.bytes;
}

void* FtiRun::resize(int id, void* data) {
  FtiVariable& wanted = variable(id);
  const std::uint64_t bytes = stored_bytes(id);
  if (status_ == 0 || bytes == 0)
    throw Failure("nothing is stored of variable " + std::to_string(id));
  void* const resized = std::realloc(data, bytes);
  if (resized == nullptr) throw Failure("no memory for " + std::to_string(bytes) + " bytes");
  wanted.block.data = resized;
  wanted.block.count = bytes / wanted.block.element_bytes;
  return resized;
}

void FtiRun::begin_in_parts(int id, int level) { parts_ = Parts{id, level, {}}; }

void FtiRun::add_part(int id) {
  const Block& block = variable(id).block;
  const char* const data = static_cast<const char*>(block.data);
  if (!parts_->data.emplace(id, std::vector<char>(data, data + block.bytes())).second) {
    throw Failure("variable " + std::to_string(id) + " was added before");
  }
}

void FtiRun::end_in_parts() {
  Parts parts = std::move(*parts_);
  parts_.reset();
  Blocks all = blocks();
  std::string failure;
  for (const auto& [id, variable] : variables_) {
    const auto part = parts.data.find(id);
    if (part == parts.data.end())
      failure = "variable " + std::to_string(id) + " was not added to the checkpoint";
    if (part != parts.data.end()) all[region_name(id, variable.name)].data = part->second.data();
  }
  agree(comm_, failure);
  take(all, parts.id, parts.level);
}

bool FtiRun::flip_bit(int id) {
  const auto& flips = configuration_.flips;
  const Block& block = variable(id).block;
  const bool is_due = flipped_ < flips.number && MPI_Wtime() - last_flip_s_ > flips.frequency_s;
  const bool is_real = block.type == DIAPAUSE_FLOAT64 || block.type == DIAPAUSE_FLOAT32;
  if (rank_ != flips.rank || !is_due || !is_real) return false;
  const auto index = static_cast<std::uint64_t>(flips.index);
  const auto byte = static_cast<std::uint64_t>(flips.position) / 8;
  if (index >= block.count || byte >= block.element_bytes) return false;
  static_cast<unsigned char*>(block.data)[index * block.element_bytes + byte] ^=
      static_cast<unsigned char>(1U << (flips.position % 8));
  ++flipped_;
  last_flip_s_ = MPI_Wtime();
  return true;
}

std::string FtiRun::stage_directory() const {
  const std::filesystem::path folder = std::filesystem::path(configuration_.local_dir) /
                                       ("stage-" + execution_id_) / std::to_string(rank_);
  std::filesystem::create_directories(folder);
  return folder.string();
}

// The file is where it is to be, whole, or it is not there at all; then it is gone from where it
// was.
int FtiRun::send_file(const std::string& from, const std::string& to) {
  std::error_code error;
  const std::string next = to + ".next";
  bool has_arrived = std::filesystem::copy_file(
      from, next, std::filesystem::copy_options::overwrite_existing, error);
  if (has_arrived) std::filesystem::rename(next, to, error);
  if (error) {
    has_arrived = false;
    tell(from + " cannot be staged to " + to + ": " + error.message());
  } else {
    std::filesystem::remove(from, error);
  }
  sent_.push_back(has_arrived);
  return static_cast<int>(sent_.size()) - 1;
}

int FtiRun::stage_status(int number) const {
  if (number < 0 || static_cast<std::size_t>(number) >= sent_.size()) return FTI_SI_NINI;
  return sent_[static_cast<std::size_t>(number)] ? FTI_SI_SCES : FTI_SI_FAIL;
}

void FtiRun::finish() {
  if (!sent_.empty()) {
    std::error_code ignored;  // other files that the program has left there are its own business
    std::filesystem::remove(stage_directory(), ignored);
  }
  const bool keeps = configuration_.keeps_last && job_->has_last();
  if (keeps) {
    job_->take_last_again(DIAPAUSE_L4);
    job_->close();
    set_restart(2);
  } else if (configuration_.keeps_all_of_level4) {
    job_->close();
  } else {
    job_->finish();
    set_restart(0);
  }
}

void FtiRun::tell(const std::string& text) const {
  constexpr int kErrorsOnly = 3;
  if (world_rank_ == 0 && configuration_.verbosity < kErrorsOnly)
    std::fprintf(stderr, "fti: %s\n", text.c_str());
}

}  // namespace diapause::drop_in
