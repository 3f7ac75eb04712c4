// Level 3: Reed-Solomon parity over each group. Layout: redundancy/layout.hpp.
#include <fmt/format.h>

#include <cstring>

#include "engine/group_exchange.hpp"
#include "engine/work.hpp"
#include "format/checksum.hpp"
#include "redundancy/layout.hpp"
#include "redundancy/reed_solomon.hpp"
#include "store/names.hpp"

namespace diapause::engine {
namespace {

// All rows of a group advance together, piece by piece; a member holds k*m received pieces at a time.
constexpr std::uint64_t kRowPieceBytes = 512 * 1024;

// One member of one group, on the rank that acts for it.
class MemberEncoder {
 public:
  static Result<MemberEncoder> create(const Context& context, Work& work, std::uint32_t group, std::uint32_t member,
                                      MutableBytes parity) {
    const format::Group& g = work.manifest.groups[group];
    const auto n = static_cast<std::uint32_t>(g.members.size());
    DIAPAUSE_TRY_ASSIGN(const redundancy::GroupLayout layout, redundancy::GroupLayout::create(n, g.parity));
    DIAPAUSE_TRY_ASSIGN(redundancy::ReedSolomon code, redundancy::ReedSolomon::create(layout.k(), layout.m()));
    MemberEncoder encoder(context, work, g, member, layout, std::move(code), parity);
    encoder.received_.resize(layout.m() * layout.k());
    for (ByteVector& piece : encoder.received_) piece.resize(kRowPieceBytes);
    encoder.sent_.resize(layout.k());
    for (ByteVector& piece : encoder.sent_) piece.resize(kRowPieceBytes);
    return encoder;
  }

  // Exchanges and encodes the bytes [offset, offset + length) of every chunk.
  Status step(std::uint64_t offset, std::uint64_t length) {
    sends_.clear();
    receives_.clear();
    for (std::uint32_t row = 0; row < layout_.n(); ++row) {
      if (layout_.holds_parity(member_, row)) {
        expect_row(row, offset, length);
      } else {
        send_row(row, offset, length);
      }
    }
    DIAPAUSE_TRY(context_->comm->exchange(sends_, receives_));
    for (std::uint32_t row = 0; row < layout_.n(); ++row) {
      if (layout_.holds_parity(member_, row)) encode_row(row, offset, length);
    }
    return {};
  }

  // A failed read of this member's own image; the messages went on with what there was.
  const Status& failure() const { return failure_; }

 private:
  MemberEncoder(const Context& context, Work& work, const format::Group& group, std::uint32_t member,
                const redundancy::GroupLayout& layout, redundancy::ReedSolomon code, MutableBytes parity)
      : context_(&context),
        work_(&work),
        group_(&group),
        member_(member),
        layout_(layout),
        code_(std::move(code)),
        parity_(parity) {}

  std::uint64_t image_bytes(std::uint32_t member) const {
    const std::uint32_t rank = group_->members[member];
    return rank == format::kNoRank ? 0 : work_->manifest.ranks[rank].image.file_bytes;
  }
  // Pieces behind the end of an image are zeros on all sides and do not travel.
  bool is_empty(std::uint32_t member, std::uint32_t row, std::uint64_t offset) const {
    return layout_.chunk_index(member, row) * group_->chunk_bytes + offset >= image_bytes(member);
  }

  void send_row(std::uint32_t row, std::uint64_t offset, std::uint64_t length) {
    if (is_empty(member_, row, offset)) return;
    const std::uint32_t chunk = layout_.chunk_index(member_, row);
    const MutableBytes room = MutableBytes(sent_[chunk]).first(length);
    auto view = work_->bytes->view(chunk * group_->chunk_bytes + offset, room);
    if (!view && failure_) failure_ = fail(view.error());
    for (std::uint32_t p = layout_.k(); p < layout_.n(); ++p) {
      sends_.push_back(
          {host_of(context_->topology, *group_, layout_.member_at(p, row)), view ? *view : ByteView(room)});
    }
  }

  MutableBytes received(std::uint32_t row, std::uint32_t position, std::uint64_t length) {
    return MutableBytes(received_[layout_.chunk_index(member_, row) * layout_.k() + position]).first(length);
  }

  void expect_row(std::uint32_t row, std::uint64_t offset, std::uint64_t length) {
    for (std::uint32_t position = 0; position < layout_.k(); ++position) {
      const std::uint32_t from = layout_.member_at(position, row);
      const MutableBytes room = received(row, position, length);
      if (is_empty(from, row, offset)) {
        std::memset(room.data(), 0, room.size());
      } else {
        receives_.push_back({host_of(context_->topology, *group_, from), room});
      }
    }
  }

  void encode_row(std::uint32_t row, std::uint64_t offset, std::uint64_t length) {
    std::vector<const std::byte*> data;
    for (std::uint32_t position = 0; position < layout_.k(); ++position) {
      data.push_back(received(row, position, length).data());
    }
    std::byte* const target = parity_.data() + layout_.chunk_index(member_, row) * group_->chunk_bytes + offset;
    code_.encode_one(layout_.position(member_, row) - layout_.k(), data, target, length);
  }

  const Context* context_;
  Work* work_;
  const format::Group* group_;
  std::uint32_t member_;
  redundancy::GroupLayout layout_;
  redundancy::ReedSolomon code_;
  MutableBytes parity_;
  std::vector<ByteVector> received_;  // [parity chunk * k + position]
  std::vector<ByteVector> sent_;      // [chunk]
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

// A member this rank acts for, its slot, and the parity while it is computed: in the slot if that is mapped.
struct Task {
  std::uint32_t group;
  std::uint32_t member;
  format::ImageIndex index;
  std::uint64_t index_offset = 0;
  store::Slot slot;
  sys::AlignedBuffer buffer;
  format::ImageRecord record;

