#include "run.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <utility>

#include "../common/durable.hpp"
#include "../common/together.hpp"
#include "scr.h"

namespace diapause::drop_in {
namespace {

namespace fs = std::filesystem;
using Failure = std::runtime_error;

constexpr const char* kNameRegion = "scr.name";  // holds the name of the dataset

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds since 1970; 0: not known.
long end_of_allocation_s() {
  for (const char* const variable : {"SCR_END_TIME", "SLURM_JOB_END_TIME"}) {
    const char* const text = std::getenv(variable);
    if (text != nullptr && std::atol(text) > 0) return std::atol(text);
  }
  return 0;
}

// Removes what is there of these files.
void remove_all(const std::vector<fs::path>& files) {
  std::error_code ignored;
  for (const fs::path& file : files) fs::remove(file, ignored);
}

void check_name(const std::string& name) {
  if (name.size() < SCR_MAX_FILENAME && name.find('\n') == std::string::npos) return;
  throw Failure("the name of a dataset must be of one line and shorter than " +
                std::to_string(SCR_MAX_FILENAME));
}

void check_is_named(const std::string& name) {
  if (name.empty()) throw Failure("the name of a dataset is missing");
}

}  // namespace

ScrRun::ScrRun(const ScrParameters& of_program) {
  MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
  MPI_Comm_rank(comm_, &rank_);
  std::string problem;
  try {
    configuration_ = scr_configuration(ScrSettings(of_program));
  } catch (const std::exception& error) {
    problem = error.what();
  }
  try {
    agree(problem);
    job_ = std::make_unique<Job>(comm_, configuration_.job_name, configuration_.settings,
                                 configuration_.directories);
    share_dropped();
    restarts_ = ScrRestarts::of(shared_note("restarts"));
    last_version_ = std::max(job_->newest(), restarts_.last());  // what is told of stays unique
  } catch (...) {
    job_.reset();
    MPI_Comm_free(&comm_);
    throw;
  }
  last_end_s_ = monotonic_s();
  if (rank_ != 0) return;
  for (const std::string& remark : configuration_.remarks)
    std::fprintf(stderr, "scr: %s\n", remark.c_str());
}

void ScrRun::close() {
  const bool is_to_be_safe = configuration_.flush_every > 0 && checkpoints_ > 0;
  std::string problem;
  try {
    if (is_to_be_safe) make_last_safe();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  try {
    job_->close();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  job_.reset();
  agree(problem);
  MPI_Comm_free(&comm_);
}

// The last checkpoint is that of this run, or what a restart would begin with, if the program has
// asked for one since.
void ScrRun::make_last_safe() {
  if (!job_->last().is_ours) {
    if (!candidate()) return;
    job_->open(candidate_->version);
  }
  job_->take_last_again(DIAPAUSE_L4, last_version_ + 1);
}

void ScrRun::agree(const std::string& problem) const {
  int is_bad = problem.empty() ? 0 : 1;
  int is_any_bad = 0;
  MPI_Allreduce(&is_bad, &is_any_bad, 1, MPI_INT, MPI_MAX, comm_);
  if (is_bad != 0) throw Failure(problem);
  if (is_any_bad != 0) throw Failure("another rank cannot go on, and says why");
}

std::uint64_t ScrRun::of_rank_0(std::uint64_t value) const {
  MPI_Bcast(&value, 1, MPI_UINT64_T, 0, comm_);
  return value;
}

std::string ScrRun::note_path(const char* kind) const {
  return configuration_.hidden + "/" + configuration_.job_name + "." + kind;
}

// Rank 0 reads it, and tells the others.
std::string ScrRun::shared_note(const char* kind) const {
  std::string text;
  if (rank_ == 0) {
    std::ifstream file(note_path(kind));
    for (std::string line; std::getline(file, line);) text += line + "\n";
  }
  text.resize(of_rank_0(text.size()));
  MPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, comm_);
  return text;
}

void ScrRun::save_note(const char* kind, const std::string& text) const {
  together(comm_, [&] {
    if (rank_ == 0) replace_file(note_path(kind), text, "what later runs have to know");
  });
}

// The names of dropped datasets, one a line.
void ScrRun::share_dropped() {
  const std::string text = shared_note("dropped");
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos;
       at = end + 1) {
    dropped_.insert(text.substr(at, end - at));
  }
}

void ScrRun::save_dropped() const {
  std::string names;
  for (const std::string& name : dropped_) names += name + '\n';
  save_note("dropped", names);
}

// ---- output ---------------------------------------------------------------------------------

void ScrRun::check_start(const std::string& name, int flags) const {
  if (output_) throw Failure("the dataset " + output_->name + " was begun and is not complete");
  if (!restart_directory_.empty()) throw Failure("a restart was begun and is not complete");
  check_name(name);
  if ((flags & (SCR_FLAG_CHECKPOINT | SCR_FLAG_OUTPUT)) == 0)
    throw Failure(name + ": a dataset is a checkpoint, output, or both");
}

// Ranks that went on with different datasets would wait for each other for ever.
void ScrRun::start_output(const std::string& name, int flags) {
  const std::uint64_t mine = std::hash<std::string>{}(name + '\n' + std::to_string(flags));
  std::string problem;
  if (of_rank_0(mine) != mine)
    problem = name + ": the name and the flags of a dataset must be the same on all ranks";
  try {
    check_start(name, flags);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  agree(problem);
  Output output{
      name,         (flags & SCR_FLAG_CHECKPOINT) != 0, (flags & SCR_FLAG_OUTPUT) != 0, {}, {},
      monotonic_s()};
  if (output.name.empty()) output.name = "scr.dataset." + std::to_string(last_version_ + 1);
  is_restart_looked_for_ = false;
  if (output.is_checkpoint) output.directory = job_->begin_files();
  output_ = std::move(output);
}

void ScrRun::complete_output(bool is_valid) {
  if (!output_) throw Failure("a dataset must be begun before it is complete");
  const Output output = *std::move(output_);
  output_.reset();
  try {
    together(comm_, [&] { check_complete(output, is_valid); });
    if (output.is_checkpoint) store(output);
  } catch (...) {
    if (!output.is_checkpoint) remove_all(at_prefix(output.files));
    throw;
  }
  if (output.is_output) outputs_[output.name] = output.files;
}

void ScrRun::check_complete(const Output& output, bool is_valid) const {
  if (!is_valid) throw Failure(output.name + ": the program says that its files are not valid");
  for (const std::string& file : output.files) {
    const fs::path path =
        output.is_checkpoint ? fs::path(output.directory) / file : at_prefix(file);
    if (fs::exists(path)) continue;
    const std::string what = output.name + ": " + file + " was routed and not written";
    if (!output.is_checkpoint || !fs::exists(at_prefix(file))) throw Failure(what);
    throw Failure(
        what + ": " + at_prefix(file).string() +
        " is there, and the program has to write to the path that SCR_Route_file returns");
  }
}

// Each rank has the files of a checkpoint to itself. Rank 0 finds out by numbers that stand for
// their paths.
std::string ScrRun::shared_file_of(const Output& output) const {
  std::vector<std::uint64_t> own;
  for (const std::string& file : output.files) own.push_back(std::hash<std::string>{}(file));
  int ranks = 0;
  MPI_Comm_size(comm_, &ranks);
  std::vector<int> counts(static_cast<std::size_t>(ranks));
  const int own_count = static_cast<int>(own.size());
  MPI_Gather(&own_count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, comm_);
  std::vector<int> begins(counts.size(), 0);
  for (std::size_t i = 1; i < counts.size(); ++i) begins[i] = begins[i - 1] + counts[i - 1];
  std::vector<std::uint64_t> all(
      rank_ == 0 ? static_cast<std::size_t>(begins.back() + counts.back()) : 0);
  MPI_Gatherv(own.data(), own_count, MPI_UINT64_T, all.data(), counts.data(), begins.data(),
              MPI_UINT64_T, 0, comm_);
  std::sort(all.begin(), all.end());
  const auto twice = std::adjacent_find(all.begin(), all.end());
  const std::uint64_t shared = of_rank_0(twice == all.end() ? 0 : *twice);
  if (shared == 0) return "";
  for (const std::string& file : output.files) {
    if (std::hash<std::string>{}(file) != shared) continue;
    return output.name + ": " + file +
           " is written by several ranks: give each rank a file of its own";
  }
  return "";
}

// The files appear at their places when those of all ranks are whole.
void ScrRun::copy_out(const Output& output) const {
  std::vector<fs::path> parts;
  std::string problem;
  try {
    for (const std::string& file : output.files) {
      const fs::path to = at_prefix(file);
      fs::create_directories(to.parent_path());
      parts.emplace_back(to.string() + ".part");
      copy_durably(fs::path(output.directory) / file, parts.back());
    }
  } catch (const std::exception& error) {
    problem = error.what();
  }
  try {
    agree(problem);
  } catch (...) {
    remove_all(parts);
    throw;
  }
  try {
    for (const std::string& file : output.files)
      rename_durably(at_prefix(file).string() + ".part", at_prefix(file));
  } catch (const std::exception& error) {
    problem = error.what();
  }
  agree(problem);
}

void ScrRun::store(const Output& output) {
  agree(shared_file_of(output));
  if (output.is_output) copy_out(output);
  try {
    take(output);
  } catch (...) {
    if (output.is_output) remove_all(at_prefix(output.files));
    throw;
  }
}

void ScrRun::take(const Output& output) {
  const int level = output.is_output ? DIAPAUSE_L4 : configuration_.level_of(last_version_ + 1);
  std::string name = output.name;
  const Blocks blocks{{kNameRegion, {name.data(), name.size(), 1, DIAPAUSE_BYTES}}};
  const LastVersion before = job_->last();
  std::string problem;
  try {
    job_->checkpoint_files(blocks, last_version_ + 1, level, true);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  try {
    agree(problem);
  } catch (...) {
    withdraw(last_version_ + 1, before);
    throw;
  }
  ++last_version_;
  ++checkpoints_;
  if (dropped_.erase(name) != 0) save_dropped();
  last_end_s_ = monotonic_s();
  cost_s_ += last_end_s_ - output.started_s;
}

// A dataset that the program was told has failed is gone: the levels that it has reached do not
// count. A version without a name takes its place.
void ScrRun::withdraw(std::uint64_t version, const LastVersion& before) {
  try {
    job_->withdraw(version, before);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "scr: the dataset that failed could not be removed: %s\n", error.what());
  }
}

// ---- when -----------------------------------------------------------------------------------

bool ScrRun::is_due_here(double now_s) const {
  const ScrConfiguration& c = configuration_;
  if (c.need_every > 0 && need_calls_ % static_cast<std::uint64_t>(c.need_every) == 0) return true;
  const double since_s = now_s - last_end_s_;
  if (c.need_after_s > 0 && since_s >= static_cast<double>(c.need_after_s)) return true;
  if (c.need_overhead_percent == 0) return false;
  if (checkpoints_ == 0) return true;  // its cost is still to be found out
  const double cost_s = cost_s_ / static_cast<double>(checkpoints_);
  return 100 * cost_s <= c.need_overhead_percent * (since_s + cost_s);
}

bool ScrRun::is_near_the_end_here() const {
  const long end_s = end_of_allocation_s();
  if (configuration_.halt_before_s == 0 || end_s == 0) return false;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count() +
             configuration_.halt_before_s >=
         end_s;
}

bool ScrRun::is_checkpoint_due() {
  ++need_calls_;
  return of_rank_0(is_due_here(monotonic_s()) || is_near_the_end_here() ? 1 : 0) != 0;
}

bool ScrRun::is_near_the_end() { return of_rank_0(is_near_the_end_here() ? 1 : 0) != 0; }

// ---- restart --------------------------------------------------------------------------------

std::string ScrRun::stored_name() {
  std::string name;
  together(comm_, [&] {
    name.resize(job_->stored_bytes(kNameRegion).value_or(0));
    job_->read(kNameRegion, name.data());
    check_name(name);
  });
  return name;
}

// The newest checkpoint of that name that was not dropped; without a name, the newest that a
// restart may take. It is open then.
std::optional<ScrRun::Checkpoint> ScrRun::newest(const std::string& wanted) {
  std::uint64_t at_most = DIAPAUSE_NEWEST;
  while (at_most > 0) {
    const auto found = job_->find(at_most);
    if (!found || found->version == 0) break;  // ours begin with 1
    at_most = wanted.empty() ? restarts_.at_or_below(found->version) : found->version;
    if (at_most != found->version) continue;
    const std::string name = stored_name();  // empty where a dataset was withdrawn
    const bool is_wanted = !name.empty() && (wanted.empty() || name == wanted);
    if (is_wanted && dropped_.count(name) == 0) return Checkpoint{found->version, name};
    --at_most;
  }
  return std::nullopt;
}

// It stays so for later runs, until another checkpoint is taken.
void ScrRun::begin_with(const Checkpoint& checkpoint) {
  candidate_ = checkpoint;
  is_restart_looked_for_ = true;
  const bool is_last = checkpoint.version == last_version_;
  restarts_.current = is_last ? 0 : checkpoint.version;
  restarts_.left_out_to = is_last ? 0 : last_version_;
  restarts_.failed.erase(checkpoint.version);
  save_note("restarts", restarts_.text());
}

std::optional<std::string> ScrRun::candidate() {
  if (!is_restart_looked_for_) {
    const std::string wanted = configuration_.current.value_or("");
    const auto found = newest(wanted);
    if (!found && !wanted.empty()) throw Failure("there is no checkpoint " + wanted);
    configuration_.current.reset();
    candidate_ = found;
    is_restart_looked_for_ = true;
    if (!wanted.empty()) begin_with(*found);
  }
  if (!candidate_) return std::nullopt;
  return candidate_->name;
}

std::string ScrRun::start_restart() {
  if (output_) throw Failure("the dataset " + output_->name + " was begun and is not complete");
  if (!candidate()) throw Failure("there is no checkpoint to restart from");
  job_->open(candidate_->version);
  restart_directory_ = job_->restore_files();
  return candidate_->name;
}

void ScrRun::complete_restart(bool is_valid) {
  if (restart_directory_.empty()) throw Failure("a restart must be begun before it is complete");
  restart_directory_.clear();
  job_->end_reading();
  const Checkpoint tried = *std::exchange(candidate_, std::nullopt);
  std::string problem;
  if (!is_valid)
    problem =
        "the program could not restart from " + tried.name + ": the checkpoint before is next";
  is_restart_looked_for_ = false;
  try {
    agree(problem);
  } catch (...) {
    restarts_.failed.insert(tried.version);
    save_note("restarts", restarts_.text());
    throw;
  }
}

void ScrRun::restart_from(const std::string& name) {
  if (!restart_directory_.empty() || output_)
    throw Failure("SCR_Current is called outside of datasets and restarts");
  check_is_named(name);
  const auto found = newest(name);
  if (found) return begin_with(*found);
  is_restart_looked_for_ = false;
  if (rank_ == 0) std::fprintf(stderr, "scr: there is no checkpoint %s\n", name.c_str());
}

void ScrRun::drop(const std::string& name) {
  check_is_named(name);
  check_name(name);
  dropped_.insert(name);
  save_dropped();
  if (candidate_ && candidate_->name == name && restart_directory_.empty())
    is_restart_looked_for_ = false;
}

void ScrRun::remove(const std::string& name) {
  drop(name);
  std::string problem;
  for (const std::string& file : outputs_[name]) {
    std::error_code error;
    fs::remove(at_prefix(file), error);
    if (error) problem = at_prefix(file).string() + ": " + error.message();
  }
  outputs_.erase(name);
  agree(problem);
}

}  // namespace diapause::drop_in
