#include "job.hpp"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "together.hpp"

namespace diapause::drop_in {
namespace {

constexpr double kForever_s = 1e9;

// Returns whether a region of this name is a file of the program's own.
bool is_file(const std::string& region) { return region.rfind("file:", 0) == 0; }

void check(int status) {
  if (status != DIAPAUSE_OK) throw Failed(status);
}

int protect_one(diapause_t* instance, const char* name, const Block& block) {
  constexpr std::size_t kMostDims = 8;  // of diapause_protect_block
  void* const data = block.count == 0 ? nullptr : block.data;
  const bool is_opaque = block.type == DIAPAUSE_BYTES;
  const std::size_t dims = block.place.shape.size() + (is_opaque ? 1 : 0);
  if (!block.place.shape.empty() && dims <= kMostDims) {
    Place place = block.place;
    if (is_opaque) {  // the bytes of an element are one more dimension
      place.shape.push_back(block.element_bytes);
      place.global_shape.push_back(block.element_bytes);
      place.start.push_back(0);
    }
    return diapause_protect_block(instance, name, data, is_opaque ? DIAPAUSE_UINT8 : block.type,
                                  static_cast<int>(dims), place.shape.data(),
                                  place.global_shape.data(), place.start.data());
  }
  if (is_opaque)
    return diapause_protect_bytes(instance, name, data, block.count, block.element_bytes);
  return diapause_protect(instance, name, data, block.count, block.type);
}

// Returns whether one of the directories has this job on any node: there it is `<name>-<8 digits>`.
// Without directories nothing tells that it was removed.
bool is_anywhere(MPI_Comm comm, const std::string& name,
                 const std::vector<std::string>& directories) {
  constexpr std::size_t kDigits = 8;
  int is_there = directories.empty() ? 1 : 0;
  for (const std::string& directory : directories) {
    std::error_code error;  // a directory that is not there has nothing
    for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
      const std::string found = entry.path().filename().string();
      if (found.size() == name.size() + 1 + kDigits && found.rfind(name + "-", 0) == 0)
        is_there = 1;
    }
  }
  if (comm != MPI_COMM_NULL) MPI_Allreduce(MPI_IN_PLACE, &is_there, 1, MPI_INT, MPI_MAX, comm);
  return is_there != 0;
}

}  // namespace

Job::Job(MPI_Comm comm, const std::string& name, const std::string& settings) : Job() {
  begin(comm, name, settings);
}

Job::Job(MPI_Comm comm, const std::string& name, const std::string& settings,
         const std::vector<std::string>& directories)
    : Job() {  // what throws here has the instance closed
  const bool is_known = is_anywhere(comm, name, directories);
  begin(comm, name, settings);
  if (is_known || newest() == 0) return;
  if (is_first_) {
    std::fprintf(stderr,
                 "diapause: the directories of '%s' were removed: what memory still holds of it is "
                 "removed, too\n",
                 name.c_str());
  }
  finish();
  begin(comm, name, settings);
}

void Job::begin(MPI_Comm comm, const std::string& name, const std::string& settings) {
  int rank = 0;
  if (comm != MPI_COMM_NULL) MPI_Comm_rank(comm, &rank);
  is_first_ = rank == 0;
  is_single_ = comm == MPI_COMM_NULL;
  diapause_open_options options = DIAPAUSE_OPEN_OPTIONS_INIT;
  options.config_text = settings.c_str();
  check(comm == MPI_COMM_NULL ? diapause_open_with(name.c_str(), &options, &instance_)
                              : diapause_mpi_open_with(comm, name.c_str(), &options, &instance_));
}

Job::~Job() {
  if (diapause_close(instance_) != DIAPAUSE_OK)
    std::fprintf(stderr, "diapause: %s\n", diapause_last_error());
}

MPI_Comm Job::program_comm() const {
  MPI_Comm comm = MPI_COMM_NULL;
  check(diapause_comm(instance_, &comm));
  return comm;
}

void Job::on_all(const std::function<void()>& body) {
  is_single_ ? body() : together(program_comm(), body);
}

void Job::close() {
  end_reading_if_open();
  diapause_t* const instance = instance_;
  instance_ = nullptr;
  check(diapause_close(instance));
}

void Job::finish() {
  end_reading_if_open();
  diapause_t* const instance = instance_;
  instance_ = nullptr;
  check(diapause_finish(instance));
}

void Job::checkpoint(const Blocks& blocks, std::uint64_t version, int level) {
  end_reading_if_open();
  protect(blocks);
  checkpoint_by(diapause_checkpoint, version, level);
}

std::string Job::begin_files() {
  end_reading_if_open();
  const char* directory = nullptr;
  check(diapause_files(instance_, &directory));
  return directory;
}

