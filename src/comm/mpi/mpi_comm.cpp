#include "comm/mpi/mpi_comm.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <string>
#include <thread>
#include <utility>

#include "comm/meeting_place.hpp"
#include "comm/mpi/mpi_error.hpp"
#include "comm/mpi/mpi_file_writer.hpp"
#include "comm/mpi/node_memory.hpp"

namespace diapause::comm {
namespace {

bool mpi_is_running() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  if (initialized != 0) MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

class MpiComm : public Comm {
 public:
  MpiComm(MPI_Comm comm, Waiting waiting, std::shared_ptr<Relay> relay)
      : comm_(comm), waiting_(waiting), relay_(std::move(relay)) {}
  // After MPI_Finalize the communicator does not exist any more.
  ~MpiComm() override {
    if (mpi_is_running()) MPI_Comm_free(&comm_);
  }

  Status start() {
    DIAPAUSE_TRY(
        check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
    int rank = 0;
    int size = 0;
    DIAPAUSE_TRY(check(MPI_Comm_rank(comm_, &rank), "MPI_Comm_rank"));
    DIAPAUSE_TRY(check(MPI_Comm_size(comm_, &size), "MPI_Comm_size"));
    rank_ = static_cast<std::uint32_t>(rank);
    size_ = static_cast<std::uint32_t>(size);
    MPI_Comm node = MPI_COMM_NULL;
    DIAPAUSE_TRY(check(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node),
                       "MPI_Comm_split_type"));
    Status met = meet_node(node);
    MPI_Comm_free(&node);
    return met;
  }

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t size() const override { return size_; }
  std::uint32_t node_leader() const override { return node_leader_; }

  bool is_concurrent() const override {
    int provided = MPI_THREAD_SINGLE;
    return MPI_Query_thread(&provided) == MPI_SUCCESS && provided == MPI_THREAD_MULTIPLE;
  }

  Result<std::unique_ptr<Comm>> split(const std::optional<Part>& part) override {
    MPI_Comm chosen = MPI_COMM_NULL;
    const int place = part ? static_cast<int>(part->place) : 0;
    DIAPAUSE_TRY(
        check(MPI_Comm_split(comm_, part ? 0 : MPI_UNDEFINED, place, &chosen), "MPI_Comm_split"));
    if (!part) return std::unique_ptr<Comm>();
    auto comm = std::make_unique<MpiComm>(chosen, part->waiting, part->relay);
    DIAPAUSE_TRY(comm->start());
    return std::unique_ptr<Comm>(std::move(comm));
  }

  void while_waiting(std::function<void()> meanwhile) override {
    if (leaders_) leaders_->while_waiting(meanwhile);
    meanwhile_ = std::move(meanwhile);
  }

  Status barrier() override {
    if (place_) return meet({}, 0);
    return complete("MPI_Ibarrier",
                    [&](MPI_Request* request) { return MPI_Ibarrier(comm_, request); });
  }

  Status broadcast(MutableBytes data, std::uint32_t root) override {
    if (place_ && root == 0 && data.size() <= MeetingPlace::kMostBytes) return announce(data);
    while (!data.empty()) {
      const std::size_t length = std::min<std::size_t>(data.size(), INT_MAX);
      DIAPAUSE_TRY(broadcast_piece(data.data(), static_cast<int>(length), static_cast<int>(root)));
      data = data.subspan(length);
    }
    return {};
  }

  Result<std::vector<ByteVector>> all_gather(ByteView mine) override;

  Status all_min(std::span<std::uint64_t> values) override {
    if (!place_ || values.size() > MeetingPlace::kMostValues) return reduce(values);
    DIAPAUSE_TRY(meet(std::as_bytes(values), values.size()));
    std::ranges::copy(place_->result(values.size()), values.begin());
    return {};
  }

  Status exchange(std::span<const Send> sends, std::span<const Receive> receives) override {
    std::uint64_t bytes = 0;
    for (const Send& send : sends) bytes += send.data.size();
    for (const Receive& receive : receives) bytes += receive.data.size();
    std::optional<Status> posted;
    DIAPAUSE_TRY(until(bytes, [&] {
      if (!posted) posted = post(sends, receives);
      return are_done(requests_);
    }));
    return *posted;
  }

  std::unique_ptr<FileWriter> file_writer() const override { return make_mpi_file_writer(comm_); }

