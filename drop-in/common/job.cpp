#include "job.hpp"

#include <cstdio>
#include <cstring>
#include <vector>

namespace diapause::drop_in {
namespace {

constexpr double kForever_s = 1e9;

void check(int status) {
  if (status != DIAPAUSE_OK) throw Failed(status);
}

}  // namespace

Job::Job(MPI_Comm comm, const std::string& name, const std::string& settings) {
  diapause_open_options options = DIAPAUSE_OPEN_OPTIONS_INIT;
  options.config_text = settings.c_str();
  check(comm == MPI_COMM_NULL ? diapause_open_with(name.c_str(), &options, &instance_)
                              : diapause_mpi_open_with(comm, name.c_str(), &options, &instance_));
}

Job::~Job() {
  if (diapause_close(instance_) != DIAPAUSE_OK) std::fprintf(stderr, "diapause: %s\n", diapause_last_error());
}

MPI_Comm Job::program_comm() const {
  MPI_Comm comm = MPI_COMM_NULL;
  check(diapause_comm(instance_, &comm));
  return comm;
}

void Job::close() {
  diapause_t* const instance = instance_;
  instance_ = nullptr;
  check(diapause_close(instance));
}

void Job::finish() {
  diapause_t* const instance = instance_;
  instance_ = nullptr;
  check(diapause_finish(instance));
}

void Job::checkpoint(const Blocks& blocks, std::uint64_t version, int level) {
  end_reading_if_open();
  protect(blocks);
  const bool needs_nodes = level == DIAPAUSE_L2 || level == DIAPAUSE_L3;
  if (needs_nodes && has_too_few_nodes_) level = DIAPAUSE_L1;
  int status = take(version, level);
  if (status == DIAPAUSE_ERR_ARGUMENT && needs_nodes && level != DIAPAUSE_L1) {
    const std::string why = diapause_last_error();
    level = DIAPAUSE_L1;
    status = take(version, level);
    has_too_few_nodes_ = status == DIAPAUSE_OK;
    if (has_too_few_nodes_) std::fprintf(stderr, "diapause: level 1 is taken instead: %s\n", why.c_str());
  }
  check(status);
  last_version_ = version;
  last_level_ = level;
  check(diapause_wait(instance_, version, DIAPAUSE_CAPTURED, kForever_s));
}

int Job::take(std::uint64_t version, int level) {
  diapause_checkpoint_info info;
  const int status = diapause_checkpoint(instance_, version, level, &info);
  if (info.background != DIAPAUSE_OK) std::fprintf(stderr, "diapause: %s\n", diapause_background_reason(instance_));
  return status;
}

// Only what has changed is protected anew: what is known of the other regions helps the next capture.
void Job::protect(const Blocks& blocks) {
  for (auto known = protected_.begin(); known != protected_.end();) {
    const auto wanted = blocks.find(known->first);
    if (wanted != blocks.end() && wanted->second == known->second) {
      ++known;
      continue;
    }
    if (wanted == blocks.end()) check(diapause_unprotect(instance_, known->first.c_str()));
    known = protected_.erase(known);
  }
  for (const auto& [name, block] : blocks) {
    if (protected_.count(name) != 0) continue;
    void* const data = block.count == 0 ? nullptr : block.data;
    check(block.type == DIAPAUSE_BYTES
              ? diapause_protect_bytes(instance_, name.c_str(), data, block.count, block.element_bytes)
              : diapause_protect(instance_, name.c_str(), data, block.count, block.type));
    protected_.emplace(name, block);
  }
}

void Job::wait() {
  if (last_version_) check(diapause_wait(instance_, *last_version_, last_level_, kForever_s));
}

bool Job::is_done() const {
  diapause_progress progress;
  if (!last_version_) return true;
  check(diapause_poll(instance_, *last_version_, &progress));
  return progress.level_reached >= last_level_ || progress.in_flight == 0;
}

std::optional<diapause_restart_info> Job::find(std::uint64_t at_most) {
  end_reading_if_open();
  while (true) {
    std::uint64_t version = DIAPAUSE_NEWEST;  // then the library itself steps back
    const int status = at_most == DIAPAUSE_NEWEST ? DIAPAUSE_OK : diapause_newest(instance_, at_most, &version);
    if (status == DIAPAUSE_ERR_NOT_FOUND) return std::nullopt;
    check(status);
    try {
      return open(version);
    } catch (const Failed& failed) {
      if (failed.status == DIAPAUSE_ERR_NOT_FOUND) return std::nullopt;
      if (failed.status != DIAPAUSE_ERR_CORRUPT || version == DIAPAUSE_NEWEST || version == 0) throw;
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
  return info;
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
  void* data = nullptr;
  check(diapause_map(instance_, region.c_str(), &data));
  std::memcpy(to, data, bytes);
  check(diapause_unmap(instance_, data));
}

}  // namespace diapause::drop_in
