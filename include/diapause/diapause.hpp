// Diapause for C++17 and later: an instance that closes itself, typed regions, and errors as
// exceptions. This header is a thin layer over diapause.h, and the contracts there hold here, too.
// It is header-only, so that exceptions never cross the boundary of the library. A program with MPI
// also includes diapause_mpi.h, before or after this file.
#ifndef DIAPAUSE_DIAPAUSE_HPP
#define DIAPAUSE_DIAPAUSE_HPP

#if __cplusplus < 201703L
#error "diapause.hpp needs C++17 or later: compile with -std=c++17"
#endif

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "diapause/diapause.h"

namespace diapause {
// Keeps these symbols apart from the library's own, which share the outer namespace.
inline namespace cpp {

// The exception for a call that did not return DIAPAUSE_OK.
class Failure : public std::runtime_error {
 public:
  Failure(int status, const std::string& text) : std::runtime_error(text), status_(status) {}
  // Returns the diapause_status, which is below 0.
  int status() const noexcept { return status_; }

 private:
  int status_;
};

// The exception for a checkpoint that failed as a whole or above some level; info().level_reached
// says what holds.
class CheckpointFailure : public Failure {
 public:
  CheckpointFailure(int status, const std::string& text, const diapause_checkpoint_info& info)
      : Failure(status, text), info_(info) {}
  const diapause_checkpoint_info& info() const noexcept { return info_; }

 private:
  diapause_checkpoint_info info_;
};

// A view of contiguous elements that belong to somebody else, as std::span of C++20 is; each
// converts to the other.
template <class T>
class Span {
 public:
  Span() = default;
  Span(T* data, std::size_t size) : data_(data), size_(size) {}
  // Views everything that has data() and size(), such as vectors, arrays, strings and spans.
  template <class Range, class = decltype(static_cast<T*>(std::declval<Range&>().data()))>
  Span(Range&& range) : data_(range.data()), size_(range.size()) {}

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  T& operator[](std::size_t index) const { return data_[index]; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// A region as it is stored in the version that a restart has opened.
struct StoredRegion {
  std::string name;
  diapause_type type;
  std::uint64_t element_bytes;
  std::uint64_t count;
};

// Returns the element type under which T is protected: integers and floats by size and sign, all
// other types as opaque elements.
template <class T>
constexpr diapause_type element_type() {
  if constexpr (std::is_same_v<T, float>) return DIAPAUSE_FLOAT32;
  if constexpr (std::is_same_v<T, double>) return DIAPAUSE_FLOAT64;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return is_signed ? DIAPAUSE_INT8 : DIAPAUSE_UINT8;
    if constexpr (sizeof(T) == 2) return is_signed ? DIAPAUSE_INT16 : DIAPAUSE_UINT16;
    if constexpr (sizeof(T) == 4) return is_signed ? DIAPAUSE_INT32 : DIAPAUSE_UINT32;
    if constexpr (sizeof(T) == 8) return is_signed ? DIAPAUSE_INT64 : DIAPAUSE_UINT64;
  }
  return DIAPAUSE_BYTES;
}

// This struct is complete if diapause_mpi.h is included. Include that header for an instance on a
// communicator.
template <class Dependent>
struct IncludeDiapauseMpiH;

// An instance of diapause.h. Every member function that fails throws Failure, except for the
// destructor. Calls on one instance must not overlap in time. A moved-from instance may only be
// assigned to or destroyed. Member functions without a comment do what the function of that name in
// diapause.h does, which also says whether they are collective.
class Instance {
 public:
  // Opens an instance for a single process. An empty `config_path` stands for $DIAPAUSE_CONFIG, or
  // the defaults.
  explicit Instance(const std::string& name, const std::string& config_path = {}) {
    check(diapause_open(name.c_str(), path_or_null(config_path), &handle_));
  }

  // Opens an instance on all ranks of `comm`, an MPI_Comm. Close or destroy it before MPI_Finalize,
  // which closes an instance that is still open. Collective.
  template <class Comm, class = std::enable_if_t<!std::is_convertible_v<Comm, std::string>>>
  explicit Instance(Comm comm, const std::string& name, const std::string& config_path = {}) {
    using Mpi = IncludeDiapauseMpiH<std::enable_if_t<sizeof(Comm) != 0>>;
    check(Mpi::open(comm, name.c_str(), path_or_null(config_path), &handle_));
  }

  // Returns the communicator that the program computes on (diapause_comm). It is MPI_COMM_NULL on a
  // dedicated rank, which closes the instance next. The instance owns it.
  template <class Dependent = void>
  auto comm() const {
    typename IncludeDiapauseMpiH<Dependent>::Comm comm{};
    check(IncludeDiapauseMpiH<Dependent>::comm(handle_, &comm));
    return comm;
  }

  Instance(Instance&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), growing_(std::move(other.growing_)) {}
  Instance& operator=(Instance&& other) noexcept {
    if (this != &other) {
      diapause_close(handle_);
      handle_ = std::exchange(other.handle_, nullptr);
      growing_ = std::move(other.growing_);
    }
    return *this;
  }
  // Closes the instance, and ignores failures, of which close() informs. Like close() it is
  // collective: a rank that leaves alone by an exception must call MPI_Abort before.
  ~Instance() { diapause_close(handle_); }

  void close() { check(diapause_close(std::exchange(handle_, nullptr))); }
  // Ends the job (diapause_finish).
  void finish() { check(diapause_finish(std::exchange(handle_, nullptr))); }
  void close_within(double seconds) {
    check(diapause_close_within(std::exchange(handle_, nullptr), seconds));
  }

  // Protects the elements of `data`, such as an array or a span. They must stay where they are
  // until the region is protected again or unprotected.
  template <class Range, class = decltype(std::declval<Range&>().size())>
  void protect(const std::string& region, Range&& data) {
    protect(region, data.data(), data.size());
  }
  // Protects one value, or `count` values from `data` on, in the same way.
  template <class T>
  void protect(const std::string& region, T* data, std::size_t count = 1) {
    protect_elements(region, data, count);
    growing_.erase(region);
  }

  // Protects the elements of a vector, as many as there are when a checkpoint is taken; a restart
  // resizes the vector to the stored number. Between the calls it may grow, shrink and move its
  // elements. The vector object itself must stay where it is until the region is protected again or
  // unprotected. A checkpoint call returns only when the elements are captured.
  template <class T, class Allocator>
  void protect(const std::string& region, std::vector<T, Allocator>& data) {
    static_assert(!std::is_same_v<T, bool>,
                  "a std::vector<bool> has no elements in memory: take a vector of char");
    protect_elements(region, data.data(), data.size());
    Growing growing{sizeof(T), element_type<T>(), {}, {}};
    growing.resize = [&data](std::uint64_t count) { data.resize(static_cast<std::size_t>(count)); };
    growing.protect = [this_is = Known{data.data(), data.size()}, &data](
                          Instance& instance, const std::string& name) mutable {
      const Known now{data.data(), data.size()};
      if (now == this_is) return;
      instance.protect_elements(name, data.data(), data.size());
      this_is = now;
    };
    growing_.insert_or_assign(region, std::move(growing));
  }

  // Protects `data` as the block `[start, start + shape)` of a global array of `global_shape`
  // (diapause_protect_block). The dimensions are given with the slowest first.
  template <class Range>
  void protect_block(const std::string& region, Range&& data, Span<const std::uint64_t> shape,
                     Span<const std::uint64_t> global_shape, Span<const std::uint64_t> start) {
    using T = std::remove_pointer_t<decltype(data.data())>;
    static_assert(element_type<T>() != DIAPAUSE_BYTES,
                  "a block of a global array has numbers as elements");
    std::uint64_t count = 1;
    for (const std::uint64_t extent : shape) count *= extent;
    if (global_shape.size() != shape.size() || start.size() != shape.size() ||
        count != data.size()) {
      throw Failure(DIAPAUSE_ERR_ARGUMENT,
                    "region '" + region + "': shape, global_shape, start and data do not agree");
    }
    growing_.erase(region);
    check(diapause_protect_block(handle_, region.c_str(), data.data(), element_type<T>(),
                                 static_cast<int>(shape.size()), shape.data(), global_shape.data(),
                                 start.data()));
  }

  void unprotect(const std::string& region) {
    check(diapause_unprotect(handle_, region.c_str()));
    growing_.erase(region);
  }
  void declare(const std::string& region, diapause_declaration declaration) {
    check(diapause_declare(handle_, region.c_str(), declaration));
  }
  void allow_loss(const std::string& region, double bound,
                  diapause_lossy_codec codec = DIAPAUSE_LATTICE) {
    check(diapause_allow_loss(handle_, region.c_str(), codec, bound));
  }

  diapause_checkpoint_info checkpoint(std::uint64_t version, int level = DIAPAUSE_L1) {
    diapause_checkpoint_info info{};
    follow_growing();
    check(diapause_checkpoint(handle_, version, level, &info), info);
    wait_for_growing(info);
    return info;
  }

  diapause_checkpoint_info snapshot(std::uint64_t version) {
    diapause_checkpoint_info info{};
    follow_growing();
    check(diapause_snapshot(handle_, version, &info), info);
    wait_for_growing(info);
    return info;
  }

  // Returns whether the next snapshot() will take a checkpoint (diapause_is_due).
  bool is_due() {
    const int answer = diapause_is_due(handle_);
    if (answer < 0) check(answer);
    return answer != 0;
  }
  void on_capture(diapause_capture_hook hook, void* context) {
    check(diapause_on_capture(handle_, hook, context));
  }

  // Returns why the program has to stop, or nothing if it need not.
  std::optional<diapause_stop_info> should_stop() const {
    diapause_stop_info info{};
    if (diapause_should_stop(handle_, &info) == DIAPAUSE_GO_ON) return std::nullopt;
    return info;
  }

  // Returns who does the work that remains after a capture (diapause_worker_of).
  diapause_worker worker() const {
    return static_cast<diapause_worker>(diapause_worker_of(handle_));
  }

  // Waits until `version` holds at `level` or deeper, or is captured (DIAPAUSE_CAPTURED). Returns
  // false if the time was over first.
  bool wait(std::uint64_t version, int level, double seconds = 1e9) {
    const int status = diapause_wait(handle_, version, level, seconds);
    if (status != DIAPAUSE_ERR_TIMEOUT) check(status);
    return status == DIAPAUSE_OK;
  }

  diapause_progress poll(std::uint64_t version) {
    diapause_progress progress{};
    check(diapause_poll(handle_, version, &progress));
    return progress;
  }

  std::string background_reason() const { return diapause_background_reason(handle_); }

  // Restores all protected regions (diapause_restart). Returns nothing if there is no version yet,
  // which is a fresh start. A version that is asked for by number must be there.
  std::optional<diapause_restart_info> restart(std::uint64_t version = DIAPAUSE_NEWEST) {
    if (!growing_.empty()) return restart_in_steps(version);
    diapause_restart_info info{};
    return found(diapause_restart(handle_, version, &info), version, info);
  }

  // Begins a restart in steps: ask for stored sizes, make room, protect, restore(), restart_end().
  // Protected vectors are resized here. Returns nothing if there is no version yet.
  std::optional<diapause_restart_info> restart_begin(std::uint64_t version = DIAPAUSE_NEWEST) {
    diapause_restart_info info{};
    const auto begun = found(diapause_restart_begin(handle_, version, &info), version, info);
    if (begun) make_room_for_growing();
    return begun;
  }

  // Returns all stored regions of this rank in the version that a restart has opened.
  std::vector<StoredRegion> stored() const {
    const std::int64_t count = diapause_stored_count(handle_);
    if (count < 0) check(static_cast<int>(count));
    std::vector<StoredRegion> regions;
    for (std::uint64_t index = 0; index < static_cast<std::uint64_t>(count); ++index) {
      diapause_region_info info{};
      check(diapause_stored_at(handle_, index, &info));
      regions.push_back({info.name, info.type, info.element_bytes, info.count});
    }
    return regions;
  }

  // Returns one of them, or nothing if no region of that name is stored.
  std::optional<StoredRegion> stored(const std::string& region) const {
    diapause_region_info info{};
    const int status = diapause_stored_find(handle_, region.c_str(), &info);
    if (status == DIAPAUSE_ERR_NOT_FOUND) return std::nullopt;
    check(status);
    return StoredRegion{info.name, info.type, info.element_bytes, info.count};
  }

  // Restores all protected regions.
  void restore() { check(diapause_restore(handle_, nullptr, 0)); }
  // Restores the named regions, of which there is at least one.
  void restore(Span<const std::string> regions) {
    // In diapause.h an empty list stands for all regions. The call is collective, so a rank cannot
    // leave it out either.
    if (regions.empty()) throw Failure(DIAPAUSE_ERR_ARGUMENT, "restore: name at least one region");
    std::vector<const char*> names;
    for (const std::string& region : regions) names.push_back(region.c_str());
    check(diapause_restore(handle_, names.data(), names.size()));
  }

  void restart_end() { check(diapause_restart_end(handle_)); }

  // Begins a restart without copies: map() the regions, then restart_end(). Returns nothing if
  // there is no version yet.
  std::optional<diapause_restart_info> restart_mapped(std::uint64_t version = DIAPAUSE_NEWEST,
                                                      diapause_check check = DIAPAUSE_CHECK_FIRST) {
    diapause_restart_info info{};
    return found(diapause_restart_mapped(handle_, version, check, &info), version, info);
  }

  // Gives the stored region as memory that this instance owns until unmap() or its end.
  template <class T>
  Span<T> map(const std::string& region) {
    diapause_region_info info{};
    check(diapause_stored_find(handle_, region.c_str(), &info));
    if (info.type != element_type<T>() || info.element_bytes != sizeof(T)) {
      throw Failure(DIAPAUSE_ERR_MISMATCH,
                    "region '" + region + "' is stored with elements of another type");
    }
    void* data = nullptr;
    check(diapause_map(handle_, region.c_str(), &data));
    return {static_cast<T*>(data), static_cast<std::size_t>(info.count)};
  }

  template <class Range>
  void unmap(const Range& data) {
    check(diapause_unmap(handle_, data.data()));
  }

  void scrub_wait() { check(diapause_scrub_wait(handle_)); }

  std::string restart_reason() const { return diapause_restart_reason(handle_); }

  void set_log(diapause_log_function function, void* user) {
    check(diapause_set_log(handle_, function, user));
  }

  void inject_bit_flip(const std::string& region, std::uint64_t element, std::uint32_t bit) {
    check(diapause_inject_bit_flip(handle_, region.c_str(), element, bit));
  }

  // Returns the handle for calls of diapause.h. This object still owns it.
  diapause_t* handle() const noexcept { return handle_; }

 private:
  // Where the elements of a vector lay when they were protected, and how many there were.
  struct Known {
    const void* data;
    std::size_t count;
    bool operator==(const Known& other) const { return data == other.data && count == other.count; }
  };

  // A protected vector; its functions hold a reference to it.
  struct Growing {
    std::uint64_t element_bytes;
    diapause_type type;
    std::function<void(Instance&, const std::string&)> protect;
    std::function<void(std::uint64_t)> resize;
  };

  template <class T>
  void protect_elements(const std::string& region, T* data, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>, "only plain data can be stored as bytes");
    static_assert(!std::is_const_v<T>, "a restart writes to protected memory");
    if constexpr (element_type<T>() == DIAPAUSE_BYTES) {
      check(diapause_protect_bytes(handle_, region.c_str(), data, count, sizeof(T)));
    } else {
      check(diapause_protect(handle_, region.c_str(), data, count, element_type<T>()));
    }
  }

  void follow_growing() {
    for (auto& [region, growing] : growing_) growing.protect(*this, region);
  }

  // Waits for the capture, because a vector that grows frees the memory that the capture reads.
  void wait_for_growing(const diapause_checkpoint_info& info) {
    if (info.taken != 0 && !growing_.empty())
      check(diapause_wait(handle_, info.version, DIAPAUSE_CAPTURED, 1e9));
  }

  // Resizes protected vectors to the stored numbers. A vector whose elements are stored as another
  // type stays as it is; restore() then fails on all ranks.
  void make_room_for_growing() {
    for (auto& [region, growing] : growing_) {
      const std::optional<StoredRegion> there = stored(region);
      if (!there || there->element_bytes != growing.element_bytes || there->type != growing.type)
        continue;
      growing.resize(there->count);
      growing.protect(*this, region);
    }
  }

  std::optional<diapause_restart_info> restart_in_steps(std::uint64_t version) {
    const auto begun = restart_begin(version);
    if (!begun) return std::nullopt;
    try {
      restore();
    } catch (const Failure&) {  // the same on all ranks
      diapause_restart_end(handle_);
      throw;
    }
    restart_end();
    return begun;
  }

  static const char* path_or_null(const std::string& path) {
    return path.empty() ? nullptr : path.c_str();
  }

  static std::string text_of(int status) {
    return std::string(diapause_status_name(status)) + ": " + diapause_last_error();
  }

  static void check(int status) {
    if (status != DIAPAUSE_OK) throw Failure(status, text_of(status));
  }
  static void check(int status, const diapause_checkpoint_info& info) {
    if (status != DIAPAUSE_OK) throw CheckpointFailure(status, text_of(status), info);
  }

  static std::optional<diapause_restart_info> found(int status, std::uint64_t version,
                                                    const diapause_restart_info& info) {
    if (status == DIAPAUSE_ERR_NOT_FOUND && version == DIAPAUSE_NEWEST) return std::nullopt;
    check(status);
    return info;
  }

  diapause_t* handle_ = nullptr;
  std::map<std::string, Growing> growing_;
};

}  // namespace cpp
}  // namespace diapause

#endif
