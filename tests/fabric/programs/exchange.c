// Two processes send each other numbered messages, over a reliable connection, over one with a
// shared receive queue, and as datagrams, and write, read and count in each other's memory. They
// say at the end what came, and fail at the first message that is not the next one.
//
//   exchange MESSAGES FIRST_DEVICE SECOND_DEVICE [threads] [extended]
//   exchange MESSAGES DEVICE at|to PORT [extended]
//
// With "threads" they are two threads of one process, which has both adapters. With "extended" they
// post by ibv_wr_* and read completions by ibv_start_poll(). A process that is started "at" a port
// of 127.0.0.1 is one side, and waits for the other, which is started "to" that port.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  kReceives = 64,
  kWindow = 24,
  kBytes = 512,
  kHeader = 40,
  kGidIndex = 1,
  kKey = 0x11111111,
  kExposedBytes = 8192,
  kSlots = 64
};
enum { kReliable, kShared, kDatagram, kPairs };

struct address {
  uint32_t numbers[kPairs], first[kPairs];
  union ibv_gid gid;
  uint64_t memory;
  uint32_t key;
};

struct message {
  uint64_t number;
  uint64_t pattern[6];
};

// Memory that others may read and write.
struct exposed {
  uint64_t counter;               // changed by atomic operations
  uint64_t written;               // changed by RDMA
  uint64_t datagrams;             // number of datagrams that have come
  uint64_t fetched;               // fetched by the last operation
  uint64_t read_back;             // read from the other's counter after it
  struct message landed[kSlots];  // messages that were written here, by their number
};

struct side {
  struct ibv_context* context;
  struct ibv_pd* domain;
  struct ibv_cq *sends, *receives;
  struct ibv_comp_channel* channel;
  struct ibv_srq* shared;
  struct ibv_qp* pairs[kPairs];
  struct ibv_ah* handle;
  struct ibv_mr *memory, *exposed_memory;
  char* buffers;
  struct exposed* exposed;
  struct address own, other;
  uint64_t messages;
  uint64_t sent[kPairs], came[kPairs], in_flight[kPairs], last[kPairs];
  uint64_t operations, counted;
  int is_waiting;
  unsigned waits;
  int is_extended;
};

static void must(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "exchange: %s (%s)\n", what, strerror(errno));
  exit(1);
}

static char* buffer_of(struct side* side, int slot) {
  return side->buffers + (size_t)slot * kBytes;
}

// Slots: first those of receives, kReceives for each pair, then those of sends.
static int receive_slot(int pair, int index) { return pair * kReceives + index; }
static int send_slot(int pair, uint64_t number) {
  return kPairs * kReceives + pair * kSlots + (int)(number % kSlots);
}

// Messages that are written land in the half of their pair. Only every fifth is written.
static size_t landing_slot(int pair, uint64_t number) {
  return (size_t)(pair * (kSlots / 2)) + number / 5 % (kSlots / 2);
}

static void post_receive(struct side* side, int pair, int slot) {
  struct ibv_sge piece = {(uintptr_t)buffer_of(side, slot), kBytes, side->memory->lkey};
  struct ibv_recv_wr receive = {.wr_id = (uint64_t)slot, .sg_list = &piece, .num_sge = 1}, *bad;
  if (pair == kShared) {
    must(ibv_post_srq_recv(side->shared, &receive, &bad) == 0, "posting to a shared queue");
  } else {
    must(ibv_post_recv(side->pairs[pair], &receive, &bad) == 0, "posting a receive");
  }
}

static struct ibv_qp* create_pair(struct side* side, struct ibv_qp_init_attr* init) {
  if (!side->is_extended) return ibv_create_qp(side->domain, init);
  struct ibv_qp_init_attr_ex extended = {
      .send_cq = init->send_cq,
      .recv_cq = init->recv_cq,
      .srq = init->srq,
      .cap = init->cap,
      .qp_type = init->qp_type,
      .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
      .pd = side->domain,
      .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM};
  if (init->qp_type == IBV_QPT_RC) {
    extended.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                               IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  }
  return ibv_create_qp_ex(side->context, &extended);
}

static struct ibv_cq* create_queue(struct side* side, struct ibv_comp_channel* channel) {
  if (!side->is_extended) return ibv_create_cq(side->context, 1024, side, channel, 0);
  struct ibv_cq_init_attr_ex extended = {
      .cqe = 1024, .cq_context = side, .channel = channel, .wc_flags = IBV_WC_STANDARD_FLAGS};
  struct ibv_cq_ex* made = ibv_create_cq_ex(side->context, &extended);
  return made == NULL ? NULL : ibv_cq_ex_to_cq(made);
}

