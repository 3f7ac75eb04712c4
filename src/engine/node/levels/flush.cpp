#include "engine/node/levels/flush.hpp"

#include <map>

#include "engine/job/gather.hpp"
#include "engine/node/publish.hpp"
#include "redundancy/shared_files.hpp"
#include "store/names.hpp"
#include "sys/process.hpp"

namespace diapause::engine {
namespace {

constexpr config::TierKind kGlobal = config::TierKind::global;

// One file of the version.
struct GlobalFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint32_t owner = 0;  // the process that makes it
  std::string spare_name;   // its name while it is written
  store::Slot slot;         // open at the owner only
};

class Flush {
 public:
  Flush(const Context& context, Catalogue& catalogue, format::Manifest& manifest,
        const Outgoing& outgoing)
      : context_(context),
        catalogue_(catalogue),
        manifest_(manifest),
        images_(outgoing.images),
        shrinks_(outgoing.shrinks) {}

  // Every step ends in an agreement.
  Result<GlobalTimes> run() {
    DIAPAUSE_TRY_ASSIGN(tier_, context_.tiers.get(kGlobal));
    DIAPAUSE_TRY(learn_sizes());
    Status done = plan();
    if (done) done = make_files();
    if (done && shared()) done = share_names();
    if (done) done = write();
    if (done) done = agree(context_, settle());
    times_.published_from_s = sys::monotonic_s();
    if (done) done = publish();
    if (done) return std::move(times_);
    for_own_files([&](GlobalFile& file) {
      if (file.slot.is_open() && !file.slot.is_settled()) tier_->give_back(std::move(file.slot));
    });
    catalogue_.discard(context_, manifest_.version, kGlobal);
    return fail(std::move(done.error()));
  }

 private:
  struct Size {
    std::uint32_t rank;
    std::uint32_t reserved;  // makes every byte of the message defined
    std::uint64_t bytes;
  };

  bool is_written(const OutgoingImage& image) const {
    return image.source->slot() != nullptr && !shared();
  }
  bool shared() const {
    return context_.settings.global_files.kind != config::FileCount::Kind::per_rank;
  }

  // All ranks learn who writes which image and how large it is. The version's directory is made,
  // too.
  Status learn_sizes() {
    Status made;
    if (context_.acts_for(kGlobal)) made = tier_->make_version(manifest_.version);
    std::vector<Size> mine;
    for (const OutgoingImage& image : images_)
      mine.push_back({image.source->rank(), 0, image.source->bytes()});
    DIAPAUSE_TRY_ASSIGN(const Gathered<Size> all,
                        gather_values<Size>(context_, made, mine, "the sizes of images"));
    sizes_.resize(manifest_.ranks.size());
    writers_.resize(sizes_.size());
    for (std::uint32_t process = 0; process < all.size(); ++process) {
      for (const Size& size : all[process]) {
        if (size.rank >= sizes_.size())
          return fail(Code::comm, "the size of an image came from no rank");
        sizes_[size.rank] = size.bytes;
        writers_[size.rank] = process;
      }
    }
    return {};
  }

  std::vector<std::uint32_t> file_of_rank() const {
    const auto ranks = static_cast<std::uint32_t>(sizes_.size());
    const config::FileCount& files = context_.settings.global_files;
    if (files.kind == config::FileCount::Kind::automatic) return context_.topology.node_of_rank;
    return redundancy::spread_over_files(ranks, shared() ? files.count : ranks);
  }

  // Plans the files. All ranks make the same plan, from the same sizes.
  Status plan() {
    const std::vector<std::uint32_t> file_of = file_of_rank();
    DIAPAUSE_TRY_ASSIGN(layout_, redundancy::lay_out_files(sizes_, file_of));
    files_.resize(layout_.file_bytes.size());
    for (std::uint32_t rank = static_cast<std::uint32_t>(file_of.size()); rank-- > 0;) {
      const std::uint32_t number = file_of[rank];
      files_[number].name = shared() ? store::shared_name(number) : store::image_name(rank);
      files_[number].bytes = layout_.file_bytes[number];
      files_[number].owner = writers_[rank];  // ends as the process of the lowest rank
    }
    return {};
  }

  Status make_files() {
    for (const OutgoingImage& image : images_) {
      if (is_written(image))
        files_[layout_.places[image.source->rank()].file].slot = std::move(*image.source->slot());
    }
    std::vector<std::uint64_t> sizes;
    for_own_files([&](GlobalFile& file) {
      if (!file.slot.is_open()) sizes.push_back(file.bytes);
    });
    const store::SlotUse use = shrinks_ ? store::SlotUse::shrinking : store::SlotUse::other;
    DIAPAUSE_TRY_ASSIGN(std::vector<store::Slot> slots,
                        catalogue_.acquire(context_, kGlobal, sizes, use));
    std::size_t next = 0;
    for_own_files([&](GlobalFile& file) {
      if (!file.slot.is_open()) file.slot = std::move(slots[next++]);
      file.spare_name = file.slot.name();
    });
    return {};
  }

