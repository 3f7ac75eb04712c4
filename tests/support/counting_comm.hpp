// A Comm that makes another one's calls and counts those that are collective.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "comm/comm.hpp"

namespace diapause::test_support {

// The calls of one rank, by their names. Comms that are split off are not counted.
class Collectives {
 public:
  void count(const std::string& name) {
    const std::lock_guard lock(mutex_);
    ++counts_[name];
  }
  // Returns the calls since the last time.
  std::map<std::string, int> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(counts_, {});
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> counts_;
};

class CountingComm final : public comm::Comm {
 public:
  CountingComm(std::unique_ptr<comm::Comm> inner, Collectives& collectives)
      : inner_(std::move(inner)), collectives_(collectives) {}

  std::uint32_t rank() const override { return inner_->rank(); }
  std::uint32_t size() const override { return inner_->size(); }
  bool is_concurrent() const override { return inner_->is_concurrent(); }
  std::uint32_t node_leader() const override { return inner_->node_leader(); }
  void while_waiting(std::function<void()> meanwhile) override {
    inner_->while_waiting(std::move(meanwhile));
  }
  Result<std::unique_ptr<comm::Comm>> split(const std::optional<Part>& part) override {
    collectives_.count("split");
    return inner_->split(part);
  }
  Status barrier() override {
    collectives_.count("barrier");
    return inner_->barrier();
  }
  Status broadcast(MutableBytes data, std::uint32_t root) override {
    collectives_.count("broadcast");
    return inner_->broadcast(data, root);
  }
  Result<std::vector<ByteVector>> all_gather(ByteView mine) override {
    collectives_.count("all_gather");
    return inner_->all_gather(mine);
  }
  Status all_min(std::span<std::uint64_t> values) override {
    collectives_.count("all_min");
    return inner_->all_min(values);
  }
  Status exchange(std::span<const comm::Send> sends,
                  std::span<const comm::Receive> receives) override {
    collectives_.count("exchange");
    return inner_->exchange(sends, receives);
  }

 private:
  std::unique_ptr<comm::Comm> inner_;
  Collectives& collectives_;
};

}  // namespace diapause::test_support