static struct ibv_qp* make_pair(struct side* side, int pair) {
  struct ibv_qp_init_attr init = {.send_cq = side->sends,
                                  .recv_cq = side->receives,
                                  .cap = {kSlots, kReceives, 1, 1, 64},
                                  .srq = pair == kShared ? side->shared : NULL,
                                  .qp_type = pair == kDatagram ? IBV_QPT_UD : IBV_QPT_RC};
  struct ibv_qp* made = create_pair(side, &init);
  must(made != NULL, "making a queue pair");
  struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT,
                                   .port_num = 1,
                                   .qkey = kKey,
                                   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
                                                      IBV_ACCESS_REMOTE_READ |
                                                      IBV_ACCESS_REMOTE_ATOMIC};
  const int kind = pair == kDatagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  must(ibv_modify_qp(made, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | kind) == 0,
       "preparing");
  return made;
}

static void open_side(struct side* side, const char* device) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  for (int i = 0; list && list[i]; ++i) {
    if (strcmp(ibv_get_device_name(list[i]), device) == 0) side->context = ibv_open_device(list[i]);
  }
  must(side->context != NULL, device);
  ibv_free_device_list(list);
  side->domain = ibv_alloc_pd(side->context);
  const size_t bytes = (size_t)kBytes * kPairs * (kReceives + kSlots);
  side->buffers = calloc(1, bytes);
  side->exposed = aligned_alloc(4096, kExposedBytes);
  memset(side->exposed, 0, kExposedBytes);
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                     IBV_ACCESS_REMOTE_ATOMIC;
  side->memory = ibv_reg_mr(side->domain, side->buffers, bytes, IBV_ACCESS_LOCAL_WRITE);
  side->exposed_memory = ibv_reg_mr(side->domain, side->exposed, kExposedBytes, access);
  must(side->memory && side->exposed_memory, "registering memory");
  side->channel = ibv_create_comp_channel(side->context);
  side->sends = create_queue(side, NULL);
  side->receives = create_queue(side, side->channel);
  must(side->sends && side->receives, "making completion queues");
  struct ibv_srq_init_attr shared = {.attr = {.max_wr = kReceives, .max_sge = 1}};
  side->shared = ibv_create_srq(side->domain, &shared);
  must(side->shared != NULL, "making a shared queue");
  for (int pair = 0; pair < kPairs; ++pair) {
    side->pairs[pair] = make_pair(side, pair);
    for (int i = 0; i < kReceives; ++i) post_receive(side, pair, receive_slot(pair, i));
    side->own.numbers[pair] = side->pairs[pair]->qp_num;
    side->own.first[pair] = (uint32_t)(1000 * (pair + 1) + getpid() % 1000);
  }
  must(ibv_query_gid(side->context, 1, kGidIndex, &side->own.gid) == 0, "asking for the GID");
  side->own.memory = (uintptr_t)side->exposed;
  side->own.key = side->exposed_memory->rkey;
}

static void connect_side(struct side* side) {
  struct ibv_ah_attr path = {
      .is_global = 1,
      .port_num = 1,
      .grh = {.dgid = side->other.gid, .sgid_index = kGidIndex, .hop_limit = 4}};
  for (int pair = 0; pair < kPairs; ++pair) {
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RTR,
                                     .path_mtu = IBV_MTU_1024,
                                     .dest_qp_num = side->other.numbers[pair],
                                     .rq_psn = side->other.first[pair],
                                     .max_dest_rd_atomic = 4,
                                     .min_rnr_timer = 12,
                                     .ah_attr = path};
    const int reliable = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    must(ibv_modify_qp(side->pairs[pair], &attributes,
                       IBV_QP_STATE | (pair == kDatagram ? 0 : reliable)) == 0,
         "connecting");
    attributes.qp_state = IBV_QPS_RTS;
    attributes.sq_psn = side->own.first[pair];
    attributes.timeout = 14;
    attributes.retry_cnt = attributes.rnr_retry = 7;
    attributes.max_rd_atomic = 4;
    const int sending =
        IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    must(ibv_modify_qp(side->pairs[pair], &attributes,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | (pair == kDatagram ? 0 : sending)) == 0,
         "sending");
  }
  side->handle = ibv_create_ah(side->domain, &path);
  must(side->handle != NULL, "making an address handle");
}

