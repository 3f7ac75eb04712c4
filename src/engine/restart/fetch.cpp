// Gets every rank's image of one version: plan, verify what the plan reads, move and rebuild,
// verify again; what turns out to be damaged is taken out and the plan is made anew, until it holds
// or nothing is left. Where the images that ranks lack go straight into the program's memory, only
// what arrives is verified; if it is damaged, everything that it came from is.
#include "engine/restart/fetch.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "capture/capture.hpp"
#include "capture/capturer.hpp"
#include "engine/job/gather.hpp"
#include "engine/recovery/rebuild.hpp"
#include "engine/restart/placement.hpp"
#include "format/wire.hpp"
#include "redundancy/layout.hpp"
#include "redundancy/places.hpp"
#include "store/names.hpp"
#include "sys/process.hpp"
#include "sys/thread.hpp"

namespace diapause::engine {
namespace {

using redundancy::Source;
using redundancy::SourceKind;

class OwnedBytes : public ByteSource {
 public:
  OwnedBytes(sys::AlignedBuffer buffer, std::uint64_t size)
      : buffer_(std::move(buffer)), inner_(capture::memory_bytes(buffer_.bytes(), size)) {}
  std::uint64_t size() const override { return inner_->size(); }
  Result<ByteView> view(std::uint64_t offset, MutableBytes scratch) override {
    return inner_->view(offset, scratch);
  }

 private:
  sys::AlignedBuffer buffer_;
  std::unique_ptr<ByteSource> inner_;
};

// A file found damaged, or a rank whose rebuild gave something wrong.
struct Bad {
  std::optional<FileRef> file;
  std::uint32_t rebuilt_rank = 0;
  std::string why;
  Code code = Code::corrupt;

  bool may_be_sound() const { return code == Code::io || code == Code::denied; }
  void put(format::Writer& writer) const;
  bool get(format::Reader& reader);
};

void Bad::put(format::Writer& writer) const {
  const FileRef place = file.value_or(FileRef{});
  writer.u32((file ? 1u : 0u) | (place.is_parity ? 2u : 0u) | (place.is_global ? 4u : 0u));
  writer.u32(static_cast<std::uint32_t>(-static_cast<int>(code)));
  writer.u32(place.node);
  writer.u32(place.group);
  writer.u32(place.index);
  writer.u32(rebuilt_rank);
  writer.sized_text(why);
}

bool Bad::get(format::Reader& reader) {
  FileRef place;
  const std::uint32_t flags = reader.u32();
  place.is_parity = (flags & 2) != 0;
  place.is_global = (flags & 4) != 0;
  code = static_cast<Code>(-static_cast<int>(reader.u32()));
  place.node = reader.u32();
  place.group = reader.u32();
  place.index = reader.u32();
  if ((flags & 1) != 0) file = place;
  rebuilt_rank = reader.u32();
  why = reader.sized_text();
  return reader.ok();
}

}  // namespace

class Fetch::Fetcher {
 public:
  Fetcher(const Context& context, StoredVersion version, Purpose purpose)
      : context_(context),
        version_(std::move(version)),
        purpose_(purpose),
        manifest_(*version_.manifest),
        files_(context, version_) {}
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;
  ~Fetcher() = default;

  Result<FetchedVersion> run() {
    // Every round takes at least one damaged file out, so this ends.
    while (true) {
      plan_ = redundancy::plan_recovery(manifest_, version_.nodes, version_.global,
                                        context_.topology.node_of_rank);
      forbid_failed_rebuilds();
      if (const std::vector<std::uint32_t> missing = plan_.missing(); !missing.empty())
        return give_up(missing);
      image_.reset();
      unchecked_.reset();
      heads_.clear();
      files_.clear();
      collect_reads();
      // Their files are put back later, from what the other nodes have.
      is_placed_at_once_ = purpose_ == Purpose::place && !rebuilds_.empty() && incomplete_in();
      const double start = sys::monotonic_s();
      DIAPAUSE_TRY_ASSIGN(const bool sound, all_sound(verify_reads()));
      const double verified = sys::monotonic_s();
      phases_.push_back(make_phase("verify", start, verified));
      if (!sound) continue;
      DIAPAUSE_TRY_ASSIGN(const bool arrived, all_sound(move()));
      phases_.push_back(
          make_phase(computes_images() ? "rebuild" : "fetch", verified, sys::monotonic_s()));
      if (arrived) break;
    }
    return FetchedVersion{manifest_,        std::move(*image_),    reading_threads(),
                          greatest_error(), describe_sources(),    needs_healing(),
                          incomplete_in(),  std::move(unchecked_), std::exchange(phases_, {})};
  }