 private:
  static constexpr int kTag = 1;

  // Starts all transfers and fills requests_.
  Status post(std::span<const Send> sends, std::span<const Receive> receives) {
    requests_.assign(sends.size() + receives.size(), MPI_REQUEST_NULL);
    std::size_t next = 0;
    for (const Receive& receive : receives) {
      DIAPAUSE_TRY(
          check(MPI_Irecv(receive.data.data(), static_cast<int>(receive.data.size()), MPI_BYTE,
                          static_cast<int>(receive.peer), kTag, comm_, &requests_[next++]),
                "MPI_Irecv"));
    }
    for (const Send& send : sends) {
      DIAPAUSE_TRY(check(MPI_Isend(send.data.data(), static_cast<int>(send.data.size()), MPI_BYTE,
                                   static_cast<int>(send.peer), kTag, comm_, &requests_[next++]),
                         "MPI_Isend"));
    }
    return {};
  }

  static Result<bool> are_done(std::span<MPI_Request> requests) {
    int done = 0;
    const auto count = static_cast<int>(requests.size());
    DIAPAUSE_TRY(
        check(MPI_Testall(count, requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall"));
    return done != 0;
  }

  // Calls `step`, which moves `bytes` bytes, until it returns true or fails; with a relay, in the
  // relay's thread. No MPI call here blocks: most implementations keep a processor busy in a
  // blocking call for as long as the slowest rank takes.
  template <class Step>
  Status until(std::uint64_t bytes, Step step) {
    Status status;
    const auto is_over = [&] {
      const Result<bool> done = step();
      if (!done) status = fail(done.error());
      return !done || *done;
    };
    if (relay_) {
      relay_->carry_out(is_over);
      return status;
    }
    // Where ranks share a processor, one that keeps it busy keeps another one from what it waits
    // for.
    const Waiting waiting = crowd_ > 1 ? Waiting::patient : waiting_;
    const auto begin = std::chrono::steady_clock::now();
    while (!is_over()) {
      if (meanwhile_) meanwhile_();
      const Waited waited = std::chrono::steady_clock::now() - begin;
      const Waited pause = pause_after(waited, waiting, bytes);
      if (pause > Waited::zero()) {
        std::this_thread::sleep_for(pause);
      } else {
        look_again(waited);
      }
    }
    return status;
  }

  // Is called between two looks of a wait that does not sleep.
  void look_again(Waited waited) const {
    if (crowd_ > 1 || gives_way_after(waited)) std::this_thread::yield();
  }

  // Starts one non-blocking MPI call and completes it.
  template <class Start>
  Status complete(const char* call, Start start) {
    MPI_Request request = MPI_REQUEST_NULL;
    bool is_started = false;
    return until(0, [&]() -> Result<bool> {
      if (!std::exchange(is_started, true)) DIAPAUSE_TRY(check(start(&request), call));
      return are_done({&request, 1});
    });
  }

  Status broadcast_piece(void* data, int length, int root) {
    return complete("MPI_Ibcast", [&](MPI_Request* request) {
      return MPI_Ibcast(data, length, MPI_BYTE, root, comm_, request);
    });
  }

  Status reduce(std::span<std::uint64_t> values) {
    return complete("MPI_Iallreduce", [&](MPI_Request* request) {
      return MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                            MPI_UINT64_T, MPI_MIN, comm_, request);
    });
  }

  // ---- through the memory of the node (meeting_place.hpp), where it is shared
  Status meet_node(MPI_Comm node);
  Status meet(ByteView mine, std::size_t values);
  Status announce(MutableBytes data);
  Result<std::vector<ByteVector>> gather_on_node(ByteView mine, bool& is_too_long);
  template <class IsSo>
  Status await(MeetingPlace::For what, IsSo is_so);
  Status make_progress();

  Status gather_lengths(std::uint64_t mine, std::vector<std::uint64_t>& lengths) {
    return complete("MPI_Iallgather", [&](MPI_Request* request) {
      return MPI_Iallgather(&mine, 1, MPI_UINT64_T, lengths.data(), 1, MPI_UINT64_T, comm_,
                            request);
    });
  }

  Status gather_bytes(ByteView mine, ByteVector& all, const std::vector<int>& counts,
                      const std::vector<int>& offsets) {
    const auto length = static_cast<int>(mine.size());
    return complete("MPI_Iallgatherv", [&](MPI_Request* request) {
      return MPI_Iallgatherv(mine.data(), length, MPI_BYTE, all.data(), counts.data(),
                             offsets.data(), MPI_BYTE, comm_, request);
    });
  }

  MPI_Comm comm_;
  const Waiting waiting_;
  const std::shared_ptr<Relay> relay_;
  std::function<void()> meanwhile_;
  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 1;
  std::uint32_t node_leader_ = 0;
  std::vector<MPI_Request> requests_;
  std::optional<sys::SharedMemory> memory_;
  std::optional<MeetingPlace> place_;  // place in memory_
  unsigned crowd_ = 1;                 // ranks of the node for each of its processors
  std::unique_ptr<MpiComm> leaders_;   // present on the first ranks of several nodes
  bool is_one_node_ = true;
};

// Finds the node's first rank, and memory that the node shares. `node` has the ranks that can share
// memory, in their order. Collective.
Status MpiComm::meet_node(MPI_Comm node) {
  int leader = static_cast<int>(rank_);
  DIAPAUSE_TRY(check(MPI_Bcast(&leader, 1, MPI_INT, 0, node), "MPI_Bcast"));
  node_leader_ = static_cast<std::uint32_t>(leader);
  // Where calls wait patiently or through a relay, there is one process of each node.
  if (waiting_ == Waiting::patient || relay_) return {};
  DIAPAUSE_TRY_ASSIGN(NodeMemory shared, share_node_memory(comm_, node, MeetingPlace::bytes));
  if (!shared.memory) return {};
  memory_.emplace(std::move(*shared.memory));
  place_.emplace(memory_->bytes().data(), shared.place, shared.ranks);
  DIAPAUSE_TRY_ASSIGN(const unsigned processors, processors_of(node));
  crowd_ = (shared.ranks + processors - 1) / processors;
  is_one_node_ = shared.ranks == size_;
  if (is_one_node_) return {};
  MPI_Comm leaders = MPI_COMM_NULL;
  const int color = shared.place == 0 ? 0 : MPI_UNDEFINED;
  DIAPAUSE_TRY(
      check(MPI_Comm_split(comm_, color, static_cast<int>(rank_), &leaders), "MPI_Comm_split"));
  if (leaders == MPI_COMM_NULL) return {};
  leaders_ = std::make_unique<MpiComm>(leaders, waiting_, nullptr);
  return check(MPI_Comm_set_errhandler(leaders, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

// Lets MPI go on with messages of the program, which may need it on this rank before another rank
// can come here.
Status MpiComm::make_progress() {
  if (meanwhile_) meanwhile_();
  int is_there = 0;
  return check(MPI_Iprobe(MPI_ANY_SOURCE, kTag, comm_, &is_there, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

template <class IsSo>
Status MpiComm::await(MeetingPlace::For what, IsSo is_so) {
  constexpr unsigned kLooksBetween = 16;
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned looks = 1;; ++looks) {
    const std::uint32_t seen = place_->word(what);
    if (is_so()) return {};
    const Waited waited = std::chrono::steady_clock::now() - begin;
    const Waited nap = meanwhile_ ? pause_after(waited, waiting_) : nap_after(waited, crowd_);
    if (nap > Waited::zero()) {
      place_->sleep(what, seen, std::chrono::duration<double>(nap).count());
    } else {
      look_again(waited);
    }
    if (nap > Waited::zero() || looks % kLooksBetween == 0) DIAPAUSE_TRY(make_progress());
  }
}

// Meets the other ranks. All of them have the least of their first values afterwards.
Status MpiComm::meet(ByteView mine, std::size_t values) {
  const bool is_last = place_->arrive(mine, values);
  if (is_one_node_ && is_last) place_->release(true);
  if (leaders_) {
    DIAPAUSE_TRY(await(MeetingPlace::For::all_here, [this] { return place_->are_all_here(); }));
    Status reduced = values > 0 ? leaders_->reduce(place_->result(values)) : leaders_->barrier();
    place_->release(reduced.has_value());
    return reduced;
  }
  DIAPAUSE_TRY(await(MeetingPlace::For::end, [this] { return place_->is_over(); }));
  return place_->has_succeeded()
             ? Status()
             : fail(Code::comm, "the first rank of this node could not reach others");
}

// Passes what rank 0 has to all ranks. Rank 0 is the first of its node.
Status MpiComm::announce(MutableBytes data) {
  if (place_->needs_meeting()) DIAPAUSE_TRY(meet({}, 0));
  if (leaders_) DIAPAUSE_TRY(leaders_->broadcast(data, 0));
  if (place_->place() == 0) {
    place_->announce(data);
    return {};
  }
  return await(MeetingPlace::For::announcement, [&] { return place_->hear(data); });
}

// Gathers short messages on one node.
Result<std::vector<ByteVector>> MpiComm::gather_on_node(ByteView mine, bool& is_too_long) {
  DIAPAUSE_TRY(meet(mine, 0));
  std::vector<ByteVector> parts(size_);
  for (std::uint32_t r = 0; r < size_; ++r) {
    const std::optional<ByteView> left = place_->left_by(r);
    is_too_long = is_too_long || !left;
    if (left) parts[r].assign(left->begin(), left->end());
  }
  return parts;
}

Result<std::vector<ByteVector>> MpiComm::all_gather(ByteView mine) {
  if (place_ && is_one_node_) {
    bool is_too_long = false;
    DIAPAUSE_TRY_ASSIGN(std::vector<ByteVector> all, gather_on_node(mine, is_too_long));
    if (!is_too_long) return all;
  }
  std::vector<std::uint64_t> lengths(size_);
  DIAPAUSE_TRY(gather_lengths(mine.size(), lengths));
  std::vector<int> counts(size_);
  std::vector<int> offsets(size_);
  std::uint64_t total = 0;
  for (std::uint32_t r = 0; r < size_; ++r) {
    if (total + lengths[r] > INT_MAX) return fail(Code::comm, "a gathered message exceeds 2 GiB");
    counts[r] = static_cast<int>(lengths[r]);
    offsets[r] = static_cast<int>(total);
    total += lengths[r];
  }
  ByteVector all(total);
  DIAPAUSE_TRY(gather_bytes(mine, all, counts, offsets));
  std::vector<ByteVector> parts(size_);
  for (std::uint32_t r = 0; r < size_; ++r) {
    parts[r].assign(all.begin() + offsets[r], all.begin() + offsets[r] + counts[r]);
  }
  return parts;
}

}  // namespace

Result<std::unique_ptr<Comm>> make_mpi_comm(MPI_Comm parent) {
  if (!mpi_is_running()) {
    return fail(Code::comm,
                "MPI is not initialised, or finalised already: open instances between MPI_Init and "
                "MPI_Finalize");
  }
  if (parent == MPI_COMM_NULL) return fail(Code::argument, "the communicator is MPI_COMM_NULL");
  int has_remote_group = 0;
  DIAPAUSE_TRY(check(MPI_Comm_test_inter(parent, &has_remote_group), "MPI_Comm_test_inter"));
  if (has_remote_group != 0) {
    return fail(Code::argument,
                "the communicator is an intercommunicator: open the instance on one that has all "
                "ranks of the job in "
                "one group (MPI_Intercomm_merge)");
  }
  MPI_Comm duplicate = MPI_COMM_NULL;
  DIAPAUSE_TRY(check(MPI_Comm_dup(parent, &duplicate), "MPI_Comm_dup"));
  auto comm = std::make_unique<MpiComm>(duplicate, Waiting::alert, nullptr);
  DIAPAUSE_TRY(comm->start());
  return std::unique_ptr<Comm>(std::move(comm));
}

Result<std::shared_ptr<const MPI_Comm>> make_program_comm(MPI_Comm parent, Role role) {
  int rank = 0;
  DIAPAUSE_TRY(check(MPI_Comm_rank(parent, &rank), "MPI_Comm_rank"));
  const std::shared_ptr<MPI_Comm> comm(new MPI_Comm(MPI_COMM_NULL), [](MPI_Comm* owned) {
    if (*owned != MPI_COMM_NULL && mpi_is_running()) MPI_Comm_free(owned);
    delete owned;
  });
  const int color = role == Role::computes ? 0 : MPI_UNDEFINED;
  DIAPAUSE_TRY(check(MPI_Comm_split(parent, color, rank, comm.get()), "MPI_Comm_split"));
  return std::shared_ptr<const MPI_Comm>(comm);
}

}  // namespace diapause::comm
