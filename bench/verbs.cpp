// Measures what the library that stands before libibverbs costs a message of a program: posting a
// send, taking its completion, posting a receive, and taking its completion. The adapter behind it
// (adapter.c) does nothing, and takes the same calls without that library in turn.
//
//   verbs ADAPTER_LIBRARY DIAPAUSE_LIBRARY
//
// Prints nanoseconds of each call for reliable connections and datagrams, while all numbers are
// those of the adapter, and after a checkpoint that has changed them. The last line is JSON with
// those of a whole message.
#include <dlfcn.h>
#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/board.hpp"
#include "fabric/pause.hpp"
#include "fabric/shim/real.hpp"
#include "measure.hpp"

namespace {

using namespace diapause;

constexpr int kMessages = 64, kRounds = 2000, kWarmUp = 200;
constexpr std::uint32_t kKey = 0x11111111;

void must(bool is_well, const std::string& what) {
  if (!is_well) bench::give_up(what);
}

fabric::Real load(const char* path) {
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  must(library != nullptr, path);
  fabric::Real verbs;
#define DIAPAUSE_LOAD(name) \
  verbs.name = reinterpret_cast<decltype(verbs.name)>(::dlsym(library, #name));
  DIAPAUSE_VERBS(DIAPAUSE_LOAD)
#undef DIAPAUSE_LOAD
  return verbs;
}

// The calls of a message, in nanoseconds.
using Calls = std::array<double, 4>;
constexpr std::array<const char*, 4> kNames{"post a send", "take it", "post a receive", "take it"};

// A queue pair that sends to itself.
class Loop {
 public:
  Loop(const fabric::Real& verbs, ibv_qp_type type) : type_(type) {
    ibv_device** const list = verbs.ibv_get_device_list(nullptr);
    must(list != nullptr && list[0] != nullptr, "there is no adapter");
    context_ = verbs.ibv_open_device(list[0]);
    must(context_ != nullptr, "the adapter cannot be opened");
    verbs.ibv_free_device_list(list);
    ibv_pd* const domain = verbs.ibv_alloc_pd(context_);
    region_ = verbs.ibv_reg_mr(domain, memory_, sizeof memory_, IBV_ACCESS_LOCAL_WRITE);
    sends_ = verbs.ibv_create_cq(context_, kMessages, nullptr, nullptr, 0);
    receives_ = verbs.ibv_create_cq(context_, kMessages, nullptr, nullptr, 0);
    ibv_qp_init_attr init{};
    init.send_cq = sends_;
    init.recv_cq = receives_;
    init.cap = {kMessages, kMessages, 1, 1, 0};
    init.qp_type = type;
    pair_ = verbs.ibv_create_qp(domain, &init);
    must(pair_ != nullptr, "there is no queue pair");
    connect(verbs, domain);
  }

  Calls round() {
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(memory_), 64, region_->lkey};
    ibv_send_wr send{};
    send.sg_list = &piece;
    send.num_sge = 1;
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_SIGNALED;
    if (type_ == IBV_QPT_UD) send.wr.ud = {handle_, pair_->qp_num, kKey};
    ibv_recv_wr receive{0, nullptr, &piece, 1};
    ibv_send_wr* bad_send = nullptr;
    ibv_recv_wr* bad_receive = nullptr;
    return {timed([&] { return context_->ops.post_send(pair_, &send, &bad_send) == 0; }),
            timed([&] { return take(sends_); }),
            timed([&] { return context_->ops.post_recv(pair_, &receive, &bad_receive) == 0; }),
            timed([&] { return take(receives_); })};
  }

 private:
  void connect(const fabric::Real& verbs, ibv_pd* domain) {
    ibv_qp_attr attributes{};
    attributes.port_num = 1;
    attributes.qkey = kKey;
    attributes.dest_qp_num = pair_->qp_num;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.port_num = 1;
    verbs.ibv_query_gid(context_, 1, 0, &attributes.ah_attr.grh.dgid);
    handle_ = verbs.ibv_create_ah(domain, &attributes.ah_attr);
    constexpr int kAll = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY |
                         IBV_QP_ACCESS_FLAGS | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                         IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER |
                         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN;
    for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
      attributes.qp_state = state;
      must(verbs.ibv_modify_qp(pair_, &attributes, kAll) == 0, "it cannot be connected");
    }
  }

  bool take(ibv_cq* queue) {
    ibv_wc completion{};
    return context_->ops.poll_cq(queue, 1, &completion) == 1 &&
           completion.status == IBV_WC_SUCCESS && completion.qp_num == pair_->qp_num;
  }

  template <class Call>
  double timed(const Call& call) {
    const auto begun = std::chrono::steady_clock::now();
    bool is_well = true;
    for (int i = 0; i < kMessages; ++i) is_well = call() && is_well;
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begun;
    must(is_well, "a call has failed");
    return taken.count() / kMessages;
  }

  ibv_qp_type type_;
  ibv_context* context_ = nullptr;
  ibv_mr* region_ = nullptr;
  ibv_cq *sends_ = nullptr, *receives_ = nullptr;
  ibv_qp* pair_ = nullptr;
  ibv_ah* handle_ = nullptr;
  char memory_[4096] = {};
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + values.size() / 2);
  return values[values.size() / 2];
}