  Status deliver(store::ImageReader& image, std::span<std::byte* const> targets) {
    if (!is_placed_at_once_) return image.deliver(targets, reading_threads());
    // A rank reads its own image while it sends to others what they lack.
    Status own;
    const auto read_own = [&] { own = image.deliver(targets, reading_threads()); };
    std::optional<sys::Thread> reading;
    if (!lacks_image() && serves()) {
      auto started = sys::Thread::start(read_own);
      if (started) reading.emplace(std::move(*started));
    }
    if (!lacks_image() && !reading) read_own();
    Placement placement(image.index(), targets, image.name());
    Status moved;
    for (std::size_t i = 0; i < rebuilds_.size() && moved; ++i) {
      moved = execute_rebuild(
          context_, rebuilds_[i], files_, heads_[i].data,
          [&](std::uint64_t offset, ByteView bytes) { placement.take(offset, bytes); });
    }
    reading.reset();
    DIAPAUSE_TRY(std::move(moved));
    return lacks_image() ? placement.result() : own;
  }

  Result<bool> was_sound(const Status& mine) {
    std::vector<Bad> bad;
    if (!mine) bad.push_back(blame(mine.error()));
    DIAPAUSE_TRY_ASSIGN(const bool sound, all_sound(bad));
    if (!sound)
      // Where one file is damaged, others are checked before they are relied on.
      purpose_ = Purpose::copy;
    return sound;
  }

 private:
  static Bad make_bad(std::optional<FileRef> file, std::uint32_t rebuilt_rank, const Error& why) {
    return {file, rebuilt_rank, why.message, why.code};
  }

  // Names the file, or the rebuild, that this rank's image came from.
  Bad blame(const Error& why) const {
    const std::uint32_t rank = context_.rank();
    const Source& source = plan_.sources[rank];
    if (source.kind == SourceKind::rebuild || (is_placed_at_once_ && lacks_image()))
      return make_bad({}, rank, why);
    if (source.kind == SourceKind::global) return make_bad(FileRef::global_image(rank), 0, why);
    const bool is_own = source.kind == SourceKind::own_node;
    return make_bad(FileRef::image(rank, is_own ? context_.topology.node : source.node), 0, why);
  }

  Result<FetchedVersion> give_up(const std::vector<std::uint32_t>& missing) const {
    std::string ranks;
    for (const std::uint32_t rank : missing)
      ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
    std::string text =
        fmt::format("no intact image of rank{} {} is left", missing.size() == 1 ? "" : "s", ranks);
    for (const std::string& reason : reasons_) text += "; " + reason;
    return fail(may_be_sound_ ? Code::io : Code::corrupt, text);
  }

  void forbid_failed_rebuilds() {
    for (const std::uint32_t rank : not_rebuildable_) {
      Source& source = plan_.sources[rank];
      if (source.kind != SourceKind::rebuild) continue;
      source.kind = version_.global.images.contains(rank) ? SourceKind::global : SourceKind::none;
    }
  }

  // Collects the files that the plan makes this rank read: its own, and those it serves to others.
  void collect_reads() {
    to_verify_.clear();
    rebuilds_.clear();
    for (std::uint32_t rank = 0; rank < plan_.sources.size(); ++rank) {
      const Source& source = plan_.sources[rank];
      const std::uint32_t home = context_.topology.node_of_rank[rank];
      switch (source.kind) {
        case SourceKind::own_node:
          want({FileRef::image(rank, home), rank});
          break;
        case SourceKind::peer_node:
          rebuilds_.push_back(plan_copy(context_.topology, version_, rank, source.node));
          break;
        case SourceKind::global:
          want({FileRef::global_image(rank), rank});
          break;
        case SourceKind::rebuild:
          rebuilds_.push_back(plan_rebuild(context_.topology, version_, rank));
          break;
        case SourceKind::none:
          break;
      }
    }
    for (const Rebuild& rebuild : rebuilds_) {
      for (const ServedFile& served : rebuild.files()) want(served);
    }
  }
  void want(const ServedFile& served) {
    if (served.server == context_.rank()) to_verify_.insert(served.file);
  }