  // Tells the processes that write into a file its present name.
  Status share_names() {
    std::vector<std::string> mine;
    for_own_files([&](GlobalFile& file) { mine.push_back(file.spare_name); });
    DIAPAUSE_TRY_ASSIGN(const Gathered<std::string> all,
                        gather_values<std::string>(context_, {}, mine, "the names of files"));
    std::vector<std::size_t> read(all.size());
    for (GlobalFile& file : files_) {
      std::size_t& next = read[file.owner];
      if (next == all[file.owner].size())
        return fail(Code::comm, "the names of files did not arrive whole");
      file.spare_name = all[file.owner][next++];
    }
    return agree(context_, open_files());
  }

  // Opens the files of other processes into which this process writes.
  Status open_files() {
    for (const OutgoingImage& image : images_) {
      const std::uint32_t number = layout_.places[image.source->rank()].file;
      if (files_[number].owner == context_.comm->rank() || opened_.contains(number)) continue;
      DIAPAUSE_TRY_ASSIGN(sys::File file, tier_->open_spare(files_[number].spare_name));
      opened_.emplace(number, std::move(file));
    }
    return {};
  }

  // Writes the images. All processes learn the result for every image.
  Status write() {
    std::vector<GlobalFacts> mine;
    const Status written = write_images(mine);
    DIAPAUSE_TRY_ASSIGN(
        const Gathered<GlobalFacts> all,
        gather_values<GlobalFacts>(context_, written, mine, "a description of images"));
    times_.encode_s.resize(manifest_.ranks.size());
    for (const std::vector<GlobalFacts>& of_process : all) {
      for (const GlobalFacts& facts : of_process) DIAPAUSE_TRY(take(facts));
    }
    manifest_.lossy_in_a_row = manifest_.greatest_error() > 0 ? catalogue_.lossy_in_a_row() + 1 : 0;
    return {};
  }

  Status take(const GlobalFacts& facts) {
    DIAPAUSE_TRY(put_image(manifest_, facts.image));
    format::RankRecord& record = manifest_.ranks[facts.image.rank];
    record.encoded = facts.encoded;
    record.greatest_error = facts.greatest_error;
    times_.encode_s[facts.image.rank] = facts.encode_s;
    return {};
  }

  Status write_images(std::vector<GlobalFacts>& facts) {
    for (const OutgoingImage& image : images_) {
      if (is_written(image)) {
        facts.push_back({image.source->facts(), {}, 0, image.plan_s});
        continue;
      }
      const auto [number, offset] = layout_.places[image.source->rank()];
      const auto other = opened_.find(number);
      const sys::File& file = other != opened_.end() ? other->second : files_[number].slot.file();
      DIAPAUSE_TRY_ASSIGN(const GlobalFacts written, image.source->write({{file, offset}, number}));
      facts.push_back(written);
      facts.back().encode_s += image.plan_s;
    }
    // Only a sync by this process tells whether its own writes have reached the disk.
    for (const auto& [number, file] : opened_) DIAPAUSE_TRY(file.sync());
    return {};
  }

  Status settle() {
    Status result;
    for_own_files([&](GlobalFile& file) {
      catalogue_.tell_of_slow_writes(context_, *tier_, file.slot.file());
      if (result && shrinks_) result = file.slot.trim(end_of(file));
      if (result) result = tier_->settle(file.slot, manifest_.version, file.name);
    });
    return result;
  }

  // Returns where the last image of a file ends.
  std::uint64_t end_of(const GlobalFile& file) const {
    std::uint64_t end = 0;
    for (std::size_t rank = 0; rank < manifest_.ranks.size(); ++rank) {
      const auto [number, offset] = layout_.places[rank];
      if (&files_[number] == &file)
        end = std::max(end, offset + manifest_.ranks[rank].in_global().file_bytes);
    }
    return round_up(end, kPageBytes);
  }

  Status publish() {
    format::Manifest deeper = manifest_;
    deeper.levels |= 1u << 4;
    for (std::size_t rank = 0; shared() && rank < deeper.ranks.size(); ++rank) {
      deeper.ranks[rank].shared_file = layout_.places[rank].file;
      deeper.ranks[rank].shared_offset = layout_.places[rank].offset;
    }
    Status mine;
    if (context_.acts_for(kGlobal)) {
      mine = tier_->sync_version(deeper.version);
      if (mine) mine = tier_->publish(deeper);
    }
    DIAPAUSE_TRY(agree(context_, mine));
    manifest_ = std::move(deeper);
    catalogue_.add(manifest_, kGlobal);
    return {};
  }

  template <class Visit>
  void for_own_files(Visit visit) {
    for (GlobalFile& file : files_) {
      if (file.owner == context_.comm->rank()) visit(file);
    }
  }

  const Context& context_;
  Catalogue& catalogue_;
  format::Manifest& manifest_;
  std::span<const OutgoingImage> images_;
  const bool shrinks_;
  store::Tier* tier_ = nullptr;
  std::vector<std::uint64_t> sizes_;    // by rank
  std::vector<std::uint32_t> writers_;  // by rank
  redundancy::SharedLayout layout_;
  std::vector<GlobalFile> files_;
  std::map<std::uint32_t, sys::File> opened_;
  GlobalTimes times_;
};

}  // namespace

Result<GlobalTimes> write_to_global(const Context& context, Catalogue& catalogue,
                                    format::Manifest& manifest, const Outgoing& outgoing) {
  return Flush(context, catalogue, manifest, outgoing).run();
}

}  // namespace diapause::engine
