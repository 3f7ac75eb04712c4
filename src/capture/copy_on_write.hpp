// Copies memory behind write protection: the program continues, and a unit that it writes to is
// copied before the write proceeds. Where little changes from capture to capture, what was not
// written to stays protected, so that the next capture need not protect it again.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "capture/region_capture.hpp"
#include "sys/page_scan.hpp"
#include "sys/thread.hpp"
#include "sys/thread_pool.hpp"
#include "sys/userfault.hpp"

namespace diapause::capture {

// arm() and the other calls of begin() come from one thread, drain() from another, and never at the
// same time. A thread of this object serves the stopped writes in between. It allocates nothing and
// takes no lock that the program could hold.
class CopyOnWrite {
 public:
  // This unit is copied for one stopped write, unless the write follows on the one before.
  // docs/decisions/0009-capture-strategies.md has the measurements.
  static constexpr std::uint64_t kUnitBytes = std::uint64_t{256} * 1024;

  explicit CopyOnWrite(sys::ThreadPool& pool) : pool_(pool) {}
  CopyOnWrite(const CopyOnWrite&) = delete;
  CopyOnWrite& operator=(const CopyOnWrite&) = delete;
  ~CopyOnWrite();

  // Returns why this machine does not permit it; empty if it does.
  const std::string& refusal();

  // Protects the whole pages of the region and copies its other bytes. On failure nothing is
  // protected.
  Status arm(RegionCapture& region);
  // Copies the rest of the region and computes its checksums. Regions of which at most this part
  // has changed between earlier captures stay protected then. Fails if the program has unmapped or
  // discarded the memory meanwhile. Copy-on-write is then refused from now on, because the program
  // may do so again.
  static constexpr double kMostChangedToKeep = 0.25;
  Status drain(RegionCapture& region);
  // Forgets the regions, and releases all memory of those that were not drained.
  void end();

  // Unregisters all memory except these ranges.
  void keep_only(const std::vector<sys::PageRange>& ranges);

  // Returns the mean time in which a unit was copied for a stopped write; nullopt if there was
  // none.
  std::optional<double> fault_s() const;

 private:
  enum class Unit : std::uint8_t { armed, taken, done };
  struct Run {  // a range of units
    std::size_t first = 0;
    std::size_t end = 0;
  };
  // Memory that is registered, and may be protected, whether it is captured or not.
  struct Watched {
    sys::PageRange pages;
    bool is_kept = false;            // as its last capture says
    std::uintptr_t released_to = 0;  // the end of the last run that was released for a write
    std::size_t run = 1;             // its units
  };
  struct Armed {
    RegionCapture* region;
    sys::PageRange pages;
    const bool is_kept;                    // it stays protected where it is not written to
    std::vector<std::atomic<Unit>> units;  // units of kUnitBytes from pages.begin on
    std::atomic<std::uint64_t> faults = 0;
    std::size_t served_to = 0;  // end of the last run that was copied for a write; under mutex_

    Armed(RegionCapture* of, sys::PageRange range)
        : region(of),
          pages(range),
          is_kept(of->history->changed.value_or(1.0) <= kMostChangedToKeep),
          units((range.bytes() + kUnitBytes - 1) / kUnitBytes) {}
    sys::PageRange range_of(Run run) const;
    Run units_of(std::uint64_t block) const;
    bool is_done(std::size_t unit) const {
      return units[unit].load(std::memory_order_acquire) == Unit::done;
    }
  };

  Status watch(const Armed& armed);
  enum class Which { all, unprotected };
  Status protect(sys::PageRange pages, Which which);
  Status protect_unprotected(sys::PageRange piece) const;
  void serve();
  void serve(std::uintptr_t address);
  void serve(Armed& armed, std::size_t unit);
  void help(Armed& armed, std::size_t unit);
  void release_kept(Watched& watched, std::uintptr_t address);
  void desert();
  static Run take(Armed& armed, std::size_t first, std::size_t end);
  enum class Then { release, keep };
  void copy_run(Armed& armed, Run run, Then then);
  bool copy_range(const Armed& armed, sys::PageRange range) const;
  static void add_checksum(const Armed& armed, std::uint64_t block);
  void release(const Armed& armed, sys::PageRange range);

  sys::ThreadPool& pool_;
  std::optional<Result<sys::Userfault>> userfault_;
  std::optional<Result<sys::PageScan>> scan_;
  std::string refusal_;
  std::optional<sys::Thread> server_;

  mutable std::mutex mutex_;  // held while a write is served, so that the data it needs stay
  std::vector<Watched> watched_;
  std::vector<std::unique_ptr<Armed>> armed_;
  double served_s_ = 0;
  std::uint64_t served_ = 0;
  std::atomic<bool> deserted_ = false;  // the thread that serves writes had to end
  std::atomic<bool> broken_ = false;    // memory of the open capture lost its protection too early
  std::atomic<bool> gone_ = false;      // memory of the open capture was unmapped
};

}  // namespace diapause::capture
