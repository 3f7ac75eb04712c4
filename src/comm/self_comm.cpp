#include "comm/self_comm.hpp"

#include <cstring>

namespace diapause::comm {
namespace {

class SelfComm : public Comm {
 public:
  std::uint32_t rank() const override { return 0; }
  std::uint32_t size() const override { return 1; }
  bool is_concurrent() const override { return true; }
  Result<std::unique_ptr<Comm>> split(const std::optional<Part>& part) override {
    return part ? make_self_comm() : std::unique_ptr<Comm>();
  }
  void while_waiting(std::function<void()>) override {}
  std::uint32_t node_leader() const override { return 0; }
  Status barrier() override { return {}; }
  Status broadcast(MutableBytes, std::uint32_t) override { return {}; }
  Result<std::vector<ByteVector>> all_gather(ByteView mine) override {
    return std::vector<ByteVector>{ByteVector(mine.begin(), mine.end())};
  }
  Status all_min(std::span<std::uint64_t>) override { return {}; }
  Status exchange(std::span<const Send> sends, std::span<const Receive> receives) override {
    for (std::size_t i = 0; i < receives.size(); ++i) {
      std::memcpy(receives[i].data.data(), sends[i].data.data(), receives[i].data.size());
    }
    return {};
  }
};

}  // namespace

Result<std::uint64_t> Comm::all_min(std::uint64_t value) {
  DIAPAUSE_TRY(all_min(std::span(&value, 1)));
  return value;
}

Result<std::uint64_t> Comm::all_max(std::uint64_t value) {
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t least, all_min(~value));
  return ~least;
}

std::unique_ptr<Comm> make_self_comm() { return std::make_unique<SelfComm>(); }

}  // namespace diapause::comm