  std::vector<Bad> verify_reads() {
    std::vector<Bad> bad;
    for (const FileRef& file : to_verify_) {
      auto reader = files_.open(file);
      const Status sound = reader ? verify(**reader, file) : fail(reader.error());
      if (!sound) bad.push_back(make_bad(file, 0, sound.error()));
    }
    return bad;
  }

  Status verify(store::ImageReader& reader, const FileRef& file) const {
    // The rank that gets the image checks every block of it. Images that others are rebuilt from
    // are checked here, because damage to one of several files could not be told from the result,
    // unless there will be another round for that.
    if (purpose_ == Purpose::place && (is_placed_at_once_ || !is_rebuilt_from(file))) return {};
    if (!is_own_image(file) || purpose_ == Purpose::copy || purpose_ == Purpose::place) {
      return reader.verify(reading_threads());
    }
    if (may_stay_unchecked()) return {};
    return reader.verify_through_cache([] { return true; });
  }

  bool is_rebuilt_from(const FileRef& file) const {
    return std::any_of(rebuilds_.begin(), rebuilds_.end(), [&](const Rebuild& rebuild) {
      const std::vector<ServedFile> files = rebuild.files();
      return !rebuild.is_copy() &&
             std::any_of(files.begin(), files.end(),
                         [&](const ServedFile& served) { return served.file == file; });
    });
  }

  bool computes_images() const {
    return std::ranges::any_of(rebuilds_, [](const Rebuild& one) { return !one.is_copy(); });
  }

  // Returns whether this rank reads files for others.
  bool serves() const {
    return std::ranges::any_of(rebuilds_, [&](const Rebuild& rebuild) {
      return std::ranges::any_of(rebuild.files(), [&](const ServedFile& served) {
        return served.server == context_.rank();
      });
    });
  }

  // Returns whether this rank's image comes from elsewhere.
  bool lacks_image() const {
    return std::ranges::any_of(rebuilds_,
                               [&](const Rebuild& one) { return one.target == context_.rank(); });
  }

  // Files that other images are rebuilt from must be verified before.
  bool may_stay_unchecked() const {
    return purpose_ == Purpose::map_unchecked && !computes_images();
  }

  bool is_own_image(const FileRef& file) const {
    const std::uint32_t rank = context_.rank();
    return file == FileRef::image(rank, context_.topology.node) ||
           file == FileRef::global_image(rank);
  }

  unsigned reading_threads() const {
    return capture::copying_threads(context_.settings.capture, context_.share.cores);
  }

  // Brings this rank's image here, and serves those of others.
  std::vector<Bad> move() {
    std::vector<Bad> bad;
    for (const Rebuild& rebuild : rebuilds_) {
      const Status done = is_placed_at_once_ ? announce(rebuild) : bring(rebuild);
      if (done) continue;
      const Source& source = plan_.sources[rebuild.target];
      const bool is_file = rebuild.is_copy() && !is_placed_at_once_;
      bad.push_back(is_file ? make_bad(FileRef::image(rebuild.target, source.node), 0, done.error())
                            : make_bad({}, rebuild.target, done.error()));
    }
    const Source& mine = plan_.sources[context_.rank()];
    if (mine.kind == SourceKind::own_node || mine.kind == SourceKind::global) {
      const FileRef file = mine.kind == SourceKind::global
                               ? FileRef::global_image(context_.rank())
                               : FileRef::image(context_.rank(), context_.topology.node);
      auto reader = files_.take(file);
      if (reader) image_ = std::move(*reader);
      if (reader && may_stay_unchecked()) {
        reader = files_.take(file);
        if (reader) unchecked_ = std::move(*reader);
      }
      if (!reader) bad.push_back(make_bad(file, 0, reader.error()));
    }
    return bad;
  }

  // Brings the whole image to the rank that lacks it. Only that rank tells what is wrong with it.
  Status bring(const Rebuild& rebuild) {
    const std::uint64_t size = manifest_.ranks[rebuild.target].image.file_bytes;
    const bool is_target = rebuild.target == context_.rank();
    auto room = is_target ? sys::AlignedBuffer::allocate(std::max<std::uint64_t>(size, 1))
                          : sys::AlignedBuffer();
    // If there is no memory, the messages must still be received.
    const TakeBytes take = [&](std::uint64_t offset, ByteView bytes) {
      if (room) std::memcpy(room->bytes().data() + offset, bytes.data(), bytes.size());
    };
    DIAPAUSE_TRY(execute_rebuild(context_, rebuild, files_, {0, size}, take));
    if (!room) return fail(room.error());
    return is_target ? take_over(std::make_unique<OwnedBytes>(std::move(*room), size), rebuild)
                     : Status();
  }

