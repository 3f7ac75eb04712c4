// The node engine in a thread of the first rank of each node, acting for all ranks of the node.
#include <fmt/format.h>

#include <atomic>
#include <deque>

#include "engine/mailbox.hpp"
#include "sys/process.hpp"
#include "sys/thread.hpp"

namespace diapause::engine {
namespace {

// Messages of the thread wait here for the program's next call: the log is only ever called from the program's threads.
class MessageQueue {
 public:
  void put(Severity severity, const std::string& text) {
    const std::lock_guard lock(mutex_);
    messages_.emplace_back(severity, text);
  }
  void pass_on(const LogSink& log) {
    std::deque<std::pair<Severity, std::string>> messages;
    {
      const std::lock_guard lock(mutex_);
      messages.swap(messages_);
    }
    for (const auto& [severity, text] : messages) log(severity, text);
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<Severity, std::string>> messages_;
};

// What the node's first rank has besides: the engine and its thread.
class NodeWorker {
 public:
  static Result<std::unique_ptr<NodeWorker>> open(const Context& context, std::unique_ptr<comm::Comm> comm,
                                                  Bill& bill) {
    std::unique_ptr<NodeWorker> worker(new NodeWorker(context, std::move(comm)));
    DIAPAUSE_TRY_ASSIGN(worker->engine_, NodeEngine::open(worker->context_, bill));
    return worker;
  }

  NodeEngine& engine() { return *engine_; }
  MessageQueue& messages() { return messages_; }

  // `mailbox` must live until the thread has taken the job to stop.
  Status start(Mailbox& mailbox) {
    mailbox_ = &mailbox;
    engine_->give_up_when([&mailbox] { return mailbox.is_given_up(); });
    auto thread = sys::Thread::start([this] { serve(); });
    if (!thread) return fail(thread.error());
    thread_.emplace(std::move(*thread));
    return {};
  }

 private:
  NodeWorker(const Context& context, std::unique_ptr<comm::Comm> comm)
      : context_{context.kernel,
                 std::move(comm),
                 context.settings,
                 acting_for_nodes(context.topology),
                 {},
                 [this](Severity severity, const std::string& text) { messages_.put(severity, text); },
                 context.job,
                 context.job_key} {}

  void serve() {
    const config::AsyncSettings& async = context_.settings.async;
    const Status gives_way = sys::give_way(static_cast<int>(async.nice), async.cpu);
    if (!gives_way) messages_.put(Severity::warning, gives_way.error().message);
    for (std::uint64_t number = 0;; ++number) {
      const std::vector<Note> notes = mailbox_->take(number);
      mailbox_->begin(number);
      Progress progress;
      const double start_s = sys::monotonic_s();
      try {
        progress = work(number, notes);
      } catch (const std::exception& error) {
        progress.result = fail(Code::internal, fmt::format("the engine's thread: {}", error.what()));
      }
      progress.is_done = true;
      progress.seconds = sys::monotonic_s() - start_s;
      mailbox_->finish(number, progress);
      if (notes[0].kind == JobKind::stop) return;
    }
  }

  Progress work(std::uint64_t number, const std::vector<Note>& notes) {
    Progress progress;
    const Note& first = notes[0];
    switch (first.kind) {
      case JobKind::capture:
        return checkpoint(number, notes);
      case JobKind::make_room: {
        const Result<bool> made = engine_->make_room(first.node_tier);
        if (made) progress.levels = *made ? 1 : 0;
        if (!made) progress.result = fail(made.error());
        break;
      }
      case JobKind::reject:
        engine_->reject(first.version);
        break;
      case JobKind::pin:
        engine_->pin(first.version);
        break;
      case JobKind::unpin:
        engine_->pin(std::nullopt);
        break;
      case JobKind::stop:
        break;
    }
    return progress;
  }

