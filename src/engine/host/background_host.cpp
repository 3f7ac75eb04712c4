// The host for work in the background, as a rank sees it: requests are posted to the process that
// acts for its node.
#include <fmt/core.h>

#include <atomic>
#include <deque>

#include "engine/host/host.hpp"
#include "engine/host/node_worker.hpp"
#include "engine/node/tiers.hpp"
#include "sys/process.hpp"
#include "sys/thread.hpp"

namespace diapause::engine {
namespace {

// Once the thread runs, holds its messages until the program's next call, because the log is only
// called from the program's threads.
class MessageQueue {
 public:
  explicit MessageQueue(LogSink log) : log_(std::move(log)) {}

  void put(Severity severity, const std::string& text) {
    if (!holds_) return log_(severity, text);
    const std::lock_guard lock(mutex_);
    messages_.emplace_back(severity, text);
  }
  // Is called before the thread starts.
  void hold() { holds_ = true; }
  void pass_on(const LogSink& log) {
    std::deque<std::pair<Severity, std::string>> messages;
    {
      const std::lock_guard lock(mutex_);
      messages.swap(messages_);
    }
    for (const auto& [severity, text] : messages) log(severity, text);
  }

 private:
  const LogSink log_;
  bool holds_ = false;
  std::mutex mutex_;
  std::deque<std::pair<Severity, std::string>> messages_;
};

// The worker and its thread. The node's first rank has them if there is no dedicated rank.
class WorkerThread {
 public:
  // Collective over `comm`.
  static Result<std::unique_ptr<WorkerThread>> open(const Context& rank,
                                                    std::unique_ptr<comm::Comm> comm,
                                                    LedgerWriter& ledger) {
    auto thread = std::make_unique<WorkerThread>(rank.log);
    const auto log = [&messages = thread->messages_](Severity severity, const std::string& text) {
      messages.put(severity, text);
    };
    DIAPAUSE_TRY_ASSIGN(thread->worker_, NodeWorker::open(rank, std::move(comm), log, ledger));
    return thread;
  }

  explicit WorkerThread(const LogSink& log) : messages_(log) {}

  NodeWorker& worker() { return *worker_; }
  MessageQueue& messages() { return messages_; }
  bool is_running() const { return thread_.has_value(); }

  Status start() {
    messages_.hold();
    auto thread = sys::Thread::start([this] { worker_->serve(); });
    if (!thread) return fail(thread.error());
    thread_.emplace(std::move(*thread));
    return {};
  }

 private:
  MessageQueue messages_;
  std::unique_ptr<NodeWorker> worker_;
  std::optional<sys::Thread> thread_;
};

// A rank's end of the mailbox of its node.
class BackgroundHost : public Host {
 public:
  explicit BackgroundHost(Context& context) : context_(context) {}

  ~BackgroundHost() override {
    if (!is_started_) {
      // Another node's thread did not start. This thread waits for all of its ranks, which will not
      // post, so their stop requests are posted here.
      for (std::uint32_t place = 0; thread_ && thread_->is_running() && place < rank_count_;
           ++place) {
        mailbox_->post(place, {});
      }
      return;
    }
    (void)finished(post({}));
    attend();
  }

  // Opens the host with a thread. Collective; fails on all ranks or on none.
  Status open_with_thread(LedgerWriter& ledger, ThreadsMay threads_may) {
    using Part = comm::Comm::Part;
    const bool leads = context_.topology.is_leader();
    const bool is_relayed = threads_may == ThreadsMay::not_communicate;
    worker_ = is_relayed ? Worker::thread_in_calls : Worker::thread;
    if (leads && is_relayed) relay_ = std::make_shared<comm::Relay>();
    const Part part{context_.topology.node, comm::Waiting::patient, relay_};
    DIAPAUSE_TRY_ASSIGN(auto comm,
                        context_.comm->split(leads ? std::optional(part) : std::nullopt));
    Status mine;
    if (leads) {
      auto thread = WorkerThread::open(context_, std::move(comm), ledger);
      if (thread) thread_ = std::move(*thread);
      if (!thread) mine = fail(thread.error());
    }
    DIAPAUSE_TRY(meet(context_, mine, thread_ ? &thread_->worker() : nullptr));
    if (relay_) relay_->engage();
    if (leads) mine = thread_->start();
    DIAPAUSE_TRY(agree(context_, mine));
    is_started_ = true;
    if (relay_) context_.comm->while_waiting([relay = relay_] { relay->advance(); });
    return {};
  }

  Status open_with_ranks(const Context& whole) {
    DIAPAUSE_TRY(meet(whole, {}, nullptr));
    is_started_ = true;
    return {};
  }