static void describe(struct ibv_qp_ex* pair, const struct ibv_send_wr* send) {
  pair->wr_id = send->wr_id;
  pair->wr_flags = send->send_flags & ~(unsigned)IBV_SEND_INLINE;
  if (send->opcode == IBV_WR_SEND) ibv_wr_send(pair);
  if (send->opcode == IBV_WR_SEND_WITH_IMM) ibv_wr_send_imm(pair, send->imm_data);
  if (send->opcode == IBV_WR_RDMA_READ)
    ibv_wr_rdma_read(pair, send->wr.rdma.rkey, send->wr.rdma.remote_addr);
  if (send->opcode == IBV_WR_RDMA_WRITE)
    ibv_wr_rdma_write(pair, send->wr.rdma.rkey, send->wr.rdma.remote_addr);
  if (send->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
    ibv_wr_rdma_write_imm(pair, send->wr.rdma.rkey, send->wr.rdma.remote_addr, send->imm_data);
  if (send->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
    ibv_wr_atomic_fetch_add(pair, send->wr.atomic.rkey, send->wr.atomic.remote_addr,
                            send->wr.atomic.compare_add);
  const struct ibv_sge* piece = send->sg_list;
  if ((send->send_flags & IBV_SEND_INLINE) != 0) {
    ibv_wr_set_inline_data(pair, (void*)(uintptr_t)piece->addr, piece->length);
  } else {
    ibv_wr_set_sge(pair, piece->lkey, piece->addr, piece->length);
  }
}

static void post(struct side* side, int pair, struct ibv_send_wr* send) {
  struct ibv_send_wr* bad;
  if (!side->is_extended) {
    must(ibv_post_send(side->pairs[pair], send, &bad) == 0, "posting a send");
    return;
  }
  struct ibv_qp_ex* extended = ibv_qp_to_qp_ex(side->pairs[pair]);
  must(extended != NULL, "posting by ibv_wr_*");
  ibv_wr_start(extended);
  for (; send != NULL; send = send->next) {
    describe(extended, send);
    if (pair == kDatagram)
      ibv_wr_set_ud_addr(extended, send->wr.ud.ah, send->wr.ud.remote_qpn, send->wr.ud.remote_qkey);
  }
  must(ibv_wr_complete(extended) == 0, "posting a batch");
}

static int poll_extended(struct ibv_cq_ex* queue, int most, struct ibv_wc* into) {
  struct ibv_poll_cq_attr attributes = {0};
  int error = ibv_start_poll(queue, &attributes), count = 0;
  if (error == ENOENT) return 0;
  while (error == 0) {
    struct ibv_wc one = {.wr_id = queue->wr_id, .status = queue->status};
    one.opcode = ibv_wc_read_opcode(queue);
    one.qp_num = ibv_wc_read_qp_num(queue);
    one.src_qp = ibv_wc_read_src_qp(queue);
    one.wc_flags = ibv_wc_read_wc_flags(queue);
    one.imm_data = ibv_wc_read_imm_data(queue);
    one.slid = (uint16_t)ibv_wc_read_slid(queue);
    one.sl = ibv_wc_read_sl(queue);
    one.dlid_path_bits = ibv_wc_read_dlid_path_bits(queue);
    one.byte_len = ibv_wc_read_byte_len(queue);
    into[count++] = one;
    if (count == most) break;
    error = ibv_next_poll(queue);
  }
  ibv_end_poll(queue);
  return error == 0 || error == ENOENT ? count : -1;
}

static int take(struct side* side, struct ibv_cq* queue, int most, struct ibv_wc* into) {
  return side->is_extended ? poll_extended((struct ibv_cq_ex*)queue, most, into)
                           : ibv_poll_cq(queue, most, into);
}

// Only every fourth send tells of its end, and every third goes in the request itself. Every fifth
// carries its number beside the data; over reliable connections that is a write.
static void send_next(struct side* side, int pair) {
  const uint64_t number = side->sent[pair];
  const int slot = send_slot(pair, number);
  struct message* message = (struct message*)buffer_of(side, slot);
  message->number = number;
  for (int i = 0; i < 6; ++i) message->pattern[i] = number * 31 + (uint64_t)i;
  struct ibv_sge piece = {(uintptr_t)message, sizeof *message, side->memory->lkey};
  struct ibv_send_wr send = {
      .wr_id = number, .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND};
  const int is_signalled = number % 4 == 3;
  if (is_signalled) send.send_flags = IBV_SEND_SIGNALED;
  if (number % 3 == 0) send.send_flags |= IBV_SEND_INLINE;
  if (number % 5 == 0) {
    send.opcode = pair == kDatagram ? IBV_WR_SEND_WITH_IMM : IBV_WR_RDMA_WRITE_WITH_IMM;
    send.imm_data = htonl((uint32_t)number);
  }
  if (pair == kDatagram) {
    send.wr.ud.ah = side->handle;
    send.wr.ud.remote_qpn = side->other.numbers[pair];
    send.wr.ud.remote_qkey = kKey;
  } else if (number % 5 == 0) {
    send.wr.rdma.remote_addr = side->other.memory + offsetof(struct exposed, landed) +
                               sizeof *message * landing_slot(pair, number);
    send.wr.rdma.rkey = side->other.key;
  }
  post(side, pair, &send);
  ++side->sent[pair];
  ++side->in_flight[pair];
}

// A write with a number that only grows, and an addition that is done exactly once, in the other's
// memory, and a read of what it has become.
static void operate(struct side* side) {
  struct ibv_sge back = {(uintptr_t)&side->exposed->read_back, 8, side->exposed_memory->lkey};
  struct ibv_send_wr get = {.wr_id = UINT64_MAX,
                            .sg_list = &back,
                            .num_sge = 1,
                            .opcode = IBV_WR_RDMA_READ,
                            .send_flags = IBV_SEND_SIGNALED};
  get.wr.rdma.remote_addr = side->other.memory + offsetof(struct exposed, counter);
  get.wr.rdma.rkey = side->other.key;
  struct ibv_sge piece = {(uintptr_t)&side->exposed->fetched, 8, side->exposed_memory->lkey};
  struct ibv_send_wr add = {.wr_id = 0,
                            .next = &get,
                            .sg_list = &piece,
                            .num_sge = 1,
                            .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
  add.wr.atomic.remote_addr = side->other.memory + offsetof(struct exposed, counter);
  add.wr.atomic.rkey = side->other.key;
  add.wr.atomic.compare_add = 1;
  struct ibv_sge number = {(uintptr_t)&side->operations, 8, side->exposed_memory->lkey};
  struct ibv_send_wr write = {.wr_id = 0,
                              .next = &add,
                              .sg_list = &number,
                              .num_sge = 1,
                              .opcode = IBV_WR_RDMA_WRITE,
                              .send_flags = IBV_SEND_INLINE};
  write.wr.rdma.remote_addr = side->other.memory + offsetof(struct exposed, written);
  write.wr.rdma.rkey = side->other.key;
  ++side->operations;
  post(side, kReliable, &write);
  side->is_waiting = 1;
}

static int pair_of(struct side* side, uint32_t number) {
  for (int pair = 0; pair < kPairs; ++pair) {
    if (side->own.numbers[pair] == number) return pair;
  }
  fprintf(stderr, "exchange: a completion of queue pair %u, which there is not\n", number);
  exit(1);
}

static void take_sends(struct side* side) {
  struct ibv_wc completions[16];
  const int count = take(side, side->sends, 16, completions);
  must(count >= 0, "polling");
  for (int i = 0; i < count; ++i) {
    const struct ibv_wc* one = &completions[i];
    if (one->status != IBV_WC_SUCCESS)
      fprintf(stderr, "exchange: a send: %s\n", ibv_wc_status_str(one->status));
    must(one->status == IBV_WC_SUCCESS, "a send failed");
    const int pair = pair_of(side, one->qp_num);
    if (one->wr_id == UINT64_MAX) {
      must(side->exposed->fetched == side->counted, "an addition was done twice, or not at all");
      ++side->counted;
      must(side->exposed->read_back == side->counted, "what was read is not what was added");
      side->is_waiting = 0;
      continue;
    }
    must(one->wr_id % 4 == 3, "a send that was to be silent has spoken");
    must(one->wr_id == side->last[pair] + 4 || (one->wr_id == 3 && side->last[pair] == 0),
         "sends completed out of order");
    side->last[pair] = one->wr_id;
    side->in_flight[pair] = side->sent[pair] - 1 - one->wr_id;
  }
}

static const struct message* message_of(struct side* side, int pair, int slot,
                                        const struct ibv_wc* completion) {
  const int is_numbered = (completion->wc_flags & IBV_WC_WITH_IMM) != 0;
  const uint32_t number = is_numbered ? ntohl(completion->imm_data) : 0;
  const int is_written = completion->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
  must(is_written == (is_numbered && pair != kDatagram), "a receive of another kind");
  const struct message* message =
      is_written
          ? &side->exposed->landed[landing_slot(pair, number)]
          : (const struct message*)(buffer_of(side, slot) + (pair == kDatagram ? kHeader : 0));
  must(is_numbered == (message->number % 5 == 0), "a number beside the data is missing");
  must(!is_numbered || message->number == number, "the number beside the data is another");
  return message;
}

// Returns whether there may be more.
static int take_receives(struct side* side) {
  struct ibv_wc completions[16];
  const int count = take(side, side->receives, 16, completions);
  must(count >= 0, "polling");
  for (int i = 0; i < count; ++i) {
    const struct ibv_wc* one = &completions[i];
    must(one->status == IBV_WC_SUCCESS, "a receive failed");
    const int pair = pair_of(side, one->qp_num);
    const int slot = (int)one->wr_id;
    must(slot / kReceives == pair, "a receive of another queue");
    const struct message* message = message_of(side, pair, slot, one);
    if (pair == kDatagram) {
      must(one->src_qp == side->other.numbers[pair], "a datagram of a stranger");
      must(message->number >= side->came[pair], "a datagram came twice, or too late");
      struct ibv_ah* back = ibv_create_ah_from_wc(side->domain, (struct ibv_wc*)one,
                                                  (struct ibv_grh*)buffer_of(side, slot), 1);
      must(back != NULL, "answering a datagram");
      ibv_destroy_ah(back);
      side->came[pair] = message->number + 1;
      ++side->exposed->datagrams;
    } else {
      if (message->number != side->came[pair]) {
        fprintf(stderr, "exchange: message %llu of pair %d in place of %llu\n",
                (unsigned long long)message->number, pair, (unsigned long long)side->came[pair]);
      }
      must(message->number == side->came[pair], "a message was lost, doubled or out of order");
      ++side->came[pair];
    }
    for (int k = 0; k < 6; ++k)
      must(message->pattern[k] == message->number * 31 + (uint64_t)k, "a message was changed");
    post_receive(side, pair, slot);
  }
  return count == 16;
}

static int is_done(const struct side* side) {
  for (int pair = 0; pair < kDatagram; ++pair) {
    if (side->sent[pair] < side->messages || side->came[pair] < side->messages) return 0;
  }
  return !side->is_waiting;
}

// Returns whether the other will send something in any case.
static int may_wait(const struct side* side) {
  int is_complete = 1;
  for (int pair = 0; pair < kPairs; ++pair) {
    if (side->in_flight[pair] >= kWindow) return 0;
    if (pair != kDatagram && side->came[pair] < side->messages) is_complete = 0;
  }
  return !is_complete && !side->is_waiting;
}

// Every third time it polls the channel's descriptor and then does not wait, as event loops do.
static void wait_for_event(struct side* side) {
  const int descriptor = side->channel->fd, polls = ++side->waits % 3 == 0;
  if (polls) {
    struct pollfd one = {descriptor, POLLIN, 0};
    must(fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0, "waiting no more");
    must(poll(&one, 1, -1) == 1, "polling a channel");
  }
  struct ibv_cq* queue;
  void* context;
  const int has_event = ibv_get_cq_event(side->channel, &queue, &context) == 0;
  must(has_event || (polls && errno == EAGAIN), "waiting for an event");
  if (polls) must(fcntl(descriptor, F_SETFL, 0) == 0, "waiting again");
  if (!has_event) return;
  must(queue == side->receives && context == (void*)side, "an event of another queue");
  ibv_ack_cq_events(queue, 1);
  ibv_req_notify_cq(queue, 0);
}

static void exchange(struct side* side, int gate, int waits_for_events) {
  if (waits_for_events) ibv_req_notify_cq(side->receives, 0);
  while (!is_done(side)) {
    take_sends(side);
    while (take_receives(side)) continue;
    int is_idle = 1;
    for (int pair = 0; pair < kPairs; ++pair) {
      const int is_datagram = pair == kDatagram;
      // The other has a receive for each: it is at most two windows behind.
      const uint64_t limit = is_datagram ? side->sent[kReliable] : side->came[pair] + kWindow;
      if (side->sent[pair] < side->messages && side->sent[pair] < limit &&
          side->in_flight[pair] < kWindow) {
        send_next(side, pair);
        is_idle = 0;
      }
    }
    if (!side->is_waiting && side->operations < side->sent[kReliable] / 16) operate(side);
    if (is_idle && waits_for_events && may_wait(side)) wait_for_event(side);
  }
  // The other may still operate in this memory, and wait for receives.
  char word = 1;
  must(write(gate, &word, 1) == 1 && read(gate, &word, 1) == 1, "waiting for the other");
}

static void run(struct side* side, const char* device, int wire, int waits_for_events) {
  open_side(side, device);
  must(write(wire, &side->own, sizeof side->own) == sizeof side->own, "telling the other");
  must(read(wire, &side->other, sizeof side->other) == sizeof side->other, "hearing of the other");
  connect_side(side);
  char word = 1;
  must(write(wire, &word, 1) == 1 && read(wire, &word, 1) == 1, "waiting for the other");
  exchange(side, wire, waits_for_events);
  must(side->exposed->counter == side->counted && side->exposed->written == side->operations,
       "operations in memory were lost");
  printf("%s: %llu and %llu messages in order, %llu operations%s\n", device,
         (unsigned long long)side->came[kReliable], (unsigned long long)side->came[kShared],
         (unsigned long long)side->counted, side->exposed->datagrams > 0 ? ", datagrams" : "");
  fprintf(stderr, "%s: %llu of %llu datagrams came\n", device,
          (unsigned long long)side->exposed->datagrams, (unsigned long long)side->messages);
}

struct thread {
  struct side side;
  const char* device;
  int wire;
};

static void* run_thread(void* data) {
  struct thread* thread = data;
  run(&thread->side, thread->device, thread->wire, 1);
  return NULL;
}

// Runs the second side in a process or a thread of its own, and this one here.
static int run_both(struct thread* own, struct thread* other, int are_threads) {
  pthread_t thread;
  const pid_t child = are_threads ? 0 : fork();
  if (are_threads) {
    must(pthread_create(&thread, NULL, run_thread, other) == 0, "starting a thread");
  } else if (child == 0) {
    close(own->wire);
    run_thread(other);
    return 0;
  } else {
    close(other->wire);
  }
  run(&own->side, own->device, own->wire, 0);
  int status = 0;
  if (are_threads) {
    pthread_join(thread, NULL);
  } else {
    must(waitpid(child, &status, 0) == child, "waiting for the other process");
  }
  return status != 0;
}

// Returns a connection between two processes by this port.
static int meet(int is_first, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const struct sockaddr* name = (const struct sockaddr*)&address;
  const int own = socket(AF_INET, SOCK_STREAM, 0);
  if (is_first) {
    must(bind(own, name, sizeof address) == 0 && listen(own, 1) == 0, "listening");
    return accept(own, NULL, NULL);
  }
  must(connect(own, name, sizeof address) == 0, "reaching the other");
  return own;
}

int main(int count, char** words) {
  must(count >= 4, "usage: exchange MESSAGES FIRST_DEVICE SECOND_DEVICE [threads] [extended]");
  const int is_first = strcmp(words[3], "at") == 0;
  if (count >= 5 && (is_first || strcmp(words[3], "to") == 0)) {
    struct side* side = calloc(1, sizeof *side);
    side->messages = strtoull(words[1], NULL, 10);
    side->is_extended = count > 5 && strcmp(words[5], "extended") == 0;
    const int between = meet(is_first, atoi(words[4]));
    must(between >= 0, "meeting the other");
    run(side, words[2], between, is_first);
    return 0;
  }
  int wire[2], are_threads = 0;
  must(socketpair(AF_UNIX, SOCK_STREAM, 0, wire) == 0, "making a pair of sockets");
  struct thread* both = calloc(2, sizeof *both);
  for (int i = 0; i < 2; ++i) {
    both[i].side.messages = strtoull(words[1], NULL, 10);
    both[i].device = words[2 + i];
    both[i].wire = wire[i];
    for (int k = 4; k < count; ++k) {
      if (strcmp(words[k], "extended") == 0) both[i].side.is_extended = 1;
      if (strcmp(words[k], "threads") == 0) are_threads = 1;
    }
  }
  return run_both(&both[0], &both[1], are_threads);
}
