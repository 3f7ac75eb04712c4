#include "run.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "../common/durable.hpp"
#include "../common/together.hpp"

namespace diapause::drop_in {
namespace {

constexpr std::chrono::milliseconds kPassedOn(200);

using Failure = std::runtime_error;

// An execution id as FTI makes it, from a time.
std::string execution_id_at(std::time_t second) {
  std::array<char, FTI_BUFS> text{};
  std::tm local{};
  localtime_r(&second, &local);
  std::strftime(text.data(), text.size(), "%Y-%m-%d_%H-%M-%S", &local);
  return text.data();
}

// Returns whether the directory has something of this execution.
bool is_known(const std::string& execution_id, const std::string& directory) {
  std::error_code error;  // there is nothing where there is no directory yet
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().filename().string().rfind("fti-" + execution_id + "-", 0) == 0) return true;
  }
  return false;
}

void check_level(int level) {
  if (level < FTI_L1 || level > FTI_L4_H5_SINGLE)
    throw Failure("there is no level " + std::to_string(level));
}

std::string region_name(int id, const FtiVariable& variable) {
  const std::string number = std::to_string(id);
  if (!variable.name.empty()) return number + ":" + variable.name;
  return variable.label.empty() ? number : number + " " + variable.label;
}

}  // namespace

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
  execution_id_ = configuration_.execution_id;
  const bool is_new = execution_id_.empty();
  is_new ? open_new(comm) : open(comm);
  tell(is_new ? "The execution ID is: " + execution_id_
              : "This is a restart. The execution ID is: " + execution_id_);
}

// Several runs may begin within a second: what others have begun is left alone.
void FtiRun::open_new(MPI_Comm comm) {
  for (std::time_t second = std::time(nullptr);; ++second) {
    execution_id_ = free_execution_id(comm, second);
    try {
      return open(comm);
    } catch (const Failed& failed) {
      if (failed.status != DIAPAUSE_ERR_BUSY) throw;
    }
  }
}

std::string FtiRun::free_execution_id(MPI_Comm comm, std::time_t& from) const {
  std::array<char, FTI_BUFS> id{};
  if (world_rank_ == 0) {
    while (is_known(execution_id_at(from), configuration_.global_dir)) ++from;
    execution_id_at(from).copy(id.data(), id.size() - 1);
  }
  MPI_Bcast(id.data(), FTI_BUFS, MPI_CHAR, 0, comm);
  return id.data();
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
  if (recovers_shared()) return find_shared();
  const auto found = status_ == 0 ? std::nullopt : job_->find(DIAPAUSE_NEWEST);
  next_version_ = (found ? found->version : job_->newest()) + 1;
  if (!found) {
    const bool should_be = status_ != 0;
    if (should_be) {
      tell_why("nothing is left of the execution " + execution_id_ +
               " to recover from: to begin anew, set failure = 0 in " + path_);
    }
    status_ = 0;
    return !should_be;
  }
  job_->restore_redundancy();
  read_stored_names();
  tell("Recovering successfully from level " + std::to_string(found->level) + ".");
  return true;
}

bool FtiRun::find_shared() {
  std::string why = "no global datasets are stored in " + configuration_.shared.directory;
  try {
    shared_ = std::make_unique<SharedVersions>(comm_, configuration_.shared);
    if (shared_->find()) return true;
  } catch (const std::exception& error) {
    why = error.what();
  }
  tell_why(why);
  status_ = 0;
  return false;
}

// Programs end after that, and launchers end the other ranks with the first. So no rank leaves
// before it is told, and MPICH's has a moment to pass it on, which it forgets when a rank has
// ended.
void FtiRun::tell_why(const std::string& why) const {
  if (rank_ == 0) {
    std::fprintf(stderr, "fti: %s\n", why.c_str());
    std::this_thread::sleep_for(kPassedOn);
  }
  MPI_Barrier(comm_);
}