  Progress checkpoint(std::uint64_t number, const std::vector<Note>& notes) {
    engine_->revive_tiers();
    Captures captures;
    captures.decision = notes[0].decision;
    captures.node_tier = notes[0].node_tier;
    for (std::size_t i = 0; i < notes.size() && captures.result; ++i)
      captures.result = adopt(notes[i], captures.images);
    captures.capture_s = notes[0].capture_s;
    captures.blocked_s = [blocked_s = notes[0].blocked_s] { return blocked_s; };
    Outcome outcome =
        engine_->checkpoint(std::move(captures), [&](std::uint32_t levels) { mailbox_->reached(number, levels); });
    Progress progress{true, outcome.manifest.levels, std::move(outcome.result), 0};
    for (const format::RankRecord& rank : outcome.manifest.ranks) progress.bytes_total += rank.protected_bytes;
    return progress;
  }

  Status adopt(const Note& note, std::vector<Image>& images) {
    if (note.code != 0) return fail(static_cast<Code>(note.code), get_text(note.text));
    DIAPAUSE_TRY_ASSIGN(store::Tier* const tier, context_.tiers.get(config::TierKind::memory));
    Image image;
    DIAPAUSE_TRY_ASSIGN(image.slot, tier->adopt(get_text(note.spare_name)));
    image.facts = note.facts;
    image.bytes = capture::memory_bytes(image.slot.mapping(), note.facts.image.file_bytes);
    images.push_back(std::move(image));
    return {};
  }

  MessageQueue messages_;
  Context context_;
  std::unique_ptr<NodeEngine> engine_;
  Mailbox* mailbox_ = nullptr;
  std::optional<sys::Thread> thread_;
};

class ThreadHost : public Host {
 public:
  explicit ThreadHost(Context& context) : context_(context) {}

  ~ThreadHost() override {
    if (!is_started_) return;
    const std::uint64_t stop = mailbox_->post(place_, {});
    while (!mailbox_->progress(stop).is_done) mailbox_->wait(stop, 0, 3600);
    if (worker_) worker_->messages().pass_on(context_.log);
  }

  // Collective; fails on all ranks or on none.
  Status open(Bill& bill) {
    const bool leads = context_.topology.is_leader();
    DIAPAUSE_TRY_ASSIGN(std::unique_ptr<comm::Comm> comm,
                        context_.comm->split(leads ? comm::Comm::Part::join : comm::Comm::Part::stay_out));
    Status mine;
    if (leads) {
      auto worker = NodeWorker::open(context_, std::move(comm), bill);
      if (worker) worker_ = std::move(*worker);
      if (!worker) mine = fail(worker.error());
    }
    DIAPAUSE_TRY(agree(context_, mine));
    DIAPAUSE_TRY(learn_facts());
    for (const config::TierKind kind : kAllTiers) {
      Status opened = open_tier(context_, kind);
      if (!opened && opened.error().code == Code::comm) return opened;
    }
    DIAPAUSE_TRY(open_mailbox());
    if (leads) mine = worker_->start(*mailbox_);
    DIAPAUSE_TRY(agree(context_, mine));
    is_started_ = true;
    return {};
  }

  std::uint32_t incarnation() const override { return facts_.incarnation; }
  std::uint32_t other_rank_count() const override { return facts_.other_rank_count; }
  bool is_background() const override { return true; }

  Result<store::Slot> acquire(config::TierKind kind, std::uint64_t bytes) override {
    while (true) {
      if (context_.tiers.find(kind) == nullptr) DIAPAUSE_TRY(open_tier(context_, kind));
      store::Tier* const tier = context_.tiers.find(kind);
      auto slot = tier->acquire(bytes, context_.rank());
      const Status all = agree(context_, slot ? Status{} : fail(slot.error()));
      if (all) return slot;
      if (slot) tier->give_back(std::move(*slot));
      if (all.error().code != Code::full) {
        context_.tiers.tiers[static_cast<std::size_t>(kind)].reset();  // opened anew at the next attempt
        return fail(all.error());
      }
      Note note;
      note.kind = JobKind::make_room;
      note.node_tier = kind;
      const Progress made = finished(post(note));
      DIAPAUSE_TRY(made.result);
      if (made.levels == 0) return fail(all.error());
    }
  }