// Prints what the calls of both cost, and returns by how much a message is longer.
double compare(const std::string& what, Loop& with, Loop& without) {
  std::array<std::vector<double>, 4> ours, bare;
  for (int i = 0; i < kRounds + kWarmUp; ++i) {
    const Calls own = with.round(), other = without.round();
    for (std::size_t k = 0; k < own.size() && i >= kWarmUp; ++k) {
      ours[k].push_back(own[k]);
      bare[k].push_back(other[k]);
    }
  }
  double more = 0;
  for (std::size_t k = 0; k < ours.size(); ++k) {
    const double own = median(ours[k]), other = median(bare[k]);
    fmt::print("{}, {}: {:.1f} ns, without {:.1f} ns\n", what, kNames[k], own, other);
    more += own - other;
  }
  fmt::print("{}, a message on both sides: {:.1f} ns more\n", what, more);
  return more;
}

// Begins the thread of the library as an agent does from outside.
Status wake(std::span<const sys::EndedThread> sleepers) {
  for (const sys::EndedThread& one : sleepers) {
    auto* const id = reinterpret_cast<pid_t*>(one.id_at);
    must(::clone(reinterpret_cast<int (*)(void*)>(one.entry), reinterpret_cast<void*>(one.stack),
                 sys::kFlagsOfThread, nullptr, id, one.thread_area, id) > 0,
         "the thread of the library cannot be begun");
  }
  return {};
}

}  // namespace

int main(int count, char** words) {
  must(count == 3, "usage: verbs ADAPTER_LIBRARY DIAPAUSE_LIBRARY");
  // The library that is loaded second finds the adapter by its name.
  const fabric::Real bare = load(words[1]), shim = load(words[2]);
  Loop reliable(shim, IBV_QPT_RC), bare_reliable(bare, IBV_QPT_RC);
  Loop datagrams(shim, IBV_QPT_UD), bare_datagrams(bare, IBV_QPT_UD);
  const double first = compare("reliable", reliable, bare_reliable);
  const double second = compare("datagrams", datagrams, bare_datagrams);
  fabric::Board board;
  fabric::Pause pause(fabric::gather_alone, wake, board);
  const pid_t own = ::getpid();
  Status passed = pause.begin(std::span(&own, 1));
  if (passed) passed = pause.end();
  must(passed.has_value(), passed ? "" : passed.error().message);
  must(pause.is_used(), "the checkpoint has not seen this process");
  const double third = compare("reliable, renumbered", reliable, bare_reliable);
  const double fourth = compare("datagrams, renumbered", datagrams, bare_datagrams);
  fmt::print(
      R"({{"reliable_ns": {:.2f}, "datagrams_ns": {:.2f}, "reliable_renumbered_ns": {:.2f}, )"
      R"("datagrams_renumbered_ns": {:.2f}}})"
      "\n",
      first, second, third, fourth);
  return 0;
}