void Job::checkpoint_files(const Blocks& blocks, std::uint64_t version, int level, bool is_valid) {
  protect(blocks);
  const Taking take_valid = [](diapause_t* instance, std::uint64_t number, int at,
                               diapause_checkpoint_info* info) {
    return diapause_checkpoint_files(instance, number, at, 1, info);
  };
  const Taking take_invalid = [](diapause_t* instance, std::uint64_t number, int at,
                                 diapause_checkpoint_info* info) {
    return diapause_checkpoint_files(instance, number, at, 0, info);
  };
  checkpoint_by(is_valid ? take_valid : take_invalid, version, level);
  last_.has_files = true;
}

void Job::checkpoint_by(Taking taking, std::uint64_t version, int level) {
  level = deepest_possible(level);
  on_all([&] {
    diapause_checkpoint_info info;
    const int status = taking(instance_, version, level, &info);
    if (info.background != DIAPAUSE_OK)
      std::fprintf(stderr, "diapause: %s\n", diapause_background_reason(instance_));
    check(status);
    note(version, level);
    if (diapause_worker_of(instance_) == DIAPAUSE_WORKER_THREAD_IN_CALLS) wait();
  });
}

int Job::deepest_possible(int level) {
  const int has_nodes = diapause_has_nodes_for(instance_, level);
  if (has_nodes != 0) return level;  // an error is that of the checkpoint
  if (is_first_ && !std::exchange(has_told_of_few_nodes_, true)) {
    std::fprintf(stderr,
                 "diapause: the job has too few nodes for level %d: level 1 is taken instead\n",
                 level);
  }
  return DIAPAUSE_L1;
}

void Job::note(std::uint64_t version, int level) {
  last_ = {version, level, true, false};
  check(diapause_wait(instance_, version, DIAPAUSE_CAPTURED, kForever_s));
}

int Job::snapshot(const std::function<Blocks()>& blocks, std::uint64_t version) {
  const int is_due = diapause_is_due(instance_);
  if (is_due < 0) check(is_due);
  if (is_due == 0) return 0;
  end_reading_if_open();
  protect(blocks());
  diapause_checkpoint_info info;
  on_all([&] {
    check(diapause_snapshot(instance_, version, &info));
    if (info.taken != 0) note(version, info.level_asked);
  });
  return info.taken == 0 ? 0 : info.level_asked;
}

// Memory that one rank cannot register is a failure of all: the checkpoint itself is collective.
void Job::protect(const Blocks& blocks) {
  on_all([&] { protect_here(blocks); });
}

// Only what has changed is protected anew: what is known of the other regions helps the next
// capture. A region that is refused is not protected any more, also not as it was before.
void Job::protect_here(const Blocks& blocks) {
  for (auto known = protected_.begin(); known != protected_.end();) {
    if (blocks.count(known->first) != 0) {
      ++known;
      continue;
    }
    check(diapause_unprotect(instance_, known->first.c_str()));
    known = protected_.erase(known);
  }
  for (const auto& [name, block] : blocks) {
    const auto known = protected_.find(name);
    if (known != protected_.end() && known->second == block) continue;
    try {
      check(protect_one(instance_, name.c_str(), block));
    } catch (const Failed&) {
      if (known != protected_.end()) {
        diapause_unprotect(instance_, name.c_str());
        protected_.erase(known);
      }
      throw;
    }
    protected_[name] = block;
  }
}

void Job::wait() { wait_for(last_.level); }

void Job::wait_for(int level) {
  if (last_.is_ours) check(diapause_wait(instance_, *last_.number, level, kForever_s));
}

void Job::take_last_again(int level, std::uint64_t version) {
  on_all([&] { wait(); });
  if (last_.level >= level) return;
  const bool has_files = last_.has_files;
  open(*last_.number);
  Blocks blocks;
  on_all([&] { blocks = map_last(); });
  if (has_files) {
    const bool are_moved = move_restored_files();
    checkpoint_files(blocks, version, level, are_moved);
  } else {
    checkpoint(blocks, version, level);
  }
  on_all([&] { wait(); });
  protect({});
  for (const auto& [name, block] : blocks) {
    if (block.data != nullptr) check(diapause_unmap(instance_, block.data));
  }
}

// What the open version holds, but for its files.
Blocks Job::map_last() {
  Blocks blocks;
  for (const std::string& name : stored_names()) {
    diapause_region_info info;
    if (is_file(name)) continue;
    check(diapause_stored_find(instance_, name.c_str(), &info));
    Block& block = blocks[name] = {nullptr, info.count, info.element_bytes, info.type};
    const auto known = protected_.find(name);  // the place is not told of what is stored
    if (known != protected_.end() && known->second.bytes() == block.bytes()) block = known->second;
    block.data = nullptr;
    if (block.bytes() != 0) check(diapause_map(instance_, name.c_str(), &block.data));
  }
  return blocks;
}

