// The other way to post sends (ibv_wr_*), and the other way to read completions (ibv_start_poll()).
// Both end in the plain ones, so that counting and translating are in one place, and work with
// adapters that have only those.
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "fabric/shim/shim.hpp"

namespace diapause::fabric {
namespace {

constexpr std::uint64_t kOperations =
    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
    IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

// ---- sends --------------------------------------------------------------------------------------

ibv_send_wr& add(ibv_qp_ex* shown, ibv_wr_opcode operation) {
  Batch& batch = *of(shown).batch;
  ibv_send_wr& request = batch.requests.emplace_back();
  request.wr_id = shown->wr_id;
  request.opcode = operation;
  request.send_flags = shown->wr_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
  batch.first_pieces.push_back(batch.pieces.size());
  return request;
}

// The request that the program speaks of. If there is none, the batch fails at its end.
ibv_send_wr& last(Batch& batch) {
  if (batch.requests.empty()) {
    batch.error = EINVAL;
    return batch.nothing;
  }
  return batch.requests.back();
}

void send(ibv_qp_ex* shown) { add(shown, IBV_WR_SEND); }
void send_imm(ibv_qp_ex* shown, __be32 data) { add(shown, IBV_WR_SEND_WITH_IMM).imm_data = data; }

void rdma_read(ibv_qp_ex* shown, std::uint32_t key, std::uint64_t address) {
  add(shown, IBV_WR_RDMA_READ).wr.rdma = {address, key};
}
void rdma_write(ibv_qp_ex* shown, std::uint32_t key, std::uint64_t address) {
  add(shown, IBV_WR_RDMA_WRITE).wr.rdma = {address, key};
}
void rdma_write_imm(ibv_qp_ex* shown, std::uint32_t key, std::uint64_t address, __be32 data) {
  ibv_send_wr& request = add(shown, IBV_WR_RDMA_WRITE_WITH_IMM);
  request.wr.rdma = {address, key};
  request.imm_data = data;
}

void compare_and_swap(ibv_qp_ex* shown, std::uint32_t key, std::uint64_t address,
                      std::uint64_t compare, std::uint64_t swap) {
  add(shown, IBV_WR_ATOMIC_CMP_AND_SWP).wr.atomic = {address, compare, swap, key};
}
void fetch_and_add(ibv_qp_ex* shown, std::uint32_t key, std::uint64_t address,
                   std::uint64_t value) {
  add(shown, IBV_WR_ATOMIC_FETCH_AND_ADD).wr.atomic = {address, value, 0, key};
}

void set_datagram(ibv_qp_ex* shown, ibv_ah* handle, std::uint32_t number, std::uint32_t key) {
  last(*of(shown).batch).wr.ud = {handle, number, key};
}

void set_pieces(ibv_qp_ex* shown, std::size_t count, const ibv_sge* pieces) {
  QueuePair& pair = of(shown);
  Batch& batch = *pair.batch;
  ibv_send_wr& request = last(batch);
  if (count > pair.init.cap.max_send_sge) batch.error = EINVAL;
  if (batch.error != 0) return;
  batch.pieces.insert(batch.pieces.end(), pieces, pieces + count);
  request.num_sge = static_cast<int>(count);
}

void set_piece(ibv_qp_ex* shown, std::uint32_t key, std::uint64_t address, std::uint32_t length) {
  const ibv_sge piece{address, length, key};
  set_pieces(shown, 1, &piece);
}

// The data is copied at once, because the program may change it from here on. Until the end of the
// batch the piece says where in the copy it begins.
void set_inline_list(ibv_qp_ex* shown, std::size_t count, const ibv_data_buf* pieces) {
  QueuePair& pair = of(shown);
  Batch& batch = *pair.batch;
  ibv_send_wr& request = last(batch);
  const std::size_t begin = batch.inlined.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view bytes(static_cast<const char*>(pieces[i].addr), pieces[i].length);
    batch.inlined.insert(batch.inlined.end(), bytes.begin(), bytes.end());
  }
  const std::size_t length = batch.inlined.size() - begin;
  if (length > pair.init.cap.max_inline_data) batch.error = EINVAL;
  batch.pieces.push_back({begin, static_cast<std::uint32_t>(length), 0});
  request.send_flags |= IBV_SEND_INLINE;
  request.num_sge = 1;
}

void set_inline(ibv_qp_ex* shown, void* address, std::size_t length) {
  const ibv_data_buf piece{address, length};
  set_inline_list(shown, 1, &piece);
}

void forget(Batch& batch) {
  batch.requests.clear();
  batch.first_pieces.clear();
  batch.pieces.clear();
  batch.inlined.clear();
  batch.error = 0;
}

void start(ibv_qp_ex* shown) {
  Batch& batch = *of(shown).batch;
  batch.lock.lock();
  forget(batch);
}

void give_up(ibv_qp_ex* shown) { of(shown).batch->lock.unlock(); }

// Lets the requests point to each other and to their pieces.
void join(Batch& batch) {
  for (std::size_t i = 0; i < batch.requests.size(); ++i) {
    ibv_send_wr& request = batch.requests[i];
    request.next = i + 1 < batch.requests.size() ? &batch.requests[i + 1] : nullptr;
    request.sg_list = batch.pieces.data() + batch.first_pieces[i];
    if ((request.send_flags & IBV_SEND_INLINE) == 0) continue;
    request.sg_list->addr += reinterpret_cast<std::uintptr_t>(batch.inlined.data());
  }
}

int complete(ibv_qp_ex* shown) {
  QueuePair& pair = of(shown);
  Batch& batch = *pair.batch;
  if (pair.shown.qp_type == IBV_QPT_UD) {
    for (const ibv_send_wr& one : batch.requests) {
      if (one.wr.ud.ah == nullptr) batch.error = EINVAL;
    }
  }
  int error = batch.error;
  if (error == 0 && !batch.requests.empty()) {
    join(batch);
    error = post_all_or_none(pair, batch.requests.data(), batch.requests.size());
  }
  batch.lock.unlock();
  return error;
}

// What is not here is none of kOperations.
void give_operations(ibv_qp_ex& shown) {
  shown.wr_atomic_cmp_swp = compare_and_swap;
  shown.wr_atomic_fetch_add = fetch_and_add;
  shown.wr_rdma_read = rdma_read;
  shown.wr_rdma_write = rdma_write;
  shown.wr_rdma_write_imm = rdma_write_imm;
  shown.wr_send = send;
  shown.wr_send_imm = send_imm;
  shown.wr_set_ud_addr = set_datagram;
  shown.wr_set_inline_data = set_inline;
  shown.wr_set_inline_data_list = set_inline_list;
  shown.wr_set_sge = set_piece;
  shown.wr_set_sge_list = set_pieces;
  shown.wr_start = start;
  shown.wr_complete = complete;
  shown.wr_abort = give_up;
}

// ---- completions --------------------------------------------------------------------------------

int next_poll(ibv_cq_ex* shown) {
  CompletionQueue& queue = of(shown);
  const int count = queue.shown.context->ops.poll_cq(&queue.shown, 1, &queue.read);
  if (count <= 0) return count == 0 ? ENOENT : EIO;
  shown->wr_id = queue.read.wr_id;
  shown->status = queue.read.status;
  return 0;
}

int start_poll(ibv_cq_ex* shown, ibv_poll_cq_attr* attributes) {
  if (attributes->comp_mask != 0) return EINVAL;
  CompletionQueue& queue = of(shown);
  queue.reading.lock();
  const int error = next_poll(shown);
  if (error != 0) queue.reading.unlock();
  return error;
}

void end_poll(ibv_cq_ex* shown) { of(shown).reading.unlock(); }

void give_readers(ibv_cq_ex& shown) {
  shown.start_poll = start_poll;
  shown.next_poll = next_poll;
  shown.end_poll = end_poll;
  shown.read_opcode = [](ibv_cq_ex* one) { return of(one).read.opcode; };
  shown.read_vendor_err = [](ibv_cq_ex* one) { return of(one).read.vendor_err; };
  shown.read_byte_len = [](ibv_cq_ex* one) { return of(one).read.byte_len; };
  shown.read_imm_data = [](ibv_cq_ex* one) { return of(one).read.imm_data; };
  shown.read_qp_num = [](ibv_cq_ex* one) { return of(one).read.qp_num; };
  shown.read_src_qp = [](ibv_cq_ex* one) { return of(one).read.src_qp; };
  shown.read_wc_flags = [](ibv_cq_ex* one) { return of(one).read.wc_flags; };
  shown.read_slid = [](ibv_cq_ex* one) { return std::uint32_t{of(one).read.slid}; };
  shown.read_sl = [](ibv_cq_ex* one) { return of(one).read.sl; };
  shown.read_dlid_path_bits = [](ibv_cq_ex* one) { return of(one).read.dlid_path_bits; };
}

}  // namespace

