#include "engine/node/levels/parity.hpp"

#include <fmt/core.h>

#include <cstring>
#include <optional>

#include "engine/job/gather.hpp"
#include "engine/node/levels/group_exchange.hpp"
#include "engine/node/publish.hpp"
#include "format/checksum.hpp"
#include "redundancy/layout.hpp"
#include "redundancy/reed_solomon.hpp"
#include "store/names.hpp"

namespace diapause::engine {
namespace {

// All rows of a group advance together, piece by piece. A member holds at most 2k + m pieces at a
// time.
constexpr std::uint64_t kRowPieceBytes = kMiB;

// Encodes for one member of one group, in the process that acts for it. Member r computes all
// parity chunks of row r, keeps the first one and sends the others on, so that k + m - 1 chunks of
// a row are transferred. If every holder of parity computed its own chunk, it would be k * m.
class MemberEncoder {
 public:
  static Result<MemberEncoder> create(const Context& context, Work& work, std::uint32_t group,
                                      std::uint32_t member, MutableBytes parity) {
    const format::Group& g = work.manifest.groups[group];
    const auto n = static_cast<std::uint32_t>(g.members.size());
    DIAPAUSE_TRY_ASSIGN(const redundancy::GroupLayout layout,
                        redundancy::GroupLayout::create(n, g.parity));
    DIAPAUSE_TRY_ASSIGN(redundancy::ReedSolomon code,
                        redundancy::ReedSolomon::create(layout.k(), layout.m()));
    MemberEncoder encoder(context, work, g, member, layout, std::move(code), parity);
    DIAPAUSE_TRY_ASSIGN(encoder.received_,
                        sys::AlignedBuffer::allocate(layout.k() * kRowPieceBytes));
    DIAPAUSE_TRY_ASSIGN(encoder.computed_,
                        sys::AlignedBuffer::allocate(layout.m() * kRowPieceBytes));
    DIAPAUSE_TRY_ASSIGN(encoder.sent_, sys::AlignedBuffer::allocate(layout.k() * kRowPieceBytes));
    if (parity.empty()) {
      DIAPAUSE_TRY_ASSIGN(encoder.unwanted_,
                          sys::AlignedBuffer::allocate(layout.m() * kRowPieceBytes));
    }
    return encoder;
  }

  // Exchanges and encodes everything. Parities for other members travel with the data of the next
  // piece.
  Status run() {
    for (std::uint64_t offset = 0; offset < group_->chunk_bytes; offset += kRowPieceBytes) {
      DIAPAUSE_TRY(step({offset, std::min(kRowPieceBytes, group_->chunk_bytes - offset)}));
    }
    sends_.clear();
    receives_.clear();
    pass_on_parities();
    return context_->comm->exchange(sends_, receives_);
  }

  // Returns the failed read of this member's own image, if any. The exchange continued with the
  // data there were.
  const Status& failure() const { return failure_; }

 private:
  struct Piece {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };

  MemberEncoder(const Context& context, Work& work, const format::Group& group,
                std::uint32_t member, const redundancy::GroupLayout& layout,
                redundancy::ReedSolomon code, MutableBytes parity)
      : context_(&context),
        work_(&work),
        group_(&group),
        member_(member),
        layout_(layout),
        code_(std::move(code)),
        parity_(parity) {}

  Status step(const Piece& piece) {
    sends_.clear();
    receives_.clear();
    for (std::uint32_t row = 0; row < layout_.n(); ++row) {
      if (!layout_.holds_parity(member_, row)) send_data(row, piece);
    }
    for (std::uint32_t position = 0; position < layout_.k(); ++position)
      expect_data(position, piece);
    pass_on_parities();
    DIAPAUSE_TRY(context_->comm->exchange(sends_, receives_));
    encode(piece);
    previous_ = piece;
    return {};
  }

  std::uint32_t host(std::uint32_t member) const {
    return context_->actor(host_of(context_->topology, *group_, member));
  }
  // Return the member that computes the parities of a row, and the row that a member computes. Both
  // have the same number.
  std::uint32_t encoder_of(std::uint32_t row) const { return layout_.member_at(layout_.k(), row); }
  std::uint32_t own_row() const { return member_; }

