// Asks an adapter for what cannot be checkpointed, and says what it answers. Fails if something is
// granted.
//
//   refusals DEVICE            asks
//   refusals DEVICE hold       makes the file "held" with the adapter open, and waits for "go"
//   refusals DEVICE hold cm    the same, and a channel of librdmacm
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int granted;

static void must(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "refusals: %s (%s)\n", what, strerror(errno));
  exit(1);
}

// `error` is what the call has left, and 0 if it has given something.
static void say(const char* what, int error) {
  printf("%s: %s\n", what, error == 0 ? "granted" : strerror(error));
  granted |= error != EOPNOTSUPP && error != ENOSYS;
}

static int error_of(const void* given) { return given == NULL ? errno : 0; }

static struct ibv_context* open_device(const char* name) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  struct ibv_context* context = NULL;
  for (int i = 0; list && list[i]; ++i) {
    if (strcmp(ibv_get_device_name(list[i]), name) == 0) context = ibv_open_device(list[i]);
  }
  must(context != NULL, name);
  ibv_free_device_list(list);
  return context;
}

static void ask_for_memory(struct ibv_context* context, struct ibv_pd* domain) {
  static char buffer[4096];
  say("memory windows", error_of(ibv_alloc_mw(domain, IBV_MW_TYPE_1)));
  struct ibv_alloc_dm_attr device_memory = {.length = 64};
  say("memory of the device", error_of(ibv_alloc_dm(context, &device_memory)));
  say("memory of other devices", error_of(ibv_reg_dmabuf_mr(domain, 0, 64, 0, 0, 0)));
  say("memory without limits",
      error_of(ibv_reg_mr(domain, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND)));
  struct ibv_mr* region = ibv_reg_mr(domain, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
  must(region != NULL, "registering memory");
  errno = 0;
  const int changed = ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, domain, buffer,
                                   sizeof buffer, IBV_ACCESS_REMOTE_READ);
  say("changing a region", changed == 0 ? 0 : errno);
}

static void ask_for_queues(struct ibv_context* context, struct ibv_pd* domain) {
  struct ibv_xrcd_init_attr shared = {
      .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
  say("XRC", error_of(ibv_open_xrcd(context, &shared)));
  struct ibv_cq_init_attr_ex stamped = {.cqe = 4, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
  say("time stamps", error_of(ibv_create_cq_ex(context, &stamped)));
  struct ibv_cq* queue = ibv_create_cq(context, 4, NULL, NULL, 0);
  must(queue != NULL, "making a completion queue");
  struct ibv_qp_init_attr raw = {
      .send_cq = queue, .recv_cq = queue, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RAW_PACKET};
  say("raw packets", error_of(ibv_create_qp(domain, &raw)));
  struct ibv_qp_init_attr_ex invalidating = {
      .send_cq = queue,
      .recv_cq = queue,
      .cap = {1, 1, 1, 1, 0},
      .qp_type = IBV_QPT_RC,
      .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
      .pd = domain,
      .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_LOCAL_INV};
  say("invalidating keys", error_of(ibv_create_qp_ex(context, &invalidating)));
  raw.qp_type = IBV_QPT_RC;
  struct ibv_qp* pair = ibv_create_qp(domain, &raw);
  must(pair != NULL, "making a queue pair");
  struct ibv_flow_attr flow = {.type = IBV_FLOW_ATTR_NORMAL, .port = 1};
  say("flow steering", error_of(ibv_create_flow(pair, &flow)));
  struct ibv_qp_attr alternate = {.alt_port_num = 1};
  say("alternate paths", ibv_modify_qp(pair, &alternate, IBV_QP_ALT_PATH));
}

static void hold(int with_connections) {
  if (with_connections) {
    void* const library = dlopen("librdmacm.so.1", RTLD_NOW);
    must(library != NULL, "loading librdmacm");
    void* (*make_channel)(void) = (void* (*)(void))dlsym(library, "rdma_create_event_channel");
    must(make_channel != NULL && make_channel() != NULL, "making a channel of librdmacm");
  }
  FILE* const held = fopen("held", "w");
  must(held != NULL && fclose(held) == 0, "making the file held");
  while (access("go", F_OK) != 0) usleep(10000);
}

int main(int count, char** words) {
  must(count >= 2, "usage: refusals DEVICE [hold [cm]]");
  struct ibv_context* context = open_device(words[1]);
  if (count > 2) {
    hold(count > 3);
    return 0;
  }
  struct ibv_pd* domain = ibv_alloc_pd(context);
  must(domain != NULL, "making a protection domain");
  ask_for_memory(context, domain);
  ask_for_queues(context, domain);
  must(!granted, "something was granted, or refused for another reason");
  printf("refusals: passed\n");
  return 0;
}