void FtiRun::read_stored_names() {
  stored_.clear();
  for (const std::string& region : job_->stored_names()) {
    std::size_t digits = 0;
    const int id = std::stoi(region, &digits);
    const bool is_named = digits < region.size() && region[digits] == ':';
    stored_[id] = {region, is_named ? region.substr(digits + 1) : "",
                   job_->stored_bytes(region).value_or(0)};
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

// With its place in an array of this rank alone, if the program has told its dimensions.
Block FtiRun::placed(const FtiVariable& variable) {
  Block block = variable.block;
  const std::vector<std::uint64_t> none(variable.lengths.size(), 0);
  if (!none.empty() && Box{none, variable.lengths}.elements() == block.count)
    block.place = {variable.lengths, variable.lengths, none};
  return block;
}

Blocks FtiRun::blocks() const {
  Blocks blocks;
  for (const auto& [id, variable] : variables_)
    blocks[region_name(id, variable)] = placed(variable);
  return blocks;
}

int FtiRun::checkpoint(int id, int level) {
  Copies none;
  return take(none, id, level);
}

int FtiRun::take(const Copies& copies, int id, int level) {
  check_level(level);
  if (level == FTI_L4_H5_SINGLE) return take_shared(copies, id);
  Blocks blocks = this->blocks();
  for (const auto& [variable_id, copy] : copies)
    blocks[region_name(variable_id, variable(variable_id))] = copy.block;
  if (level > FTI_L4) level = level == FTI_L4_DCP ? FTI_L4 : level - FTI_L4;
  job_->checkpoint(blocks, next_version_++, level);
  note_taken(blocks);
  const int taken = job_->last().level;  // where there are too few nodes, not the one asked for
  tell("Ckpt. ID " + std::to_string(id) + " (L" + std::to_string(taken) + ") is captured.");
  return FTI_DONE;
}

int FtiRun::take_shared(const Copies& copies, int id) {
  if (!configuration_.shared.is_enabled) {
    throw Failure("level " + std::to_string(FTI_L4_H5_SINGLE) +
                  " stores global datasets, which needs h5_single_file_enable = 1");
  }
  std::vector<DatasetPart> stored;
  together(comm_, [&] { stored = parts(copies); });
  if (!shared_) shared_ = std::make_unique<SharedVersions>(comm_, configuration_.shared);
  shared_->take(stored);
  tell("Ckpt. ID " + std::to_string(id) + " of the global datasets is stored.");
  return FTI_SCES;
}

// The variables that are parts of global datasets, with the data of those that were copied.
std::vector<DatasetPart> FtiRun::parts(const Copies& copies) {
  std::vector<DatasetPart> parts;
  for (const auto& [id, place] : datasets.places()) {
    const GlobalDataset& dataset = datasets.get(place.dataset);
    const auto copy = copies.find(id);
    const Block& block = copy == copies.end() ? variable(id).block : copy->second.block;
    if (place.box.elements() * dataset.element_bytes != block.bytes()) {
      throw Failure("variable " + std::to_string(id) + " has " + std::to_string(block.bytes()) +
                    " bytes, and its part of dataset '" + dataset.name + "' " +
                    std::to_string(place.box.elements() * dataset.element_bytes));
    }
    parts.push_back({&dataset, place.box, static_cast<std::byte*>(block.data)});
  }
  return parts;
}

// From the first one on the next run recovers: there must be something.
void FtiRun::note_taken(const Blocks& blocks) {
  stored_.clear();
  for (const auto& [id, variable] : variables_) {
    const std::string region = region_name(id, variable);
    stored_[id] = {region, variable.name, blocks.at(region).bytes()};
  }
  if (is_noted_) return;
  together(comm_, [&] { job_->wait_for(DIAPAUSE_L1); });
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
  note_taken(blocks());
  tell("Ckpt. ID " + std::to_string(version) + " (L" + std::to_string(level) + ") is captured.");
  return FTI_DONE;
}

// In a restart ranks try, make room where it does not fit, and try again: that is not collective.
// Once this run has taken a checkpoint, the last one comes back, and all ranks call.
void FtiRun::recover() {
  if (recovers_shared()) {
    Copies none;
    std::vector<DatasetPart> wanted;
    together(comm_, [&] { wanted = parts(none); });
    shared_->read(wanted);
    status_ = 0;
    return;
  }
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

void FtiRun::check_has_memory(int id, const FtiVariable& variable) {
  if (variable.block.data == nullptr && variable.block.bytes() != 0)
    throw Failure("variable " + std::to_string(id) + " is protected without an address");
}

void FtiRun::check_fits(int id, const FtiVariable& variable) const {
  check_has_memory(id, variable);
  const auto stored = stored_.find(id);
  if (stored == stored_.end()) throw Failure("variable " + std::to_string(id) + " is not stored");
  if (stored->second.bytes == variable.block.bytes()) return;
  throw Failure("variable " + std::to_string(id) + " has " +
                std::to_string(variable.block.bytes()) + " bytes, and is stored with " +
                std::to_string(stored->second.bytes));
}

void FtiRun::begin_variables() {
  if (status_ != 0 && !recovers_shared() && !can_recover())
    throw Failure("there is no checkpoint to recover from");
  if (!recovers_shared()) return;
  std::vector<DatasetPart> wanted;
  together(comm_, [&] {
    recovered_.clear();
    for (const auto& entry : datasets.places())
      recovered_.try_emplace(entry.first, variable(entry.first).block);
    wanted = parts(recovered_);
  });
  shared_->read(wanted);
}

void FtiRun::recover_lengths(int dataset) {
  if (!recovers_shared())
    throw Failure("the lengths of datasets are recovered where failure = 3 only");
  GlobalDataset& wanted = datasets.get(dataset);
  std::vector<std::uint64_t> stored = shared_->stored_lengths(wanted.name);
  if (stored.size() != wanted.lengths.size()) {
    throw Failure("dataset '" + wanted.name + "' is stored with " + std::to_string(stored.size()) +
                  " dimensions");
  }
  wanted.lengths = std::move(stored);
}

void FtiRun::recover_variable(int id) {
  if (const auto recovered = recovered_.find(id); recovered != recovered_.end()) {
    const Block& block = variable(id).block;
    const std::vector<char>& bytes = recovered->second.bytes;
    if (block.bytes() != bytes.size())
      throw Failure("variable " + std::to_string(id) + " has changed its size meanwhile");
    std::memcpy(block.data, bytes.data(), bytes.size());
    return;
  }
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

// With a level that there is not, the calls that follow fail, too.
void FtiRun::begin_in_parts(int id, int level) {
  parts_ = Parts{id, level, {}};
  check_level(level);
}

void FtiRun::add_part(int id) {
  check_level(parts_->level);
  check_has_memory(id, variable(id));
  const Block block = placed(variable(id));
  const auto [added, is_new] = parts_->data.try_emplace(id, block);
  if (!is_new) throw Failure("variable " + std::to_string(id) + " was added before");
  if (block.bytes() != 0) std::memcpy(added->second.bytes.data(), block.data, block.bytes());
}

void FtiRun::end_in_parts() {
  Parts parts = std::move(*parts_);
  parts_.reset();
  together(comm_, [&] {
    for (const auto& entry : variables_) {
      if (parts.data.count(entry.first) == 0)
        throw Failure("variable " + std::to_string(entry.first) +
                      " was not added to the checkpoint");
    }
  });
  take(parts.data, parts.id, parts.level);
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

std::filesystem::path FtiRun::stage_folder() const {
  return std::filesystem::path(configuration_.local_dir) / ("stage-" + execution_id_) /
         std::to_string(rank_);
}

std::string FtiRun::stage_directory() const {
  check_staging();
  const std::filesystem::path folder = stage_folder();
  std::filesystem::create_directories(folder);
  return folder.string();
}

// The file is where it is to be, whole, or it is not there at all; then it is gone from where it
// was.
int FtiRun::send_file(const std::string& from, const std::string& to) {
  check_staging();
  bool has_arrived = false;
  try {
    copy_durably(from, to + ".next");
    rename_durably(to + ".next", to);
    has_arrived = true;
    std::filesystem::remove(from);
  } catch (const std::exception& error) {
    std::error_code ignored;
    std::filesystem::remove(to + ".next", ignored);
    tell(has_arrived ? from + " has arrived, and stays: " + error.what()
                     : from + " cannot be staged to " + to + ": " + error.what());
  }
  // FTI itself stages in the call where it has no heads, and the call tells how that went.
  if (!has_arrived && !configuration_.has_heads) return FTI_NSCS;
  sent_.push_back(has_arrived);
  return static_cast<int>(sent_.size()) - 1;
}

void FtiRun::check_staging() const {
  if (!configuration_.has_staging)
    throw Failure("nothing is staged: [basic] enable_staging is not 1");
}

int FtiRun::stage_status(int number) const {
  check_staging();
  if (number < 0 || static_cast<std::size_t>(number) >= sent_.size()) return FTI_SI_NINI;
  return sent_[static_cast<std::size_t>(number)] ? FTI_SI_SCES : FTI_SI_FAIL;
}

void FtiRun::finish() {
  shared_.reset();  // its versions stay
  if (configuration_.has_staging) {
    std::error_code ignored;  // other files that the program has left there are its own business
    const std::filesystem::path folder = stage_folder();
    std::filesystem::remove(folder, ignored);
    std::filesystem::remove(folder.parent_path(), ignored);  // by the last of the node
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
