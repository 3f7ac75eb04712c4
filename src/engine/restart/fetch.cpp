// Gets every rank's image of one version: plan, verify what the plan reads, move and rebuild,
// verify again; what turns out to be damaged is taken out and the plan is made anew, until it holds
// or nothing is left.
#include "engine/restart/fetch.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "capture/capture.hpp"
#include "capture/capturer.hpp"
#include "engine/job/gather.hpp"
#include "engine/restart/rebuild.hpp"
#include "format/wire.hpp"
#include "redundancy/layout.hpp"
#include "redundancy/places.hpp"
#include "store/names.hpp"
#include "sys/process.hpp"

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
  ~Fetcher() { give_back_slot(); }

  std::optional<store::Slot> take_slot() { return std::exchange(slot_, std::nullopt); }

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
      give_back_slot();
      files_.clear();
      collect_reads();
      const double start = sys::monotonic_s();
      DIAPAUSE_TRY_ASSIGN(const bool sound, all_sound(verify_reads()));
      const double verified = sys::monotonic_s();
      phases_.push_back(make_phase("verify", start, verified));
      if (!sound) continue;
      DIAPAUSE_TRY_ASSIGN(const bool arrived, all_sound(move()));
      phases_.push_back(
          make_phase(rebuilds_.empty() ? "fetch" : "rebuild", verified, sys::monotonic_s()));
      if (arrived) break;
    }
    const bool lacks_own_image = plan_.sources[context_.rank()].kind != SourceKind::own_node;
    return FetchedVersion{manifest_,
                          std::move(*image_),
                          reading_threads(),
                          greatest_error(),
                          describe_sources(),
                          needs_healing(),
                          incomplete_in(),
                          lacks_own_image,
                          std::move(unchecked_),
                          std::exchange(phases_, {})};
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
    if (source.kind == SourceKind::rebuild) return make_bad({}, rank, why);
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
          want({FileRef::image(rank, source.node), context_.topology.leaders[source.node]});
          break;
        case SourceKind::global:
          want({FileRef::global_image(rank), rank});
          break;
        case SourceKind::rebuild: {
          rebuilds_.push_back(plan_rebuild(context_.topology, version_, rank));
          for (const ServedFile& served : rebuilds_.back().files()) want(served);
          break;
        }
        case SourceKind::none:
          break;
      }
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
    // are checked here, because damage to one of several files could not be told from the result.
    if (purpose_ == Purpose::place && !is_rebuilt_from(file)) return {};
    if (!is_own_image(file) || purpose_ == Purpose::copy || purpose_ == Purpose::place) {
      return reader.verify(reading_threads());
    }
    if (may_stay_unchecked()) return {};
    return reader.verify_through_cache([] { return true; });
  }

  bool is_rebuilt_from(const FileRef& file) const {
    return std::any_of(rebuilds_.begin(), rebuilds_.end(), [&](const Rebuild& rebuild) {
      const std::vector<ServedFile> files = rebuild.files();
      return std::any_of(files.begin(), files.end(),
                         [&](const ServedFile& served) { return served.file == file; });
    });
  }

  // Files that other images are rebuilt from must be verified before.
  bool may_stay_unchecked() const {
    return purpose_ == Purpose::map_unchecked && rebuilds_.empty();
  }

  bool is_own_image(const FileRef& file) const {
    const std::uint32_t rank = context_.rank();
    return file == FileRef::image(rank, context_.topology.node) ||
           file == FileRef::global_image(rank);
  }

  unsigned reading_threads() const {
    const auto& nodes = context_.topology.node_of_rank;
    const auto ranks_here =
        static_cast<unsigned>(std::count(nodes.begin(), nodes.end(), context_.topology.node));
    return capture::copying_threads(context_.settings.capture, ranks_here);
  }

  // Brings this rank's image here, and serves those of others.
  std::vector<Bad> move() {
    std::vector<Bad> bad;
    for (std::uint32_t rank = 0; rank < plan_.sources.size(); ++rank) {
      const Source& source = plan_.sources[rank];
      if (source.kind != SourceKind::peer_node) continue;
      const std::uint32_t server = context_.topology.leaders[source.node];
      if (server != context_.rank() && rank != context_.rank()) continue;
      const FileRef file = FileRef::image(rank, source.node);
      Status moved = receive_or_serve(file, rank, server);
      if (!moved) bad.push_back(make_bad(file, 0, moved.error()));
    }
    for (const Rebuild& rebuild : rebuilds_) {
      const bool is_target = rebuild.target == context_.rank();
      auto room = is_target ? make_room(room_for(manifest_, rebuild)) : Room{};
      Status done = execute_rebuild(context_, manifest_, rebuild, files_,
                                    room ? room->bytes : MutableBytes{});
      if (!room) done = fail(room.error());
      if (done && is_target) done = take_over(std::move(*room), "the rebuilt image");
      if (!done && is_target) bad.push_back(make_bad({}, rebuild.target, done.error()));
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

  // Memory for this rank's image: of its own, or that of `slot_`.
  struct Room {
    MutableBytes bytes;
    sys::AlignedBuffer buffer;
  };

  // Where the image's file is missing, it is made in its place, so that it need not be copied
  // there.
  Result<Room> make_room(std::uint64_t bytes) {
    const auto kind = incomplete_in();
    if (kind == config::TierKind::memory) {
      auto slot = context_.tiers.find(*kind)->acquire(bytes, context_.rank());
      if (slot) slot_ = std::move(*slot);
    }
    if (slot_) return Room{slot_->mapping(), {}};
    DIAPAUSE_TRY_ASSIGN(sys::AlignedBuffer buffer,
                        sys::AlignedBuffer::allocate(std::max<std::uint64_t>(bytes, 1)));
    const MutableBytes own = buffer.bytes();
    return Room{own, std::move(buffer)};
  }

  void give_back_slot() {
    std::optional<store::Slot> slot = take_slot();
    store::Tier* const tier = context_.tiers.find(config::TierKind::memory);
    if (slot && tier != nullptr) tier->give_back(std::move(*slot));
  }

  Status take_over(Room room, const std::string& name) {
    const std::uint64_t size = manifest_.ranks[context_.rank()].image.file_bytes;
    std::unique_ptr<ByteSource> bytes = capture::memory_bytes(room.bytes, size);
    if (!slot_) bytes = std::make_unique<OwnedBytes>(std::move(room.buffer), size);
    DIAPAUSE_TRY_ASSIGN(store::ImageReader reader,
                        store::ImageReader::open(
                            std::move(bytes), fmt::format("{} of rank {}", name, context_.rank()),
                            store::expected_image(manifest_, context_.rank())));
    if (purpose_ != Purpose::place) DIAPAUSE_TRY(reader.verify(reading_threads()));
    image_ = std::move(reader);
    return {};
  }

  Status receive_or_serve(const FileRef& file, std::uint32_t target, std::uint32_t server) {
    const std::uint64_t size = manifest_.ranks[target].image.file_bytes;
    const bool serves = server == context_.rank();
    const bool receives = target == context_.rank();
    Status result;
    store::ImageReader* reader = nullptr;
    if (serves) {
      auto opened = files_.open(file);
      if (opened) {
        reader = *opened;
      } else {
        result = fail(opened.error());
      }
    }
    Room target_room;
    if (receives) {
      auto made = make_room(size);
      // If there is no memory, the messages must still be received, into a piece that is thrown
      // away.
      if (!made) result = fail(made.error());
      if (made) target_room = std::move(*made);
    }
    const MutableBytes whole = target_room.bytes;
    ByteVector scratch(kRebuildPieceBytes);
    for (std::uint64_t offset = 0; offset < size; offset += kRebuildPieceBytes) {
      const std::uint64_t length = std::min(kRebuildPieceBytes, size - offset);
      const MutableBytes room =
          whole.empty() ? MutableBytes(scratch).first(length) : whole.subspan(offset, length);
      ByteView outgoing = MutableBytes(scratch).first(length);
      if (reader != nullptr) {
        auto view = reader->bytes().view(offset, MutableBytes(scratch).first(length));
        if (view) outgoing = *view;
        if (!view && result) result = fail(view.error());
      }
      if (serves && receives) {
        std::memcpy(room.data(), outgoing.data(), length);
      } else if (serves) {
        const comm::Send send{target, outgoing};
        DIAPAUSE_TRY(context_.comm->exchange({&send, 1}, {}));
      } else {
        const comm::Receive receive{server, room};
        DIAPAUSE_TRY(context_.comm->exchange({}, {&receive, 1}));
      }
    }
    if (receives && result) return take_over(std::move(target_room), "the image");
    return result;
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
  std::optional<store::Slot> slot_;  // the slot in which `image_` lies
};

Fetch::Fetch(const Context& context, StoredVersion version, Purpose purpose)
    : fetcher_(std::make_unique<Fetcher>(context, std::move(version), purpose)) {}
Fetch::Fetch(Fetch&&) noexcept = default;
Fetch& Fetch::operator=(Fetch&&) noexcept = default;
Fetch::~Fetch() = default;

Result<FetchedVersion> Fetch::get() { return fetcher_->run(); }

std::optional<store::Slot> Fetch::take_slot() { return fetcher_->take_slot(); }

Result<bool> Fetch::was_sound(const Status& mine) { return fetcher_->was_sound(mine); }

}  // namespace diapause::engine
