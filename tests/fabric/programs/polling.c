// Sends messages from one adapter to another and back, or a stream of them one way, in one thread
// that polls, and prints the microseconds that each took.
//
//   polling rc|ud latency|rate MESSAGES BYTES FIRST_DEVICE SECOND_DEVICE [thread]
//
// With `thread`, the process has a second one, which sleeps: calls to the kernel cost such a
// process more.
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kWindow = 64, kHeader = 40, kGidIndex = 1, kKey = 0x11111111, kFirstNumber = 1000 };

struct side {
  struct ibv_context* context;
  struct ibv_pd* domain;
  struct ibv_mr* memory;
  struct ibv_cq *sends, *receives;
  struct ibv_qp* pair;
  struct ibv_ah* handle;
  char* buffer;
  uint32_t bytes;
  int is_datagram;
};

static void must(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "polling: %s (%s)\n", what, strerror(errno));
  exit(1);
}

static void change(struct side* side, struct ibv_qp_attr attributes, int mask) {
  must(ibv_modify_qp(side->pair, &attributes, mask) == 0, "changing a queue pair");
}

static void post_receive(struct side* side) {
  struct ibv_sge piece = {(uintptr_t)side->buffer, side->bytes + kHeader, side->memory->lkey};
  struct ibv_recv_wr receive = {.sg_list = &piece, .num_sge = 1}, *bad;
  must(ibv_post_recv(side->pair, &receive, &bad) == 0, "posting a receive");
}

static void open_side(struct side* side, const char* device) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  for (int i = 0; list && list[i]; ++i) {
    if (strcmp(ibv_get_device_name(list[i]), device) == 0) side->context = ibv_open_device(list[i]);
  }
  must(side->context != NULL, device);
  ibv_free_device_list(list);
  side->domain = ibv_alloc_pd(side->context);
  side->buffer = calloc(1, side->bytes + kHeader);
  side->memory =
      ibv_reg_mr(side->domain, side->buffer, side->bytes + kHeader, IBV_ACCESS_LOCAL_WRITE);
  side->sends = ibv_create_cq(side->context, 2 * kWindow, NULL, NULL, 0);
  side->receives = ibv_create_cq(side->context, 2 * kWindow, NULL, NULL, 0);
  must(side->memory && side->sends && side->receives, "making completion queues");
  struct ibv_qp_init_attr init = {.send_cq = side->sends,
                                  .recv_cq = side->receives,
                                  .cap = {kWindow, 2 * kWindow, 1, 1, 0},
                                  .qp_type = side->is_datagram ? IBV_QPT_UD : IBV_QPT_RC,
                                  .sq_sig_all = 1};
  side->pair = ibv_create_qp(side->domain, &init);
  must(side->pair != NULL, "making a queue pair");
  change(side, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = kKey},
         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
             (side->is_datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
  for (int i = 0; i < 2 * kWindow; ++i) post_receive(side);
}

static void connect_side(struct side* side, const struct side* other) {
  struct ibv_ah_attr path = {
      .is_global = 1, .port_num = 1, .grh = {.sgid_index = kGidIndex, .hop_limit = 4}};
  must(ibv_query_gid(other->context, 1, kGidIndex, &path.grh.dgid) == 0, "asking for the GID");
  const int reliable = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  change(side,
         (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = other->pair->qp_num,
                              .rq_psn = kFirstNumber,
                              .min_rnr_timer = 12,
                              .ah_attr = path},
         IBV_QP_STATE | (side->is_datagram ? 0 : reliable));
  const int sending =
      IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  change(side,
         (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                              .sq_psn = kFirstNumber,
                              .timeout = 14,
                              .retry_cnt = 7,
                              .rnr_retry = 7},
         IBV_QP_STATE | IBV_QP_SQ_PSN | (side->is_datagram ? 0 : sending));
  side->handle = ibv_create_ah(side->domain, &path);
  must(side->handle != NULL, "making an address handle");
}

static void post_send(struct side* side, const struct side* other) {
  struct ibv_sge piece = {(uintptr_t)side->buffer + kHeader, side->bytes, side->memory->lkey};
  struct ibv_send_wr send = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
  if (side->is_datagram) {
    send.wr.ud.ah = side->handle;
    send.wr.ud.remote_qpn = other->pair->qp_num;
    send.wr.ud.remote_qkey = kKey;
  }
  must(ibv_post_send(side->pair, &send, &bad) == 0, "posting a send");
}

// Takes what has completed, and returns how many that were.
static int take(struct ibv_cq* queue) {
  struct ibv_wc completions[16];
  const int count = ibv_poll_cq(queue, 16, completions);
  must(count >= 0, "polling");
  for (int i = 0; i < count; ++i) must(completions[i].status == IBV_WC_SUCCESS, "completing");
  return count;
}

static void take_one(struct ibv_cq* queue) {
  while (take(queue) == 0) {
  }
}

static void bounce(struct side* sides, long messages) {
  for (long i = 0; i < messages; ++i) {
    struct side *from = &sides[i % 2], *to = &sides[1 - i % 2];
    post_send(from, to);
    take_one(from->sends);
    take_one(to->receives);
    post_receive(to);
  }
}

static void stream(struct side* sides, long messages) {
  long posted = 0, sent = 0, came = 0;
  while (came < messages || sent < messages) {
    while (posted < messages && posted - sent < kWindow && posted - came < 2 * kWindow) {
      post_send(&sides[0], &sides[1]);
      ++posted;
    }
    sent += take(sides[0].sends);
    for (int left = take(sides[1].receives); left > 0; --left, ++came) post_receive(&sides[1]);
  }
}

static void* sleep_for_ever(void* unused) {
  for (;;) pause();
  return unused;
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e6 + now.tv_nsec * 1e-3;
}

int main(int argc, char** argv) {
  must(argc == 7 || argc == 8, "six or seven arguments are needed");
  pthread_t sleeper;
  if (argc == 8) must(pthread_create(&sleeper, NULL, sleep_for_ever, NULL) == 0, argv[7]);
  struct side sides[2] = {0};
  for (int i = 0; i < 2; ++i) {
    sides[i].is_datagram = strcmp(argv[1], "ud") == 0;
    sides[i].bytes = (uint32_t)atoi(argv[4]);
    open_side(&sides[i], argv[5 + i]);
  }
  for (int i = 0; i < 2; ++i) connect_side(&sides[i], &sides[1 - i]);
  void (*const run)(struct side*, long) = strcmp(argv[2], "rate") == 0 ? stream : bounce;
  const long messages = atol(argv[3]);
  run(sides, messages / 10);
  const double begin_us = now_us();
  run(sides, messages);
  printf("%.4f\n", (now_us() - begin_us) / messages);
  return 0;
}