  // Brings only what the rank must know of its image before the data; deliver() does the rest.
  Status announce(const Rebuild& rebuild) {
    const std::uint64_t size = manifest_.ranks[rebuild.target].image.file_bytes;
    DIAPAUSE_TRY_ASSIGN(FetchedHead fetched, fetch_head(context_, rebuild, files_, size));
    heads_.push_back(std::move(fetched.head));
    DIAPAUSE_TRY(std::move(fetched.sound));
    if (rebuild.target != context_.rank()) return {};
    DIAPAUSE_TRY(take_over(head_bytes(heads_.back(), size), rebuild));
    if (std::ranges::all_of(image_->index().regions, &format::Region::is_raw)) return {};
    return fail(Code::corrupt, image_->name() + " is compressed, as no image of a node is");
  }

  Status take_over(std::unique_ptr<ByteSource> bytes, const Rebuild& rebuild) {
    const char* const what = rebuild.is_copy() ? "the image" : "the rebuilt image";
    DIAPAUSE_TRY_ASSIGN(store::ImageReader reader,
                        store::ImageReader::open(std::move(bytes),
                                                 fmt::format("{} of rank {}", what, rebuild.target),
                                                 store::expected_image(manifest_, rebuild.target)));
    if (purpose_ != Purpose::place) DIAPAUSE_TRY(reader.verify(reading_threads()));
    image_ = std::move(reader);
    return {};
  }

  // Returns true on all ranks if none has found anything bad. Otherwise all ranks take the bad
  // files out.
  Result<bool> all_sound(const std::vector<Bad>& mine) {
    DIAPAUSE_TRY_ASSIGN(const Gathered<Bad> all,
                        gather_values<Bad>(context_, {}, mine, "a rank's report of damaged files"));
    bool sound = true;
    for (const std::vector<Bad>& of_rank : all) {
      for (const Bad& bad : of_rank) {
        const bool known =
            !bad.file || bad.file->is_global || bad.file->node < version_.nodes.size();
        if (!known)
          return fail(Code::comm, "a rank reports damaged files of a node that is not there");
        sound = false;
        // Nothing is wrong with the file, and another attempt will find it.
        if (is_of_the_moment(bad.code)) return fail(Code::again, bad.why);
        take_out(bad);
      }
    }
    return sound;
  }

  void take_out(const Bad& bad) {
    reasons_.push_back(bad.why);
    damaged_ = true;
    may_be_sound_ = may_be_sound_ || bad.may_be_sound();
    if (context_.rank() == 0) context_.log(Severity::warning, bad.why);
    if (!bad.file && is_placed_at_once_) {
      purpose_ = Purpose::copy;  // nothing is known of the files that the image came from
      return;
    }
    if (!bad.file) {
      not_rebuildable_.insert(bad.rebuilt_rank);
      return;
    }
    const FileRef& file = *bad.file;
    redundancy::Holdings& holdings = file.is_global ? version_.global : version_.nodes[file.node];
    if (file.is_parity) {
      holdings.parities.erase({file.group, file.index});
    } else {
      holdings.images.erase(file.index);
    }
  }

  double greatest_error() const {
    double greatest = 0;
    for (std::size_t rank = 0; rank < plan_.sources.size(); ++rank) {
      if (plan_.sources[rank].kind != SourceKind::global) continue;
      greatest = std::max(greatest, manifest_.ranks[rank].greatest_error);
    }
    return greatest;
  }

  std::vector<std::string> describe_sources() const {
    std::vector<std::string> texts;
    for (const Source& source : plan_.sources) {
      std::string text = redundancy::source_kind_name(source.kind);
      if (source.kind == SourceKind::peer_node)
        text = "peer " + context_.topology.node_names[source.node];
      texts.push_back(std::move(text));
    }
    return texts;
  }