  std::uint64_t image_bytes(std::uint32_t member) const {
    const std::uint32_t rank = group_->members[member];
    return rank == format::kNoRank ? 0 : work_->manifest.ranks[rank].image.file_bytes;
  }
  // Pieces behind the end of an image are zeros for all members and are not sent.
  bool is_empty(std::uint32_t member, std::uint32_t row, std::uint64_t offset) const {
    return layout_.chunk_index(member, row) * group_->chunk_bytes + offset >= image_bytes(member);
  }

  static MutableBytes nth(const sys::AlignedBuffer& pieces, std::uint32_t index,
                          std::uint64_t length) {
    return pieces.bytes().subspan(index * kRowPieceBytes, length);
  }
  // Returns where this member keeps its parity of a row.
  MutableBytes kept(std::uint32_t row, const Piece& piece) const {
    if (parity_.empty()) return nth(unwanted_, layout_.chunk_index(member_, row), piece.length);
    return parity_.subspan(layout_.chunk_index(member_, row) * group_->chunk_bytes + piece.offset,
                           piece.length);
  }

  void send_data(std::uint32_t row, const Piece& piece) {
    if (is_empty(member_, row, piece.offset)) return;
    const std::uint32_t chunk = layout_.chunk_index(member_, row);
    const MutableBytes room = nth(sent_, chunk, piece.length);
    auto view = work_->bytes_of(group_->members[member_])
                    .view(chunk * group_->chunk_bytes + piece.offset, room);
    if (!view && failure_) failure_ = fail(view.error());
    sends_.push_back({host(encoder_of(row)), view ? *view : ByteView(room)});
  }

  void expect_data(std::uint32_t position, const Piece& piece) {
    const std::uint32_t from = layout_.member_at(position, own_row());
    const MutableBytes room = nth(received_, position, piece.length);
    if (is_empty(from, own_row(), piece.offset)) {
      std::memset(room.data(), 0, room.size());
    } else {
      receives_.push_back({host(from), room});
    }
  }

  // Sends the parities of the previous piece. Between two members, the data are sent first on both
  // sides.
  void pass_on_parities() {
    if (previous_.length == 0) return;
    for (std::uint32_t j = 1; j < layout_.m(); ++j) {
      sends_.push_back({host(layout_.member_at(layout_.k() + j, own_row())),
                        nth(computed_, j, previous_.length)});
    }
    for (std::uint32_t row = 0; row < layout_.n(); ++row) {
      if (row == own_row() || !layout_.holds_parity(member_, row)) continue;
      receives_.push_back({host(encoder_of(row)), kept(row, previous_)});
    }
  }

  void encode(const Piece& piece) {
    std::vector<const std::byte*> data;
    for (std::uint32_t i = 0; i < layout_.k(); ++i)
      data.push_back(nth(received_, i, piece.length).data());
    std::vector<std::byte*> parities{kept(own_row(), piece).data()};
    for (std::uint32_t j = 1; j < layout_.m(); ++j)
      parities.push_back(nth(computed_, j, piece.length).data());
    code_.encode(data, parities, piece.length);
  }

  const Context* context_;
  Work* work_;
  const format::Group* group_;
  std::uint32_t member_;
  redundancy::GroupLayout layout_;
  redundancy::ReedSolomon code_;
  MutableBytes parity_;
  sys::AlignedBuffer received_;  // the data of this member's row, by position
  sys::AlignedBuffer computed_;  // its parities, by number; the first is computed where it is kept
  sys::AlignedBuffer sent_;      // this member's data by chunk, if they are not in memory
  sys::AlignedBuffer unwanted_;  // its parity, if that is kept already
  Piece previous_;
  std::vector<comm::Send> sends_;
  std::vector<comm::Receive> receives_;
  Status failure_;
};

format::ImageIndex parity_index(std::uint64_t bytes) {
  format::Region region;
  region.name = "parity";
  region.count = bytes;
  region.stored_bytes = bytes;
  return {{region}};
}

// A member that this process acts for, its slot, and the parity while it is computed, which lies in
// the slot if that is mapped.
struct Task {
  std::uint32_t group;
  std::uint32_t member;
  bool is_wanted;  // else the member only helps the others of its group
  format::ImageIndex index;
  std::uint64_t index_offset = 0;
  store::Slot slot;
  sys::AlignedBuffer buffer;
  format::ImageRecord record;
  std::optional<format::ImageRecord> expected;  // the record that the file must match

