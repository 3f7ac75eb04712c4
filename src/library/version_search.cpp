#include "library/version_search.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/job/starts.hpp"
#include "sys/process.hpp"

namespace diapause::library {
namespace {

std::string sentence(const format::VersionId& id, const std::string& why) {
  return fmt::format("version {}: {}\n", id.number, why);
}

std::string words_on_end(const std::string& job, const store::FinishedMark& mark) {
  std::string text =
      fmt::format("'{}' was finished, and there are no checkpoints of it since", job);
  if (mark.archive)
    text += fmt::format("; its last version, {}, is kept, and comes back by its number",
                        mark.archive->number);
  return text;
}

}  // namespace

Error no_version(const engine::Context& context, std::uint64_t number,
                 const std::optional<Error>& unread) {
  if (unread) {
    return {
        unread->code,
        fmt::format(
            "{}\nit may hold checkpoints of '{}', and no other tier does: make it readable, or, to "
            "start from the beginning, take it out of the configuration",
            unread->message, context.job)};
  }
  return {Code::not_found,
          number == engine::Decider::kNewest
              ? fmt::format("there are no checkpoints of '{}' yet", context.job)
              : fmt::format("there is no version {} of '{}'", number, context.job)};
}

Result<engine::Restart> VersionSearch::run() {
  DIAPAUSE_TRY_ASSIGN(inventory_, take_inventory(context_));
  const engine::Phase listing =
      engine::make_phase("inventory", wanted_.asked_s, sys::monotonic_s());
  if (inventory_.unread) {
    if (is_of_the_moment(inventory_.unread->code))
      return fail(Code::again, inventory_.unread->message);
    reason_ += inventory_.unread->message + "\n";
    is_stepping_back_ = true;
  }
  std::vector<engine::StoredVersion>& candidates = inventory_.versions;
  const bool wants_newest = wanted_.number == engine::Decider::kNewest;
  // Versions that a finished job has left are restored only if they are asked for by number.
  if (!wants_newest) std::ranges::move(inventory_.finished, std::back_inserter(candidates));
  for (engine::StoredVersion& candidate : candidates) {
    if (!wants_newest && candidate.id.number != wanted_.number) continue;
    DIAPAUSE_TRY_ASSIGN(std::optional<engine::Restart> found, consider(candidate));
    if (!found) continue;
    found->fetched.phases.push_back(listing);
    tell_of_other_histories(context_, candidates, found->fetched.manifest.version);
    return std::move(*found);
  }
  return fail(failure());
}

// Returns nothing if the version is passed over.
Result<std::optional<engine::Restart>> VersionSearch::consider(engine::StoredVersion& candidate) {
  if (!candidate.manifest) {
    // A version without a manifest and without a damaged one is a checkpoint that was cut short: it
    // never was one.
    if (candidate.problems.empty()) return std::nullopt;
    if (candidate.is_of_the_moment) return fail(Code::again, candidate.problems.front());
    pass_over(candidate.id,
              {candidate.is_unreadable ? Code::io : Code::corrupt, candidate.problems.front()});
    return std::nullopt;
  }
  const std::size_t ranks = candidate.manifest->ranks.size();
  if (ranks != context_.rank_count()) {
    reason_ += sentence(candidate.id, fmt::format("written by {} ranks, and this run has {}", ranks,
                                                  context_.rank_count()));
    return fail(Code::mismatch, reason_ + "run with as many ranks, or open it under another name");
  }
  if (const auto lost = lost_.find(candidate.id); lost != lost_.end()) {
    pass_over(candidate.id, lost->second);
    return std::nullopt;
  }
  return fetch(candidate);
}

Result<std::optional<engine::Restart>> VersionSearch::fetch(engine::StoredVersion& candidate) {
  const format::VersionId id = candidate.id;
  engine::Fetch fetch(context_, std::move(candidate), wanted_.purpose);
  auto fetched = fetch.get();
  if (fetched) {
    return engine::Restart{std::move(fetch),  std::move(*fetched), wanted_.purpose, wanted_.asked_s,
                           is_stepping_back_, std::move(damaged_), std::nullopt};
  }
  Error& why = fetched.error();
  if (why.code == Code::comm) return fail(std::move(why));
  if (is_of_the_moment(why.code)) return fail(Code::again, sentence(id, why.message));
  pass_over(id, why);
  return std::nullopt;
}

// A version that cannot be read may be sound, and is not given up. Only versions that are known to
// be damaged are noted as such.
void VersionSearch::pass_over(const format::VersionId& id, const Error& why) {
  reason_ += sentence(id, why.message);
  // A tier that cannot be read may hold what is missing from a version.
  const Code code =
      why.code == Code::corrupt && inventory_.unread ? inventory_.unread->code : why.code;
  if (refusal_ == Code::not_found || code != Code::corrupt) refusal_ = code;
  if (code == Code::corrupt) damaged_.push_back(id);
  is_stepping_back_ = true;
}

Error VersionSearch::failure() const {
  if (refusal_ == Code::not_found) {
    const bool is_finished =
        wanted_.number == engine::Decider::kNewest && inventory_.mark.incarnation != 0;
    if (is_finished && !inventory_.unread)
      return {Code::not_found, words_on_end(context_.job, inventory_.mark)};
    return no_version(context_, wanted_.number, inventory_.unread);
  }
  const std::string advice = refusal_ != Code::corrupt
                                 ? "make readable what cannot be read, and start again"
                                 : fmt::format(
                                       "to start from the beginning, remove it with 'diapause "
                                       "prune {} --all', or use another name",
                                       context_.job_key());
  return {refusal_,
          fmt::format("nothing of '{}' can be restored:\n{}{}", context_.job, reason_, advice)};
}

}  // namespace diapause::library
