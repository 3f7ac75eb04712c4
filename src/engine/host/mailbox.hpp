// The mailbox between the ranks of a node and the process that acts for them: requests in one
// direction, their progress in the other. It lies in shared memory, a file in the node's memory
// tier, and needs no MPI: a rank that posts a request never waits for another rank.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/fixed_text.hpp"
#include "engine/host/host.hpp"
#include "sys/file.hpp"

namespace diapause::engine {

enum class RequestKind : std::uint32_t {
  capture,
  complete,
  make_room,
  reject,
  pin,
  unpin,
  phases,
  end_period,
  finish,
  stop
};

// One rank's part of a request. All ranks post the same requests in the same order. It is plain
// bytes, because it is copied between processes.
struct Message {
  RequestKind kind = RequestKind::stop;
  // The tier of the version for a capture, or the tier in which to make room.
  config::TierKind node_tier = config::TierKind::memory;
  config::TierKind capture_tier = config::TierKind::memory;  // capture: tier where the image lies
  Decision decision;                                         // for a capture
  format::VersionId version;                                 // for complete, reject and pin
  ImageFacts facts;                                          // for a capture that succeeded
  double capture_s = 0;
  CaptureTimes times;
  std::uint32_t phase_count = 0;  // number of phases to account for
  std::array<Phase, 8> phases{};
  std::int32_t code = 0;  // the base Code of a capture that failed
  // The name of the image's slot, for a capture that succeeded.
  std::array<char, 64> slot_name{};
  sys::FileId slot_id;           // the identity of the slot's file
  std::array<char, 512> text{};  // the error message of a failure
};

class Mailbox {
 public:
  static constexpr std::uint64_t kRequests = 16;  // so many requests a rank may be ahead
  static constexpr std::uint64_t kResults = 64;   // so many results stay readable
  static constexpr const char* kFileName = "mailbox";

  // create() is called by one process of the node, then open() by the others. `rank_count` is that
  // of the node.
  static Result<Mailbox> create(const sys::Directory& directory, std::uint32_t rank_count);
  static Result<Mailbox> open(const sys::Directory& directory, std::uint32_t rank_count);
  Mailbox(Mailbox&& other) noexcept;
  Mailbox& operator=(Mailbox&&) = delete;
  ~Mailbox();

  // ---- for ranks; `place` is counted within the node ---- Posts a message and returns the number
  // of its request. Waits while too many requests are in progress.
  std::uint64_t post(std::uint32_t place, const Message& message);
  std::uint64_t next_number(std::uint32_t place) const { return boxes_[place].posted.load(); }
  Progress progress(std::uint64_t number) const;
  void wait(std::uint64_t number, std::uint32_t levels, double at_most_s) const;
  int stop_signal() const { return shared_->stop_signal.load(); }  // 0 if no signal was passed on
  void give_up() { shared_->given_up.store(1); }  // work in progress need not be completed
  // These two are for the first rank of the node, and one after the other: a call of the program
  // has begun at that time, and a capture follows, or none does.
  void expect_capture(double called_s);
  void expect_no_capture();

  // ---- called by the process that acts for the node
  // Returns the parts of request `number` when all ranks have posted theirs. Calls `meanwhile` from
  // time to time, and whenever this thread has received a signal.
  std::vector<Message> take(std::uint64_t number, const std::function<void()>& meanwhile);
  // Tells the ranks that a signal asked this process to stop.
  void pass_on(int stop_signal) { shared_->stop_signal.store(stop_signal); }
  void begin(std::uint64_t number);
  void reached(std::uint64_t number, std::uint32_t levels);
  void finish(std::uint64_t number, const Progress& progress);
  bool is_given_up() const { return shared_->given_up.load() != 0; }
  // Returns when the first call of those began that began after that time and expect a capture.
  std::optional<double> first_call_after(double time_s) const;

 private:
  struct Box {
    std::atomic<std::uint64_t> posted;
    std::array<Message, kRequests> messages;
  };
  struct Entry {
    std::atomic<std::uint64_t> number_plus_1;
    std::atomic<std::uint32_t> levels;
    std::atomic<std::uint32_t> is_done;
    std::uint64_t bytes_total;
    double seconds;
    std::int32_t code;
    std::array<char, 1024> text;
  };
  struct Shared {
    std::atomic<std::uint32_t> bell;  // changes when all ranks have posted a request
    std::atomic<std::uint32_t> news;  // changes with every progress
    std::atomic<std::uint32_t> given_up;
    std::atomic<std::int32_t> stop_signal;
    std::atomic<std::uint64_t> finished;  // number of requests that are finished
    std::atomic<std::uint64_t> calls;     // number of those that have expected a capture
    std::array<std::atomic<double>, kRequests> called_s;  // of the last ones; 0: there is none
    // How many ranks have posted a request that not all have posted.
    std::array<std::atomic<std::uint32_t>, kRequests> posts;
    std::array<Entry, kResults> entries;
  };

  Mailbox(sys::File file, std::uint32_t rank_count)
      : file_(std::move(file)), rank_count_(rank_count) {}
  static std::uint64_t bytes(std::uint32_t rank_count);
  Status map();
  void tell();
  Entry& entry(std::uint64_t number) const { return shared_->entries[number % kResults]; }

  sys::File file_;
  std::uint32_t rank_count_;
  Shared* shared_ = nullptr;
  Box* boxes_ = nullptr;  // one per rank
};

}  // namespace diapause::engine