  std::uint64_t parity_bytes() const { return index.regions[0].stored_bytes; }
  MutableBytes parity() const {
    if (!is_wanted) return {};
    return slot.mapping().empty() ? buffer.bytes().first(parity_bytes())
                                  : slot.mapping().subspan(index.regions[0].offset, parity_bytes());
  }
};

// The source for a mapped slot: the parity is already in its place and only needs its checksums.
class InPlaceSource : public capture::BlockSource {
 public:
  Result<std::uint64_t> copy(std::size_t, std::uint64_t, MutableBytes to) override {
    return format::checksum64(to);
  }
};

Status write_parity(const Context& context, Catalogue& catalogue, const Work& work, Task& task) {
  format::ImageHeader identity;
  identity.kind = format::ImageKind::parity;
  identity.version = work.manifest.version;
  identity.owner = task.member;
  identity.part = task.group;
  identity.rank_count = context.rank_count();
  InPlaceSource in_place;
  capture::MemorySource from_buffer({task.parity().data()});
  const bool mapped = !task.slot.mapping().empty();
  auto captured = mapped ? capture::capture_to_mapping(in_place, task.index, task.index_offset,
                                                       identity, task.slot.mapping())
                         : capture::capture_to_file(from_buffer, task.index, task.index_offset,
                                                    identity, task.slot.file());
  if (!captured) return fail(captured.error());
  task.record = {captured->header.file_bytes, captured->header.index_digest};
  if (task.expected && *task.expected != task.record) {
    return fail(
        Code::corrupt,
        fmt::format("the parity of member {} of group {} is not what it was: images of the group "
                    "have changed since",
                    task.member, task.group));
  }
  return keep(context, catalogue, work, std::move(task.slot),
              store::parity_name(task.group, task.member));
}

Result<Task> make_task(const format::Group& group, std::uint32_t number, std::uint32_t member,
                       bool is_wanted) {
  Task task{number, member, is_wanted, parity_index(group.parity * group.chunk_bytes), 0, {},
            {},     {},     {}};
  DIAPAUSE_TRY_ASSIGN(task.index_offset, format::lay_out(task.index));
  return task;
}

// Divides the ranks into groups and returns the tasks of this process.
Result<std::vector<Task>> plan(const Context& context, Work& work) {
  DIAPAUSE_TRY_ASSIGN(work.manifest.groups,
                      redundancy::groups(context.topology.node_of_rank,
                                         context.settings.group_nodes, context.settings.parity));
  std::vector<Task> tasks;
  for (std::uint32_t g = 0; g < work.manifest.groups.size(); ++g) {
    format::Group& group = work.manifest.groups[g];
    const auto n = static_cast<std::uint32_t>(group.members.size());
    group.parity = context.settings.parity;
    group.parities.resize(n);
    DIAPAUSE_TRY_ASSIGN(const redundancy::GroupLayout layout,
                        redundancy::GroupLayout::create(n, group.parity));
    std::uint64_t largest = 0;
    for (const std::uint32_t rank : group.members) {
      if (rank != format::kNoRank)
        largest = std::max(largest, work.manifest.ranks[rank].image.file_bytes);
    }
    group.chunk_bytes = layout.chunk_bytes(largest);
    for (std::uint32_t member = 0; member < n; ++member) {
      if (!context.topology.acts_for(host_of(context.topology, group, member))) continue;
      DIAPAUSE_TRY_ASSIGN(Task task, make_task(group, g, member, true));
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

// Plans the same for groups that the manifest has and that lack some parities.
Result<std::vector<Task>> plan_missing(
    const Context& context, const Work& work,
    const std::set<std::pair<std::uint32_t, std::uint32_t>>& missing) {
  std::set<std::uint32_t> groups;
  for (const auto& [group, member] : missing) groups.insert(group);
  std::vector<Task> tasks;
  for (const std::uint32_t g : groups) {
    const format::Group& group = work.manifest.groups[g];
    for (std::uint32_t member = 0; member < group.members.size(); ++member) {
      if (!context.topology.acts_for(host_of(context.topology, group, member))) continue;
      DIAPAUSE_TRY_ASSIGN(Task task, make_task(group, g, member, missing.contains({g, member})));
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

Result<std::vector<MemberEncoder>> make_encoders(const Context& context, Work& work,
                                                 const std::vector<Task>& tasks) {
  std::vector<MemberEncoder> encoders;
  for (const Task& task : tasks) {
    DIAPAUSE_TRY_ASSIGN(MemberEncoder encoder, MemberEncoder::create(context, work, task.group,
                                                                     task.member, task.parity()));
    encoders.push_back(std::move(encoder));
  }
  return encoders;
}

// Two members of one group are never on one node, so no process acts for more than one member of a
// group. Groups are encoded one after the other, in the same order everywhere.
Status encode(std::vector<MemberEncoder>& encoders) {
  Status result;
  for (MemberEncoder& encoder : encoders) {
    DIAPAUSE_TRY(encoder.run());
    if (result) result = encoder.failure();
  }
  return result;
}

// Tells all ranks the records of all parities.
Status share_records(const Context& context, Work& work, const Status& mine,
                     const std::vector<Task>& tasks) {
  struct Message {
    std::uint32_t group, member;
    format::ImageRecord record;
  };
  std::vector<Message> messages;
  for (const Task& task : tasks) messages.push_back({task.group, task.member, task.record});
  DIAPAUSE_TRY_ASSIGN(const Gathered<Message> all,
                      gather_values<Message>(context, mine, messages, "what the parities are"));
  for (const std::vector<Message>& of_process : all) {
    for (const Message& message : of_process) {
      work.manifest.groups[message.group].parities[message.member] = message.record;
    }
  }
  return {};
}

// Finds room for the wanted parities. Collective.
Status make_room(const Context& context, Catalogue& catalogue, const Work& work,
                 std::vector<Task>& tasks) {
  std::vector<std::uint64_t> sizes;
  for (const Task& task : tasks) {
    if (task.is_wanted) sizes.push_back(capture::image_bytes(task.index, task.index_offset));
  }
  DIAPAUSE_TRY_ASSIGN(std::vector<store::Slot> slots,
                      catalogue.acquire(context, work.node_tier, sizes));
  Status mine;
  auto slot = slots.begin();
  for (Task& task : tasks) {
    if (!task.is_wanted) continue;
    task.slot = std::move(*slot++);
    if (!task.slot.mapping().empty() || !mine) continue;
    auto buffer = sys::AlignedBuffer::allocate(task.parity_bytes());
    if (!buffer) mine = fail(std::move(buffer.error()));
    if (buffer) task.buffer = std::move(*buffer);
  }
  return mine;
}

// Computes the parities of all groups that have tasks and keeps those that are wanted. `mine` is
// what went wrong here, which is not agreed on yet.
Status run_tasks(const Context& context, Catalogue& catalogue, Work& work, std::vector<Task>& tasks,
                 Status& mine) {
  mine = make_room(context, catalogue, work, tasks);
  std::vector<MemberEncoder> encoders;
  if (mine) {
    auto made = make_encoders(context, work, tasks);
    if (made) encoders = std::move(*made);
    if (!made) mine = fail(std::move(made.error()));
  }
  DIAPAUSE_TRY(agree(context, mine));
  mine = encode(encoders);
  for (Task& task : tasks) {
    if (mine && task.is_wanted) mine = write_parity(context, catalogue, work, task);
  }
  return {};
}

}  // namespace

Status encode_parity(const Context& context, Catalogue& catalogue, Work& work) {
  DIAPAUSE_TRY_ASSIGN(std::vector<Task> tasks, plan(context, work));
  Status mine;
  DIAPAUSE_TRY(run_tasks(context, catalogue, work, tasks, mine));
  return share_records(context, work, mine, tasks);
}

Status complete_parity(const Context& context, Catalogue& catalogue, Work& work,
                       const std::set<std::pair<std::uint32_t, std::uint32_t>>& missing) {
  DIAPAUSE_TRY_ASSIGN(std::vector<Task> tasks, plan_missing(context, work, missing));
  for (Task& task : tasks) task.expected = work.manifest.groups[task.group].parities[task.member];
  Status mine;
  DIAPAUSE_TRY(run_tasks(context, catalogue, work, tasks, mine));
  return agree(context, mine);
}

}  // namespace diapause::engine
