#include "support/thread_comm.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

namespace diapause::test_support {

class ThreadComm : public comm::Comm {
 public:
  ThreadComm(ThreadJob& job, std::uint32_t rank, std::shared_ptr<comm::Relay> relay)
      : job_(job), rank_(rank), relay_(std::move(relay)) {}

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t size() const override { return job_.size_; }
  std::uint32_t node_leader() const override {
    return rank_ / job_.ranks_per_node_ * job_.ranks_per_node_;
  }

  bool is_concurrent() const override { return job_.threads_ == ThreadJob::Threads::any; }
  void while_waiting(std::function<void()> meanwhile) override {
    meanwhile_ = std::move(meanwhile);
  }

  Result<std::unique_ptr<comm::Comm>> split(const std::optional<Part>& part) override {
    std::uint64_t round = 0;
    {
      const std::lock_guard lock(job_.mutex_);
      round = job_.round_;
    }
    constexpr std::uint64_t kStaysOut = UINT64_MAX;
    const std::uint64_t key = part ? (std::uint64_t{part->place} << 32 | rank_) : kStaysOut;
    DIAPAUSE_TRY_ASSIGN(const std::vector<std::uint64_t> keys, numbers(key));
    if (!part) return std::unique_ptr<comm::Comm>();
    const auto before = [&](std::uint64_t limit) {
      return static_cast<std::uint32_t>(
          std::count_if(keys.begin(), keys.end(), [&](std::uint64_t one) { return one < limit; }));
    };
    const std::lock_guard lock(job_.mutex_);
    auto& child = job_.parts_[round];
    if (child == nullptr) child = std::make_unique<ThreadJob>(before(kStaysOut), 1, job_.threads_);
    if (job_.broken_) child->break_off();
    return std::make_unique<ThreadComm>(*child, before(key), part->relay);
  }

  Status barrier() override {
    DIAPAUSE_TRY(all_gather({}));
    return {};
  }

  Status broadcast(MutableBytes data, std::uint32_t root) override {
    DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all,
                        all_gather(rank_ == root ? ByteView(data) : ByteView{}));
    if (all[root].size() != data.size()) return fail(Code::comm, "a broadcast of unequal lengths");
    std::copy(all[root].begin(), all[root].end(), data.begin());
    return {};
  }

  Result<std::vector<ByteVector>> all_gather(ByteView mine) override {
    std::optional<std::uint64_t> round;
    Result<std::vector<ByteVector>> gathered;
    DIAPAUSE_TRY(until([&] {
      if (!round && !job_.broken_) round = arrive(mine);
      if (round && job_.round_ != *round) {
        gathered = job_.gathered_;
        return true;
      }
      if (job_.broken_) gathered = broken();
      return job_.broken_;
    }));
    return gathered;
  }

  Status all_min(std::span<std::uint64_t> values) override {
    DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all, all_gather(std::as_bytes(values)));
    for (const ByteVector& of_rank : all) {
      if (of_rank.size() != values.size_bytes())
        return fail(Code::comm, "a reduction of unequal lengths");
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint64_t value = 0;
        std::memcpy(&value, &of_rank[i * sizeof value], sizeof value);
        values[i] = std::min(values[i], value);
      }
    }
    return {};
  }

  Status exchange(std::span<const comm::Send> sends,
                  std::span<const comm::Receive> receives) override {
    Status status;
    bool is_sent = false;
    std::size_t received = 0;
    DIAPAUSE_TRY(until([&] {
      if (!std::exchange(is_sent, true)) send_all(sends);
      while (status && received < receives.size()) {
        const comm::Receive& receive = receives[received];
        std::deque<ByteVector>& box = job_.mail_[{receive.peer, rank_}];
        if (box.empty() && !job_.broken_) return false;
        status = box.empty() ? broken() : take(box, receive.data);
        ++received;
      }
      return true;
    }));
    return status;
  }

 private:
  static tl::unexpected<Error> broken() { return fail(Code::comm, "a rank died"); }

  Result<std::vector<std::uint64_t>> numbers(std::uint64_t value) {
    DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all, all_gather(as_byte_view(value)));
    std::vector<std::uint64_t> values(all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      std::memcpy(&values[i], all[i].data(), sizeof values[i]);
    return values;
  }

  // This rank's part of a gathering; its number.
  std::uint64_t arrive(ByteView mine) {
    const std::uint64_t round = job_.round_;
    if (job_.arrived_ == 0) job_.gathering_.assign(job_.size_, {});
    job_.gathering_[rank_].assign(mine.begin(), mine.end());
    if (++job_.arrived_ == job_.size_) {
      job_.gathered_ = job_.gathering_;
      job_.arrived_ = 0;
      ++job_.round_;
      job_.changed_.notify_all();
    }
    return round;
  }

  void send_all(std::span<const comm::Send> sends) {
    for (const comm::Send& send : sends) {
      job_.mail_[{rank_, send.peer}].emplace_back(send.data.begin(), send.data.end());
    }
    job_.changed_.notify_all();
  }

  static Status take(std::deque<ByteVector>& box, MutableBytes data) {
    if (box.front().size() != data.size())
      return fail(Code::comm, "a message of another length arrived");
    std::copy(box.front().begin(), box.front().end(), data.begin());
    box.pop_front();
    return {};
  }

  // Takes `step`, with the lock held, until it says true.
  template <class Step>
  Status until(Step step) {
    Status status;
    const auto is_over = [&] {
      if (is_concurrent() || std::this_thread::get_id() == mine_) return step();
      status = fail(Code::internal, "communicates in a thread that may not");
      return true;
    };
    if (relay_) {
      relay_->carry_out([&] {
        const std::lock_guard lock(job_.mutex_);
        return is_over();
      });
      return status;
    }
    std::unique_lock lock(job_.mutex_);
    while (!is_over()) {
      if (!meanwhile_) {
        job_.changed_.wait(lock);
        continue;
      }
      job_.changed_.wait_for(lock, std::chrono::microseconds(100));
      lock.unlock();
      meanwhile_();
      lock.lock();
    }
    return status;
  }

  ThreadJob& job_;
  const std::uint32_t rank_;
  const std::shared_ptr<comm::Relay> relay_;
  const std::thread::id mine_ = std::this_thread::get_id();
  std::function<void()> meanwhile_;
};

std::unique_ptr<comm::Comm> ThreadJob::comm(std::uint32_t rank) {
  return std::make_unique<ThreadComm>(*this, rank, nullptr);
}

void ThreadJob::break_off() {
  const std::lock_guard lock(mutex_);
  broken_ = true;
  changed_.notify_all();
  for (auto& [round, part] : parts_) part->break_off();
}

}  // namespace diapause::test_support