ibv_qp* create_extended_pair(ibv_context*, ibv_qp_init_attr_ex* init) {
  constexpr std::uint32_t kKnown =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  const bool has_flags =
      (init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && init->create_flags != 0;
  const bool has_batches = (init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  const bool is_known = (init->comp_mask & ~kKnown) == 0 && !has_flags &&
                        (!has_batches || (init->send_ops_flags & ~kOperations) == 0);
  if (!is_known || (init->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) {
    errno = is_known ? EINVAL : EOPNOTSUPP;
    return nullptr;
  }
  ibv_qp_init_attr plain{init->qp_context, init->send_cq, init->recv_cq,   init->srq,
                         init->cap,        init->qp_type, init->sq_sig_all};
  ibv_qp* const made = ibv_create_qp(init->pd, &plain);
  if (made == nullptr) return nullptr;
  init->cap = plain.cap;
  if (!has_batches) return made;
  QueuePair& pair = of(made);
  pair.positions.resize(std::size_t{plain.cap.max_send_wr} + 1);
  pair.see_what_is_plain(Shim::get().directory);
  give_operations(pair.extended);
  pair.batch = std::make_unique<Batch>();
  return made;
}

ibv_cq_ex* create_extended_queue(ibv_context* shown, ibv_cq_init_attr_ex* init) {
  const bool has_flags = (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 &&
                         (init->flags & ~std::uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}) != 0;
  const bool is_known = (init->comp_mask & ~std::uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS}) == 0 &&
                        (init->wc_flags & ~std::uint64_t{IBV_WC_STANDARD_FLAGS}) == 0;
  if (has_flags || !is_known) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  ibv_cq* const made = ibv_create_cq(shown, static_cast<int>(init->cqe), init->cq_context,
                                     init->channel, static_cast<int>(init->comp_vector));
  if (made == nullptr) return nullptr;
  CompletionQueue& queue = of(made);
  give_readers(queue.extended);
  return &queue.extended;
}

}  // namespace diapause::fabric

using namespace diapause::fabric;

// Only queue pairs that were made for it have the other way to post.
DIAPAUSE_VERB ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* shown) {
  Shim& shim = Shim::get();
  if (is_ours(shown->context)) {
    QueuePair& pair = of(shown);
    return pair.batch == nullptr ? nullptr : &pair.extended;
  }
  return shim.real.ibv_qp_to_qp_ex == nullptr ? nullptr : shim.real.ibv_qp_to_qp_ex(shown);
}
