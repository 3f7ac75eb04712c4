// An adapter without hardware, in place of libibverbs: what is posted completes at once, and
// nothing is sent. Beside it shows what a library in front of libibverbs costs a message.
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr

enum { kMost = 1024, kFirstNumber = 100 };

struct queue {
  struct ibv_cq shown;
  struct ibv_wc waiting[kMost];
  unsigned first, count;
};

struct context {
  struct verbs_context shown;
};

static struct ibv_device device = {.name = "none0"};
// Numbers are not given twice, as if the adapter were another one after it was closed.
static uint32_t next_number = kFirstNumber;

static void complete(struct ibv_cq* shown, struct ibv_qp* pair, uint64_t id,
                     enum ibv_wc_opcode what) {
  struct queue* queue = (struct queue*)shown;
  struct ibv_wc* one = &queue->waiting[(queue->first + queue->count++) % kMost];
  *one = (struct ibv_wc){.wr_id = id, .opcode = what, .qp_num = pair->qp_num};
}

static int post_send(struct ibv_qp* pair, struct ibv_send_wr* one, struct ibv_send_wr** bad) {
  (void)bad;
  for (; one != NULL; one = one->next) {
    if ((one->send_flags & IBV_SEND_SIGNALED) != 0)
      complete(pair->send_cq, pair, one->wr_id, IBV_WC_SEND);
  }
  return 0;
}

static int post_recv(struct ibv_qp* pair, struct ibv_recv_wr* one, struct ibv_recv_wr** bad) {
  (void)bad;
  for (; one != NULL; one = one->next) complete(pair->recv_cq, pair, one->wr_id, IBV_WC_RECV);
  return 0;
}

static int poll_cq(struct ibv_cq* shown, int most, struct ibv_wc* into) {
  struct queue* queue = (struct queue*)shown;
  int count = 0;
  for (; count < most && queue->count > 0; ++count, --queue->count)
    into[count] = queue->waiting[queue->first++ % kMost];
  return count;
}

static int query_port(struct ibv_context* context, uint8_t port, struct ibv_port_attr* attributes,
                      size_t bytes) {
  (void)context, (void)port, (void)bytes;
  *attributes = (struct ibv_port_attr){.state = IBV_PORT_ACTIVE, .gid_tbl_len = 1};
  return 0;
}

struct ibv_device** ibv_get_device_list(int* count) {
  struct ibv_device** list = calloc(2, sizeof *list);
  list[0] = &device;
  if (count != NULL) *count = 1;
  return list;
}
void ibv_free_device_list(struct ibv_device** list) { free(list); }
__be64 ibv_get_device_guid(struct ibv_device* one) {
  (void)one;
  return 1;
}

struct ibv_context* ibv_open_device(struct ibv_device* one) {
  struct context* context = calloc(1, sizeof *context);
  context->shown.sz = sizeof context->shown;
  context->shown.query_port = query_port;
  struct ibv_context* shown = &context->shown.context;
  shown->abi_compat = __VERBS_ABI_IS_EXTENDED;
  shown->device = one;
  shown->async_fd = eventfd(0, 0);
  shown->ops.post_send = post_send;
  shown->ops.post_recv = post_recv;
  shown->ops.poll_cq = poll_cq;
  return shown;
}
int ibv_close_device(struct ibv_context* shown) {
  close(shown->async_fd);
  free((char*)shown - offsetof(struct verbs_context, context));
  return 0;
}
int ibv_get_async_event(struct ibv_context* shown, struct ibv_async_event* event) {
  (void)shown, (void)event;
  return -1;
}

int ibv_query_device(struct ibv_context* shown, struct ibv_device_attr* attributes) {
  (void)shown;
  *attributes = (struct ibv_device_attr){.phys_port_cnt = 1, .max_qp_wr = kMost};
  return 0;
}
int ibv_query_gid(struct ibv_context* shown, uint8_t port, int index, union ibv_gid* gid) {
  (void)shown, (void)port, (void)index;
  *gid = (union ibv_gid){.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}};
  return 0;
}

struct ibv_pd* ibv_alloc_pd(struct ibv_context* shown) {
  struct ibv_pd* made = calloc(1, sizeof *made);
  made->context = shown;
  return made;
}
int ibv_dealloc_pd(struct ibv_pd* domain) {
  free(domain);
  return 0;
}

struct ibv_mr* ibv_reg_mr(struct ibv_pd* domain, void* address, size_t length, int access) {
  (void)access;
  struct ibv_mr* made = calloc(1, sizeof *made);
  *made = (struct ibv_mr){.context = domain->context,
                          .pd = domain,
                          .addr = address,
                          .length = length,
                          .lkey = next_number++,
                          .rkey = next_number++};
  return made;
}
int ibv_dereg_mr(struct ibv_mr* region) {
  free(region);
  return 0;
}

struct ibv_cq* ibv_create_cq(struct ibv_context* shown, int entries, void* context,
                             struct ibv_comp_channel* channel, int vector) {
  (void)vector;
  struct queue* made = calloc(1, sizeof *made);
  made->shown.context = shown;
  made->shown.cq_context = context;
  made->shown.channel = channel;
  made->shown.cqe = entries;
  return &made->shown;
}
int ibv_destroy_cq(struct ibv_cq* queue) {
  free(queue);
  return 0;
}

struct ibv_qp* ibv_create_qp(struct ibv_pd* domain, struct ibv_qp_init_attr* init) {
  struct ibv_qp* made = calloc(1, sizeof *made);
  made->context = domain->context;
  made->qp_context = init->qp_context;
  made->pd = domain;
  made->send_cq = init->send_cq;
  made->recv_cq = init->recv_cq;
  made->qp_type = init->qp_type;
  made->qp_num = next_number++;
  return made;
}
int ibv_modify_qp(struct ibv_qp* pair, struct ibv_qp_attr* attributes, int mask) {
  (void)pair, (void)attributes, (void)mask;
  return 0;
}
int ibv_destroy_qp(struct ibv_qp* pair) {
  free(pair);
  return 0;
}

struct ibv_ah* ibv_create_ah(struct ibv_pd* domain, struct ibv_ah_attr* attributes) {
  (void)attributes;
  struct ibv_ah* made = calloc(1, sizeof *made);
  made->context = domain->context;
  made->pd = domain;
  return made;
}
int ibv_destroy_ah(struct ibv_ah* handle) {
  free(handle);
  return 0;
}
