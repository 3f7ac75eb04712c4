#include "capture/copy_on_write.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "format/checksum.hpp"
#include "sys/memory.hpp"
#include "sys/process.hpp"

namespace diapause::capture {
namespace {

// Units that are copied at a time for a writer that proceeds through the memory.
constexpr std::size_t kUnitsAhead = 4;
// Bytes that one thread protects at a time.
constexpr std::uint64_t kProtectBytes = 32 * kMiB;
// A call for each of more ranges than this in kProtectBytes would take longer than one for all.
constexpr std::size_t kMostRanges = 128;
// The most units that are released for a write to memory that is kept protected. A writer that goes
// through the memory doubles them from write to write.
constexpr std::size_t kMostReleased = 64;

std::uintptr_t address_of(const std::byte* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

void copy(const RegionCapture& region, std::uintptr_t begin, std::uintptr_t end) {
  const std::uint64_t offset = begin - address_of(region.source->data);
  if (begin < end)
    std::memcpy(region.to.data() + offset, region.source->data + offset, end - begin);
}

// Tries out the other facilities of this machine that the background needs.
Status try_out(const Result<sys::PageScan>& scan) {
  if (!scan) return fail(scan.error());
  const std::uintptr_t page =
      reinterpret_cast<std::uintptr_t>(&scan) / sys::page_bytes() * sys::page_bytes();
  const auto scanned = scan->has_unprotected({page, page + sys::page_bytes()});
  return scanned ? Status{} : fail(scanned.error());
}

}  // namespace

sys::PageRange CopyOnWrite::Armed::range_of(Run run) const {
  const std::uintptr_t begin = pages.begin + run.first * kUnitBytes;
  return {begin, std::min<std::uintptr_t>(pages.begin + run.end * kUnitBytes, pages.end)};
}

CopyOnWrite::Run CopyOnWrite::Armed::units_of(std::uint64_t block) const {
  const std::uintptr_t begin = address_of(region->block(block).data());
  const std::uintptr_t from = std::max(begin, pages.begin);
  const std::uintptr_t to = std::min(begin + region->block(block).size(), pages.end);
  if (from >= to) return {};
  return {(from - pages.begin) / kUnitBytes, (to - 1 - pages.begin) / kUnitBytes + 1};
}

CopyOnWrite::~CopyOnWrite() {
  if (!userfault_ || !*userfault_) return;
  end();
  keep_only({});
  (*userfault_)->interrupt();
  server_.reset();
}

const std::string& CopyOnWrite::refusal() {
  if (!userfault_) {
    userfault_.emplace(sys::Userfault::open(sys::Userfault::Mode::stop_writers));
    if (!*userfault_) return refusal_ = userfault_->error().message;
    scan_.emplace(sys::PageScan::open());
    const Status usable = try_out(*scan_);
    if (!usable) refusal_ = usable.error().message;
  }
  return refusal_;
}

Status CopyOnWrite::arm(RegionCapture& region) {
  if (!refusal().empty()) return fail(Code::io, refusal_);
  if (!server_) {
    DIAPAUSE_TRY_ASSIGN(sys::Thread server, sys::Thread::start([this] { serve(); }));
    server_.emplace(std::move(server));
  }
  auto armed = std::make_unique<Armed>(&region, sys::whole_pages_in(region.memory()));
  const Armed& now = *armed;
  const sys::PageRange pages = now.pages;
  {
    const std::lock_guard lock(mutex_);
    armed_.push_back(std::move(armed));
  }
  Status protection = watch(now);
  // This is checked while the protection holds: if the serving thread ends later, it finds this
  // region in the list.
  if (protection && deserted_) protection = fail(Code::io, "nobody serves stopped writes any more");
  if (!protection) {
    (*userfault_)->remove(pages);
    const std::lock_guard lock(mutex_);
    std::erase_if(watched_, [&](const Watched& watched) { return watched.pages == pages; });
    armed_.pop_back();
    return protection;
  }
  const std::uintptr_t begin = address_of(region.source->data);
  copy(region, begin, pages.begin);
  copy(region, pages.end, begin + region.memory().size());
  region.report->copied_in_begin += region.memory().size() - pages.bytes();
  return {};
}

// Protects the pages. Memory stays registered from capture to capture, because unregistering costs
// as much as protecting.
Status CopyOnWrite::watch(const Armed& armed) {
  const sys::PageRange pages = armed.pages;
  const auto known = std::ranges::find(watched_, pages, &Watched::pages);
  if (known != watched_.end()) {
    const bool was_kept = std::exchange(known->is_kept, armed.is_kept);
    Status protection = protect(pages, was_kept ? Which::unprotected : Which::all);
    if (protection || protection.error().os_errno != ENOENT) return protection;
    // The program has mapped other memory there.
  } else {
    const std::lock_guard lock(mutex_);
    watched_.push_back({pages, armed.is_kept});
  }
  DIAPAUSE_TRY((*userfault_)->add(pages));
  return protect(pages, Which::all);
}

Status CopyOnWrite::protect(sys::PageRange pages, Which which) {
  std::mutex failing;
  Status status;
  pool_.run((pages.bytes() + kProtectBytes - 1) / kProtectBytes, [&](std::uint64_t piece) {
    const std::uintptr_t begin = pages.begin + piece * kProtectBytes;
    const sys::PageRange range{begin, std::min<std::uintptr_t>(begin + kProtectBytes, pages.end)};
    const Status done =
        which == Which::all ? (*userfault_)->protect(range) : protect_unprotected(range);
    if (done) return;
    const std::lock_guard lock(failing);
    status = done;
  });
  return status;
}

// What is protected still since an earlier capture costs only a look.
Status CopyOnWrite::protect_unprotected(sys::PageRange piece) const {
  const auto unprotected = (*scan_)->unprotected(piece);
  if (!unprotected || unprotected->size() > kMostRanges) return (*userfault_)->protect(piece);
  for (const sys::PageRange& range : *unprotected) DIAPAUSE_TRY((*userfault_)->protect(range));
  return {};
}

Status CopyOnWrite::drain(RegionCapture& region) {
  const auto found =
      std::ranges::find_if(armed_, [&](const auto& armed) { return armed->region == &region; });
  Armed& armed = **found;
  const Then then = armed.is_kept ? Then::keep : Then::release;
  std::vector<std::uint64_t> unsummed;
  for (std::uint64_t block = 0; block < region.blocks(); ++block) {
    const std::uint64_t faults = armed.faults;
    const Run units = armed.units_of(block);
    for (std::size_t unit = units.first; unit < units.end;) {
      const Run run = take(armed, unit, units.end);
      copy_run(armed, run, then);
      unit = std::max(run.end, unit + 1);
    }
    // A writer close behind this loop must wait for copies only, and not for checksums.
    if (armed.faults == faults)
      add_checksum(armed, block);
    else
      unsummed.push_back(block);
  }
  for (const std::uint64_t block : unsummed) add_checksum(armed, block);
  region.report->copied_in_drain += armed.pages.bytes();
  region.report->faults = armed.faults;
  const std::lock_guard lock(mutex_);
  if (gone_) {
    refusal_ = "the program gave protected memory back while it was captured";
    return fail(Code::argument,
                "memory of region " + region.description->name +
                    " was unmapped or thrown away while it was captured: unprotect a region before "
                    "its memory goes");
  }
  if (!broken_) return {};
  return fail(Code::io,
              "the write protection of region " + region.description->name + " broke down");
}

// Computes the checksum of a block once all of it lies in the slot, whichever thread copied it.
void CopyOnWrite::add_checksum(const Armed& armed, std::uint64_t block) {
  const Run units = armed.units_of(block);
  for (std::size_t unit = units.first; unit < units.end; ++unit) {
    while (!armed.is_done(unit)) std::this_thread::yield();
  }
  armed.region->description->block_checksums[block] =
      format::checksum64(armed.region->block_in_slot(block));
}

// Takes the units from `first` on, before `end`, that no other thread has taken.
CopyOnWrite::Run CopyOnWrite::take(Armed& armed, std::size_t first, std::size_t end) {
  Run run{first, first};
  for (Unit expected = Unit::armed; run.end < std::min(end, armed.units.size()); ++run.end) {
    if (!armed.units[run.end].compare_exchange_strong(expected, Unit::taken)) break;
  }
  return run;
}

// Copies a run of units, and releases it or not. The thread that has taken them calls this.
void CopyOnWrite::copy_run(Armed& armed, Run run, Then then) {
  if (run.first == run.end) return;
  const sys::PageRange range = armed.range_of(run);
  if (!copy_range(armed, range)) gone_ = true;
  for (std::size_t unit = run.first; unit < run.end; ++unit) {
    armed.units[unit].store(Unit::done, std::memory_order_release);
  }
  if (then == Then::release) release(armed, range);
}

// Returns false if the copied bytes are not what was captured. Pages that are still protected after
// the copy were present and unwritten all the time, because unmapping or discarding them removes
// the protection.
bool CopyOnWrite::copy_range(const Armed& armed, sys::PageRange range) const {
  const std::uint64_t offset = range.begin - address_of(armed.region->source->data);
  if (!sys::copy_if_mapped(armed.region->to.subspan(offset, range.bytes()),
                           {armed.region->source->data + offset, range.bytes()})) {
    return false;
  }
  const auto unprotected = (*scan_)->has_unprotected(range);
  return unprotected && !*unprotected;
}

// Releases the pages. No writer may wait for ever: if the pages cannot be released alone, the whole
// region is, and the image becomes invalid.
void CopyOnWrite::release(const Armed& armed, sys::PageRange range) {
  if ((*userfault_)->release(range)) return;
  broken_ = true;
  (*userfault_)->remove(armed.pages);
}

void CopyOnWrite::serve() {
  std::array<std::uintptr_t, 16> addresses{};
  while (true) {
    const auto waiting = (*userfault_)->wait_for_writers(addresses);
    if (!waiting) return desert();
    if (*waiting == 0) return;
    for (std::size_t i = 0; i < *waiting; ++i) serve(addresses[i]);
  }
}

// Releases everything, because the kernel no longer reports waiting writers.
void CopyOnWrite::desert() {
  deserted_ = true;
  const std::lock_guard lock(mutex_);
  broken_ = true;
  for (const Watched& watched : watched_) (*userfault_)->remove(watched.pages);
}

void CopyOnWrite::serve(std::uintptr_t address) {
  const std::lock_guard lock(mutex_);
  for (const auto& armed : armed_) {
    if (address < armed->pages.begin || address >= armed->pages.end) continue;
    return serve(*armed, (address - armed->pages.begin) / kUnitBytes);
  }
  for (Watched& watched : watched_) {
    if (address < watched.pages.begin || address >= watched.pages.end) continue;
    return release_kept(watched, address);
  }
}

// Releases memory that is not captured now, and that was protected still.
void CopyOnWrite::release_kept(Watched& watched, std::uintptr_t address) {
  const std::uintptr_t from = address - (address - watched.pages.begin) % kUnitBytes;
  watched.run = from == watched.released_to ? std::min(2 * watched.run, kMostReleased) : 1;
  const std::uintptr_t to =
      std::min<std::uintptr_t>(from + watched.run * kUnitBytes, watched.pages.end);
  watched.released_to = to;
  if (!(*userfault_)->release({from, to})) (*userfault_)->remove(watched.pages);
}

void CopyOnWrite::serve(Armed& armed, std::size_t unit) {
  const double start_s = sys::monotonic_s();
  ++armed.faults;
  const Run run = take(armed, unit, unit + (unit == armed.served_to ? kUnitsAhead : 1));
  if (run.first == run.end) return help(armed, unit);
  copy_run(armed, run, Then::release);
  armed.served_to = run.end;
  served_ += run.end - run.first;
  served_s_ += sys::monotonic_s() - start_s;
}

// Another thread copies, or has copied, the unit that a writer waits for. Meanwhile this copies the
// units that the writer may need next. The other thread wakes the writer unless it keeps the unit
// protected.
void CopyOnWrite::help(Armed& armed, std::size_t unit) {
  for (std::size_t next = unit + 1; next < armed.units.size() && !armed.is_done(unit); ++next) {
    copy_run(armed, take(armed, next, next + 1), Then::release);
  }
  if (!armed.is_kept) return;
  while (!armed.is_done(unit)) std::this_thread::yield();
  release(armed, armed.range_of({unit, unit + 1}));
}

void CopyOnWrite::end() {
  const std::lock_guard lock(mutex_);
  for (const auto& armed : armed_) {
    bool protected_still = false;
    for (std::atomic<Unit>& unit : armed->units) {
      Unit expected = Unit::armed;
      protected_still |= unit.compare_exchange_strong(expected, Unit::done);
    }
    if (protected_still) release(*armed, armed->pages);
  }
  armed_.clear();
  broken_ = false;
  gone_ = false;
}

void CopyOnWrite::keep_only(const std::vector<sys::PageRange>& ranges) {
  const std::lock_guard lock(mutex_);
  std::erase_if(watched_, [&](const Watched& watched) {
    if (std::ranges::find(ranges, watched.pages) != ranges.end()) return false;
    (*userfault_)->remove(watched.pages);
    return true;
  });
}

std::optional<double> CopyOnWrite::fault_s() const {
  const std::lock_guard lock(mutex_);
  if (served_ == 0) return std::nullopt;
  return served_s_ / static_cast<double>(served_);
}

}  // namespace diapause::capture