void Job::withdraw(std::uint64_t version, const LastVersion& before) {
  begin_files();  // which removes the files that were to be in the version
  checkpoint({}, version, DIAPAUSE_L1);
  wait();
  last_ = before;
}

// Into the directory of the next version; false if that is not possible on this rank.
bool Job::move_restored_files() {
  const std::filesystem::path from = restore_files();
  const char* to = nullptr;
  check(diapause_files(instance_, &to));
  std::error_code error;
  std::filesystem::directory_iterator entry(from, error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    const std::filesystem::path path = entry->path();
    std::filesystem::rename(path, std::filesystem::path(to) / path.filename(), error);
    if (!error) entry.increment(error);
  }
  end_reading();
  return !error;
}

std::uint64_t Job::newest() {
  std::uint64_t version = 0;
  const int status = diapause_newest(instance_, DIAPAUSE_NEWEST, &version);
  if (status != DIAPAUSE_ERR_NOT_FOUND) check(status);
  return version;
}

bool Job::is_done() const {
  diapause_progress progress;
  if (!last_.is_ours) return true;
  check(diapause_poll(instance_, *last_.number, &progress));
  return progress.level_reached >= last_.level || progress.in_flight == 0;
}

std::optional<diapause_restart_info> Job::find(std::uint64_t at_most) {
  end_reading_if_open();
  while (true) {
    std::uint64_t version = DIAPAUSE_NEWEST;  // the library itself steps back then
    const int status =
        at_most == DIAPAUSE_NEWEST ? DIAPAUSE_OK : diapause_newest(instance_, at_most, &version);
    if (status == DIAPAUSE_ERR_NOT_FOUND) return std::nullopt;
    check(status);
    try {
      return open(version);
    } catch (const Failed& failed) {
      if (failed.status == DIAPAUSE_ERR_NOT_FOUND) return std::nullopt;
      if (failed.status != DIAPAUSE_ERR_CORRUPT || version == DIAPAUSE_NEWEST || version == 0)
        throw;
      std::fprintf(stderr, "diapause: %s\n", failed.what());
    }
    at_most = version - 1;
  }
}

diapause_restart_info Job::open(std::uint64_t version) {
  if (opened_ && opened_->version == version) return *opened_;
  end_reading_if_open();
  diapause_restart_info info;
  check(diapause_restart_mapped(instance_, version, DIAPAUSE_CHECK_FIRST, &info));
  opened_ = info;
  last_ = {info.version, info.level, false, last_.has_files};
  return info;
}

// The levels of a version can be out of reach, because fewer nodes are there than before: the
// program goes on with those that it has.
void Job::restore_redundancy() {
  if (!opened_ || opened_->redundancy_lost == 0) return;
  const std::uint64_t version = opened_->version;
  const int level = opened_->level;
  end_reading();
  const int status = diapause_wait(instance_, version, level, kForever_s);
  if (status != DIAPAUSE_OK && is_first_)
    std::fprintf(stderr, "diapause: %s\n", diapause_last_error());
  open(version);
}

void Job::open_last() {
  on_all([&] { wait_for(DIAPAUSE_L1); });
  open(*last_.number);
}

void Job::end_reading() {
  opened_.reset();
  check(diapause_restart_end(instance_));
}

void Job::end_reading_if_open() {
  if (opened_) end_reading();
}

std::optional<std::uint64_t> Job::stored_bytes(const std::string& region) const {
  diapause_region_info info;
  const int status = diapause_stored_find(instance_, region.c_str(), &info);
  if (status == DIAPAUSE_ERR_NOT_FOUND) return std::nullopt;
  check(status);
  return info.count * info.element_bytes;
}

std::vector<std::string> Job::stored_names() const {
  std::vector<std::string> names;
  const std::int64_t count = diapause_stored_count(instance_);
  for (std::int64_t i = 0; i < count; ++i) {
    diapause_region_info info;
    check(diapause_stored_at(instance_, static_cast<std::uint64_t>(i), &info));
    names.emplace_back(info.name);
  }
  return names;
}

void Job::read(const std::string& region, void* to) {
  const std::uint64_t bytes = stored_bytes(region).value_or(0);
  if (bytes == 0) return;
  void* const data = map(region);
  std::memcpy(to, data, bytes);
  unmap(data);
}

void* Job::map(const std::string& region) {
  void* data = nullptr;
  check(diapause_map(instance_, region.c_str(), &data));
  return data;
}

void Job::unmap(void* data) { check(diapause_unmap(instance_, data)); }

std::string Job::restore_files() {
  const char* directory = nullptr;
  check(diapause_restore_files(instance_, &directory));
  return directory;
}

}  // namespace diapause::drop_in