  Status check_tier(config::TierKind kind) override {
    auto& tier = context_.tiers.tiers[static_cast<std::size_t>(kind)];
    DIAPAUSE_TRY_ASSIGN(const std::uint64_t is_gone,
                        context_.comm->all_max(tier && tier->directory().has_no_name() ? 1 : 0));
    if (is_gone != 0) tier.reset();
    return {};
  }

  std::uint64_t submit(Captures captures) override {
    Note note;
    note.kind = JobKind::capture;
    note.decision = captures.decision;
    note.node_tier = captures.node_tier;
    note.capture_s = captures.capture_s;
    note.blocked_s = captures.blocked_s();
    if (captures.result) {
      Image& image = captures.images.front();
      note.facts = image.facts;
      put_text(note.spare_name, image.slot.spare_name());
      context_.tiers.find(captures.capture_tier)->lend(std::move(image.slot));
    } else {
      note.code = static_cast<std::int32_t>(captures.result.error().code);
      put_text(note.text, captures.result.error().message);
    }
    return post(note);
  }

  Progress progress(std::uint64_t number) override { return mailbox_->progress(number); }
  void wait(std::uint64_t number, std::uint32_t levels, double at_most_s) override {
    mailbox_->wait(number, levels, at_most_s);
  }
  void give_up() override { mailbox_->give_up(); }
  void pass_on_messages() override {
    if (worker_) worker_->messages().pass_on(context_.log);
  }

  void reject(const format::VersionId& version) override {
    Note note;
    note.kind = JobKind::reject;
    note.version = version;
    post(note);
  }
  void pin(std::optional<format::VersionId> version) override {
    Note note;
    note.kind = version ? JobKind::pin : JobKind::unpin;
    if (version) note.version = *version;
    (void)finished(post(note));
  }

 private:
  struct Facts {
    std::uint32_t incarnation = 1;
    std::uint32_t other_rank_count = 0;
    std::uint32_t has_memory = 0;
  };

  Status learn_facts() {
    if (context_.rank() == 0) {
      NodeEngine& engine = worker_->engine();
      facts_ = {engine.incarnation(), engine.other_rank_count(), engine.has_tier(config::TierKind::memory) ? 1u : 0u};
    }
    DIAPAUSE_TRY(context_.comm->broadcast(std::as_writable_bytes(std::span(&facts_, 1)), 0));
    if (facts_.has_memory == 0) return fail(Code::io, "work in the background needs the memory tier");
    return {};
  }

  Status open_mailbox() {
    DIAPAUSE_TRY_ASSIGN(store::Tier* const tier, context_.tiers.get(config::TierKind::memory));
    const Topology by_node = acting_for_nodes(context_.topology);
    const auto& ranks = by_node.acted_for;
    place_ = static_cast<std::uint32_t>(std::find(ranks.begin(), ranks.end(), context_.rank()) - ranks.begin());
    const auto count = static_cast<std::uint32_t>(ranks.size());
    const auto take = [&](Result<Mailbox> mailbox) -> Status {
      if (!mailbox) return fail(mailbox.error());
      mailbox_.emplace(std::move(*mailbox));
      return {};
    };
    Status mine;
    if (context_.topology.is_leader()) mine = take(Mailbox::create(tier->directory(), count));
    DIAPAUSE_TRY(agree(context_, mine));
    if (!context_.topology.is_leader()) mine = take(Mailbox::open(tier->directory(), count));
    return agree(context_, mine);
  }

  std::uint64_t post(const Note& note) { return mailbox_->post(place_, note); }
  Progress finished(std::uint64_t number) {
    while (!progress(number).is_done) mailbox_->wait(number, 0, 3600);
    return progress(number);
  }

  Context& context_;
  Facts facts_;
  std::uint32_t place_ = 0;  // of this rank among those of its node
  std::optional<Mailbox> mailbox_;
  std::unique_ptr<NodeWorker> worker_;  // of a node's first rank
  bool is_started_ = false;
};

}  // namespace

Result<std::unique_ptr<Host>> open_thread_host(Context& context, Bill& bill) {
  auto host = std::make_unique<ThreadHost>(context);
  DIAPAUSE_TRY(host->open(bill));
  return host;
}

}  // namespace diapause::engine
