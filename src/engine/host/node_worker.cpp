#include "engine/host/node_worker.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "engine/job/gather.hpp"
#include "sys/process.hpp"
#include "sys/thread.hpp"

namespace diapause::engine {

NodeWorker::NodeWorker(const Context& rank, std::unique_ptr<comm::Comm> comm, LogSink log)
    : context_{rank.kernel, std::move(comm), rank.settings, acting_for_nodes(rank.topology),
               {},          std::move(log),  rank.job,      rank.neighbours,
               rank.share,  rank.identity} {}

Result<std::unique_ptr<NodeWorker>> NodeWorker::open(const Context& rank,
                                                     std::unique_ptr<comm::Comm> comm, LogSink log,
                                                     LedgerWriter& ledger) {
  std::unique_ptr<NodeWorker> worker(new NodeWorker(rank, std::move(comm), std::move(log)));
  DIAPAUSE_TRY_ASSIGN(worker->engine_, NodeEngine::open(worker->context_, ledger));
  DIAPAUSE_TRY(worker->make_mailbox());
  return worker;
}

Status NodeWorker::make_mailbox() {
  auto memory = context_.tiers.get(config::TierKind::memory);
  if (!memory)
    return fail(Code::io,
                "work in the background needs the memory tier: " + memory.error().message);
  const auto rank_count = static_cast<std::uint32_t>(context_.topology.acted_for.size());
  auto mailbox = Mailbox::create((*memory)->directory(), rank_count);
  if (!mailbox) return fail(mailbox.error());
  mailbox_.emplace(std::move(*mailbox));
  engine_->give_up_when([this] {
    pass_on_signal();
    return mailbox_->is_given_up();
  });
  engine_->ask_for_calls([this](double time_s) { return mailbox_->first_call_after(time_s); });
  return {};
}

void NodeWorker::pass_on_signal() {
  if (const int signal = received_(); signal != 0) mailbox_->pass_on(signal);
}

void NodeWorker::serve() {
  const config::AsyncSettings& async = context_.settings.async;
  const Status gives_way = sys::give_way(static_cast<int>(async.nice), async.cpu);
  if (!gives_way) context_.log(Severity::warning, gives_way.error().message);
  for (std::uint64_t number = 0;; ++number) {
    const std::vector<Message> messages = mailbox_->take(number, [this] { pass_on_signal(); });
    mailbox_->begin(number);
    Progress progress;
    const double start_s = sys::monotonic_s();
    try {
      progress = work(number, messages);
    } catch (const std::exception& error) {
      progress.result =
          fail(Code::internal, fmt::format("the engine in the background: {}", error.what()));
    }
    progress.is_done = true;
    progress.seconds = sys::monotonic_s() - start_s;
    mailbox_->finish(number, progress);
    if (messages[0].kind == RequestKind::stop) return;
  }
}

Progress NodeWorker::work(std::uint64_t number, const std::vector<Message>& messages) {
  Progress progress;
  const Message& first = messages[0];
  switch (first.kind) {
    case RequestKind::capture:
    case RequestKind::complete:
      return checkpoint(number, messages);
    case RequestKind::make_room: {
      const Result<bool> made = engine_->make_room(first.node_tier);
      if (made) progress.levels = *made ? 1 : 0;
      if (!made) progress.result = fail(made.error());
      break;
    }
    case RequestKind::reject:
      engine_->reject(first.version);
      break;
    case RequestKind::pin:
      engine_->pin(first.version);
      break;
    case RequestKind::unpin:
      engine_->pin(std::nullopt);
      break;
    case RequestKind::phases:
      for (std::uint32_t i = 0; i < first.phase_count; ++i) engine_->add(first.phases[i]);
      break;
    case RequestKind::end_period:
      engine_->end_period();
      break;
    case RequestKind::finish:
      progress.result = engine_->finish();
      break;
    case RequestKind::stop:
      break;
  }
  return progress;
}

void NodeWorker::conceal_mailbox() const {
  if (const auto* const memory = context_.tiers.find(config::TierKind::memory)) {
    (void)memory->directory().remove_file(Mailbox::kFileName);
  }
}

Progress NodeWorker::checkpoint(std::uint64_t number, const std::vector<Message>& messages) {
  engine_->revive_tiers();
  Captures captures;
  captures.decision = messages[0].decision;
  captures.node_tier = messages[0].node_tier;
  captures.capture_tier = messages[0].capture_tier;
  captures.is_direct = captures.capture_tier == config::TierKind::global;
  if (messages[0].kind == RequestKind::complete) captures.completes = messages[0].version;
  for (const Message& message : messages) {
    Status borrowed = captures.result ? borrow(message, captures.images) : captures.result;
    if (!borrowed) return_unused(message);
    captures.result = std::move(borrowed);
  }
  captures.capture_s = messages[0].capture_s;
  captures.times = messages[0].times;
  captures.blocked_s = [blocked_s = messages[0].times.blocked_s] { return blocked_s; };
  const auto reached = [&](std::uint32_t levels) { mailbox_->reached(number, levels); };
  Outcome outcome = captures.completes ? engine_->complete(std::move(captures), reached)
                                       : engine_->checkpoint(std::move(captures), reached);
  Progress progress{true, outcome.manifest.levels, std::move(outcome.result), 0};
  progress.bytes_total = outcome.manifest.protected_bytes();
  return progress;
}

// Returns a slot that will not be published to its rank.
void NodeWorker::return_unused(const Message& message) {
  const store::Tier* const tier = context_.tiers.find(message.capture_tier);
  const bool has_slot = message.code == 0 && !get_text(message.slot_name).empty();
  if (tier != nullptr && has_slot) tier->return_unused(get_text(message.slot_name));
}

Status NodeWorker::borrow(const Message& message, std::vector<Image>& images) {
  if (message.code != 0) return fail(static_cast<Code>(message.code), get_text(message.text));
  if (get_text(message.slot_name).empty()) return {};  // nothing was captured
  DIAPAUSE_TRY_ASSIGN(store::Tier* const tier, context_.tiers.get(message.capture_tier));
  Image image;
  DIAPAUSE_TRY_ASSIGN(image.slot, tier->borrow(get_text(message.slot_name), message.slot_id));
  image.facts = message.facts;
  const std::uint64_t bytes = message.facts.image.file_bytes;
  if (message.capture_tier == config::TierKind::memory) {
    DIAPAUSE_TRY_ASSIGN(sys::PrivateMemory memory,
                        sys::PrivateMemory::of_file(image.slot.file(), 0, bytes));
    image.bytes = capture::memory_bytes(std::move(memory), bytes);
  } else {
    DIAPAUSE_TRY_ASSIGN(sys::File file, tier->read_spare(image.slot.name()));
    image.bytes = store::file_bytes(std::move(file), 0, bytes);
  }
  images.push_back(std::move(image));
  return {};
}

Result<StoredFacts> announce(const Context& whole, const Status& opened, const NodeWorker* worker) {
  std::vector<StoredFacts> mine;
  if (worker != nullptr) mine.push_back(worker->facts());
  DIAPAUSE_TRY_ASSIGN(const Gathered<StoredFacts> all,
                      gather_values<StoredFacts>(whole, opened, mine, "what a worker has found"));
  for (const std::vector<StoredFacts>& of_process : all) {
    if (!of_process.empty()) return of_process.front();  // all of them have told the same
  }
  return fail(Code::internal, "no worker has opened");
}

}  // namespace diapause::engine