  // Returns whether an image, copy or parity of levels 1 to 3 is not where a checkpoint taken now
  // would put it.
  bool needs_healing() const {
    if (manifest_.has_level(4)) return false;  // the global images keep every promise
    if (!manifest_.has_level(2) && !manifest_.has_level(3)) {
      return std::any_of(plan_.sources.begin(), plan_.sources.end(),
                         [](const Source& source) { return source.kind == SourceKind::peer_node; });
    }
    const std::vector<std::uint32_t>& homes = context_.topology.node_of_rank;
    for (std::uint32_t rank = 0; rank < homes.size(); ++rank) {
      if (plan_.sources[rank].kind != SourceKind::own_node) return true;
      const std::uint32_t partner = manifest_.ranks[rank].partner;
      if (!manifest_.has_level(2)) continue;
      if (partner == format::kNoRank || homes[partner] == homes[rank]) return true;
      if (!version_.nodes[homes[partner]].images.contains(rank)) return true;
    }
    for (std::uint32_t g = 0; g < manifest_.groups.size(); ++g) {
      const format::Group& group = manifest_.groups[g];
      std::set<std::uint32_t> nodes;
      for (std::uint32_t member = 0; member < group.members.size(); ++member) {
        const std::uint32_t rank = group.members[member];
        // A member without a rank sits on the node its number says, if that is still there.
        const std::uint32_t node = rank != format::kNoRank ? homes[rank] : group.nodes[member];
        if (node >= version_.nodes.size() || !nodes.insert(node).second) return true;
        if (!version_.nodes[node].parities.contains({g, member})) return true;
      }
    }
    return damaged_ || lacks_a_manifest();
  }

  // A process that was killed while files were put back may have left a node that has them and does
  // not say so.
  bool lacks_a_manifest() const {
    const std::vector<std::uint32_t>& homes = context_.topology.node_of_rank;
    return std::ranges::any_of(homes, [&](std::uint32_t node) {
      return std::ranges::none_of(kNodeTiers, [&](config::TierKind kind) {
        return version_.published_on[static_cast<std::size_t>(kind)].contains(node);
      });
    });
  }

  // The tier that files are missing from, if no more is wrong: all others lie, intact, where a
  // checkpoint taken now would put them.
  std::optional<config::TierKind> incomplete_in() const {
    if (damaged_ || version_.tier_of.empty() || !(manifest_.has_level(2) || manifest_.has_level(3)))
      return std::nullopt;
    const config::TierKind kind = context_.settings.level(manifest_.deepest_level()).tier;
    const bool is_in_one =
        std::ranges::all_of(version_.tier_of, [&](const auto& one) { return one.second == kind; });
    if (!is_in_one || context_.tiers.find(kind) == nullptr) return std::nullopt;
    const std::vector<std::uint32_t>& homes = context_.topology.node_of_rank;
    if (!redundancy::is_laid_out_alike(manifest_, homes, context_.settings.group_nodes,
                                       context_.settings.parity)) {
      return std::nullopt;
    }
    const std::vector<redundancy::Holdings> whole =
        redundancy::places(manifest_, homes, version_.nodes.size());
    const bool is_part = std::ranges::equal(version_.nodes, whole, redundancy::is_part_of);
    return is_part ? std::optional(kind) : std::nullopt;
  }

  const Context& context_;
  StoredVersion version_;
  Purpose purpose_;
  const format::Manifest manifest_;
  FileCache files_;
  redundancy::RecoveryPlan plan_;
  std::set<FileRef> to_verify_;
  std::vector<Rebuild> rebuilds_;
  std::set<std::uint32_t> not_rebuildable_;
  std::vector<std::string> reasons_;
  std::vector<Phase> phases_;
  bool damaged_ = false;
  bool may_be_sound_ = false;  // a part of it may be sound
  std::optional<store::ImageReader> image_;
  std::optional<store::ImageReader> unchecked_;
  // Images that ranks lack go straight into the program's memory.
  bool is_placed_at_once_ = false;
  std::vector<ImageHead> heads_;  // then one for each rebuild
};

Fetch::Fetch(const Context& context, StoredVersion version, Purpose purpose)
    : fetcher_(std::make_unique<Fetcher>(context, std::move(version), purpose)) {}
Fetch::Fetch(Fetch&&) noexcept = default;
Fetch& Fetch::operator=(Fetch&&) noexcept = default;
Fetch::~Fetch() = default;

Result<FetchedVersion> Fetch::get() { return fetcher_->run(); }

Status Fetch::deliver(store::ImageReader& image, std::span<std::byte* const> targets) {
  return fetcher_->deliver(image, targets);
}

Result<bool> Fetch::was_sound(const Status& mine) { return fetcher_->was_sound(mine); }

}  // namespace diapause::engine