  std::uint32_t incarnation() const override { return facts_.incarnation; }
  std::uint32_t other_rank_count() const override { return facts_.other_rank_count; }
  Worker worker() const override { return worker_; }

  Result<store::Slot> acquire(config::TierKind kind, std::uint64_t bytes,
                              store::SlotUse use) override {
    bool is_last_try = false;
    while (true) {
      if (context_.tiers.find(kind) == nullptr) DIAPAUSE_TRY(open_tier(context_, kind));
      store::Tier* const tier = context_.tiers.find(kind);
      auto slot = tier->acquire(bytes, context_.rank(), use);
      const Status all = agree(context_, slot ? Status{} : fail(slot.error()));
      if (all) return slot;
      if (slot && slot->is_open()) tier->give_back(std::move(*slot));
      if (all.error().code != Code::full) {
        context_.tiers.close(kind);  // it is reopened at the next attempt
        return fail(all.error());
      }
      if (is_last_try) return fail(all.error());
      Message message;
      message.kind = RequestKind::make_room;
      message.node_tier = kind;
      const Progress made = finished(post(message));
      DIAPAUSE_TRY(made.result);
      // The worker has removed what it was about to remove, so there may be room even if no other
      // version can go.
      is_last_try = made.levels == 0;
    }
  }

  std::optional<store::Slot> try_acquire(config::TierKind kind, std::uint64_t bytes) override {
    store::Tier* const tier = context_.tiers.find(kind);
    if (tier == nullptr) return std::nullopt;
    auto slot = tier->acquire(bytes, context_.rank(), store::SlotUse::capture);
    return slot ? std::optional(std::move(*slot)) : std::nullopt;
  }

  void keep_slot_ready(std::uint64_t bytes, std::uint64_t least_free,
                       const std::atomic<bool>& stop) override {
    store::Tier* const tier = context_.tiers.find(config::TierKind::memory);
    if (tier != nullptr) tier->keep_one_ready(bytes, context_.rank(), least_free, stop);
  }

  Status check_tier(config::TierKind kind) override {
    const store::Tier* const tier = context_.tiers.find(kind);
    const bool is_lost =
        tier != nullptr && (tier->directory().has_no_name() || tier->directory().was_moved());
    DIAPAUSE_TRY_ASSIGN(const std::uint64_t is_gone, context_.comm->all_max(is_lost ? 1 : 0));
    if (is_gone != 0) context_.tiers.close(kind);
    return {};
  }

  governor::PhaseGuard begin_capture(std::uint64_t bytes) override {
    return thread_ ? thread_->worker().begin_capture(bytes) : governor::PhaseGuard();
  }
  // The first rank of a node tells when a capture has blocked the program.
  void expect_capture(double called_s) override {
    if (place_ == 0) mailbox_->expect_capture(called_s);
  }
  void expect_no_capture() override {
    if (place_ == 0) mailbox_->expect_no_capture();
  }
  std::uint64_t next_number() const override { return mailbox_->next_number(place_); }
  std::uint64_t submit(Captures captures) override {
    Message message;
    message.kind = captures.completes ? RequestKind::complete : RequestKind::capture;
    message.version = captures.completes.value_or(format::VersionId{});
    message.decision = captures.decision;
    message.node_tier = captures.node_tier;
    message.capture_tier = captures.capture_tier;
    message.capture_s = captures.capture_s;
    message.times = captures.times;
    message.times.blocked_s = captures.blocked_s();
    if (captures.result && !captures.images.empty()) {
      Image& image = captures.images.front();
      message.facts = image.facts;
      put_text(message.slot_name, image.slot.name());
      message.slot_id = image.slot.file().id();
      context_.tiers.find(captures.capture_tier)->lend(std::move(image.slot));
    } else if (!captures.result) {
      store::Tier* const tier = context_.tiers.find(captures.capture_tier);
      for (Image& image : captures.images) tier->give_back(std::move(image.slot));
      message.code = static_cast<std::int32_t>(captures.result.error().code);
      put_text(message.text, captures.result.error().message);
    }
    return post(message);
  }

  Progress progress(std::uint64_t number) override { return mailbox_->progress(number); }
  void wait(std::uint64_t number, std::uint32_t levels, double at_most_s) override {
    if (!relay_) return mailbox_->wait(number, levels, at_most_s);
    const double end_s = sys::monotonic_s() + at_most_s;
    while (true) {
      relay_->advance();
      const Progress now = mailbox_->progress(number);
      const double left_s = end_s - sys::monotonic_s();
      if (now.is_done || (now.levels & levels) != 0 || left_s <= 0) return;
      mailbox_->wait(number, levels, std::min(left_s, kBetweenSteps_s));
    }
  }
  int stop_signal() const override { return mailbox_->stop_signal(); }
  void give_up() override { mailbox_->give_up(); }
  void attend() override {
    if (relay_) relay_->advance(patience_s());
    if (thread_) thread_->messages().pass_on(context_.log);
  }