  std::uint64_t parity_bytes() const { return index.regions[0].stored_bytes; }
  MutableBytes parity() const {
    return slot.mapping().empty() ? buffer.bytes().first(parity_bytes())
                                  : slot.mapping().subspan(index.regions[0].offset, parity_bytes());
  }
};

// In a mapped slot the parity lies in its place already and only needs its checksums.
class InPlaceSource : public capture::BlockSource {
 public:
  Result<std::uint64_t> copy(std::size_t, std::uint64_t, MutableBytes to) override { return format::checksum64(to); }
};

Status write_parity(Context& context, Catalogue& catalogue, const Work& work, Task& task) {
  format::ImageHeader identity;
  identity.kind = format::ImageKind::parity;
  identity.version = work.manifest.version;
  identity.owner = task.member;
  identity.part = task.group;
  identity.rank_count = context.rank_count();
  InPlaceSource in_place;
  capture::MemorySource from_buffer({task.parity().data()});
  const bool mapped = !task.slot.mapping().empty();
  auto captured =
      mapped ? capture::capture_to_mapping(in_place, task.index, task.index_offset, identity, task.slot.mapping())
             : capture::capture_to_file(from_buffer, task.index, task.index_offset, identity, task.slot.file());
  if (!captured) return fail(captured.error());
  task.record = {captured->header.file_bytes, captured->header.index_digest};
  return keep(context, catalogue, work, std::move(task.slot), store::parity_name(task.group, task.member));
}

// Cuts the ranks into groups and says what this rank has to do for them.
Result<std::vector<Task>> plan(const Context& context, Work& work) {
  DIAPAUSE_TRY_ASSIGN(work.manifest.groups, redundancy::groups(context.topology.node_of_rank,
                                                               context.settings.group_nodes, context.settings.parity));
  std::vector<Task> tasks;
  for (std::uint32_t g = 0; g < work.manifest.groups.size(); ++g) {
    format::Group& group = work.manifest.groups[g];
    const auto n = static_cast<std::uint32_t>(group.members.size());
    group.parity = context.settings.parity;
    group.parities.resize(n);
    DIAPAUSE_TRY_ASSIGN(const redundancy::GroupLayout layout, redundancy::GroupLayout::create(n, group.parity));
    std::uint64_t largest = 0;
    for (const std::uint32_t rank : group.members) {
      if (rank != format::kNoRank) largest = std::max(largest, work.manifest.ranks[rank].image.file_bytes);
    }
    group.chunk_bytes = layout.chunk_bytes(largest);
    for (std::uint32_t member = 0; member < n; ++member) {
      if (host_of(context.topology, group, member) != context.rank()) continue;
      Task task{g, member, parity_index(layout.m() * group.chunk_bytes), 0, {}, {}, {}};
      DIAPAUSE_TRY_ASSIGN(task.index_offset, format::lay_out(task.index));
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

Status encode(Context& context, Work& work, std::vector<Task>& tasks) {
  // Two members of one group are never on one node, so a rank acts for at most one member of a group; groups go one
  // after the other in the same order everywhere.
  Status result;
  for (Task& task : tasks) {
    const format::Group& group = work.manifest.groups[task.group];
    DIAPAUSE_TRY_ASSIGN(MemberEncoder encoder,
                        MemberEncoder::create(context, work, task.group, task.member, task.parity()));
    for (std::uint64_t offset = 0; offset < group.chunk_bytes; offset += kRowPieceBytes) {
      DIAPAUSE_TRY(encoder.step(offset, std::min(kRowPieceBytes, group.chunk_bytes - offset)));
    }
    if (result) result = encoder.failure();
  }
  return result;
}

// All ranks learn the records of all parities.
Status share_records(Context& context, Work& work, const Status& mine, const std::vector<Task>& tasks) {
  struct Message {
    std::uint32_t group, member;
    format::ImageRecord record;
  };
  std::vector<Message> messages;
  for (const Task& task : tasks) messages.push_back({task.group, task.member, task.record});
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> all,
                      agree_and_gather(context, mine, std::as_bytes(std::span(messages))));
  for (const ByteVector& part : all) {
    for (std::size_t at = 0; at + sizeof(Message) <= part.size(); at += sizeof(Message)) {
      Message message{};
      std::memcpy(&message, part.data() + at, sizeof message);
      work.manifest.groups[message.group].parities[message.member] = message.record;
    }
  }
  return {};
}

}  // namespace

Status encode_parity(Context& context, Catalogue& catalogue, Work& work) {
  DIAPAUSE_TRY_ASSIGN(std::vector<Task> tasks, plan(context, work));
  std::vector<std::uint64_t> sizes;
  for (const Task& task : tasks) sizes.push_back(capture::image_bytes(task.index, task.index_offset));
  DIAPAUSE_TRY_ASSIGN(std::vector<store::Slot> slots, catalogue.acquire(context, work.node_tier, sizes));
  Status mine;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].slot = std::move(slots[i]);
    if (!tasks[i].slot.mapping().empty()) continue;
    auto buffer = sys::AlignedBuffer::allocate(tasks[i].parity_bytes());
    if (!buffer) {
      mine = fail(std::move(buffer.error()));
      break;
    }
    tasks[i].buffer = std::move(*buffer);
  }
  DIAPAUSE_TRY(agree(context, mine));
  mine = encode(context, work, tasks);
  for (Task& task : tasks) {
    if (mine) mine = write_parity(context, catalogue, work, task);
  }
  return share_records(context, work, mine, tasks);
}

}  // namespace diapause::engine