  void add(std::span<const Phase> phases) override {
    Message message;
    message.kind = RequestKind::phases;
    for (; !phases.empty(); phases = phases.subspan(message.phase_count)) {
      message.phase_count =
          static_cast<std::uint32_t>(std::min(phases.size(), message.phases.size()));
      std::copy_n(phases.begin(), message.phase_count, message.phases.begin());
      post(message);
    }
  }
  void end_period() override {
    Message message;
    message.kind = RequestKind::end_period;
    (void)finished(post(message));
  }
  Status finish() override {
    Message message;
    message.kind = RequestKind::finish;
    return finished(post(message)).result;
  }
  void reject(const format::VersionId& version) override {
    Message message;
    message.kind = RequestKind::reject;
    message.version = version;
    post(message);
  }
  void pin(std::optional<format::VersionId> version) override {
    Message message;
    message.kind = version ? RequestKind::pin : RequestKind::unpin;
    if (version) message.version = *version;
    const std::uint64_t number = post(message);
    if (version) (void)finished(number);
  }

 private:
  // Lets all processes of `whole` and their workers find each other. `opened` and `worker` are
  // those of the worker in this process, if there is one.
  Status meet(const Context& whole, const Status& opened, const NodeWorker* worker) {
    DIAPAUSE_TRY_ASSIGN(facts_, announce(whole, opened, worker));
    DIAPAUSE_TRY(agree(whole, open_own_end()));
    if (worker != nullptr) worker->conceal_mailbox();
    return {};
  }

  Status open_own_end() {
    for (const config::TierKind kind : kAllTiers) {
      Status opened = open_tier(context_, kind);
      if (!opened && opened.error().code == Code::comm) return opened;
    }
    DIAPAUSE_TRY_ASSIGN(store::Tier* const tier, context_.tiers.get(config::TierKind::memory));
    const Topology by_node = acting_for_nodes(context_.topology);
    const auto& ranks = by_node.acted_for;
    place_ = static_cast<std::uint32_t>(std::find(ranks.begin(), ranks.end(), context_.rank()) -
                                        ranks.begin());
    rank_count_ = static_cast<std::uint32_t>(ranks.size());
    auto mailbox = Mailbox::open(tier->directory(), rank_count_);
    if (!mailbox) return fail(mailbox.error());
    mailbox_.emplace(std::move(*mailbox));
    return {};
  }

  // Posts a message. There is always room, because no more requests that communicate are in
  // progress than versions may be in flight.
  std::uint64_t post(const Message& message) { return mailbox_->post(place_, message); }
  Progress finished(std::uint64_t number) {
    while (!progress(number).is_done) wait(number, 0, 3600);
    return progress(number);
  }

  // Returns how long this call may wait for other nodes on behalf of the thread: a small part of
  // the time since the call before. Nodes that make their calls at about the same time then advance
  // by many steps in each, although the calls may be far apart.
  double patience_s() {
    const double now_s = sys::monotonic_s();
    const double before_s = attended_s_.exchange(now_s);
    return std::min(kShareOfTheProgram * (now_s - before_s), kMostPatience_s);
  }

  static constexpr double kShareOfTheProgram = 0.01;
  static constexpr double kMostPatience_s = 0.25;
  // The time between two steps of communication while this rank waits for other nodes and has
  // nothing else to do.
  static constexpr double kBetweenSteps_s = 200e-6;

  Context& context_;
  StoredFacts facts_;
  Worker worker_ = Worker::rank;
  std::uint32_t place_ = 0;  // place of this rank among those of its node
  std::uint32_t rank_count_ = 0;
  std::optional<Mailbox> mailbox_;
  // Only a node's first rank has it, if its thread must not communicate.
  std::shared_ptr<comm::Relay> relay_;
  std::atomic<double> attended_s_ = sys::monotonic_s();  // time of the last call of attend()
  std::unique_ptr<WorkerThread> thread_;  // in a node's first rank, if there is no dedicated rank
  bool is_started_ = false;
};

}  // namespace

Result<std::unique_ptr<Host>> open_thread_host(Context& context, LedgerWriter& ledger,
                                               ThreadsMay threads_may) {
  auto host = std::make_unique<BackgroundHost>(context);
  DIAPAUSE_TRY(host->open_with_thread(ledger, threads_may));
  return host;
}

Result<std::unique_ptr<Host>> open_rank_host(Context& context, const Context& whole) {
  auto host = std::make_unique<BackgroundHost>(context);
  DIAPAUSE_TRY(host->open_with_ranks(whole));
  return host;
}

}  // namespace diapause::engine
