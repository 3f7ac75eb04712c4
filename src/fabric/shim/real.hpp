// The functions of the library that this one stands before.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace diapause::fabric {

// All that programs may call with objects of this library.
// clang-format off
#define DIAPAUSE_VERBS(X) \
  X(ibv_get_device_list) X(ibv_free_device_list) X(ibv_get_device_guid) X(ibv_get_device_index) \
  X(ibv_open_device) X(ibv_close_device) X(ibv_get_async_event) \
  X(ibv_ack_async_event) X(ibv_query_device) \
  X(ibv_query_port) X(ibv_query_gid) X(ibv_query_pkey) X(ibv_get_pkey_index) X(ibv_alloc_pd) \
  X(ibv_dealloc_pd) X(ibv_reg_mr) X(ibv_dereg_mr) \
  X(ibv_create_comp_channel) X(ibv_destroy_comp_channel) \
  X(ibv_create_cq) X(ibv_resize_cq) X(ibv_destroy_cq) X(ibv_get_cq_event) X(ibv_ack_cq_events) \
  X(ibv_create_srq) X(ibv_modify_srq) X(ibv_query_srq) \
  X(ibv_destroy_srq) X(ibv_create_qp) X(ibv_query_qp) \
  X(ibv_modify_qp) X(ibv_destroy_qp) X(ibv_create_ah) \
  X(ibv_init_ah_from_wc) X(ibv_create_ah_from_wc) \
  X(ibv_destroy_ah) X(ibv_attach_mcast) X(ibv_detach_mcast) X(ibv_reg_mr_iova) X(ibv_reg_mr_iova2) \
  X(ibv_rereg_mr) X(ibv_reg_dmabuf_mr) X(ibv_qp_to_qp_ex) \
  X(_ibv_query_gid_ex) X(_ibv_query_gid_table) \
  X(ibv_import_pd) X(ibv_import_mr) X(ibv_import_dm) X(ibv_query_ece) X(ibv_set_ece) \
  X(ibv_query_qp_data_in_order) X(ibv_resolve_eth_l2_from_gid)
// clang-format on

struct Real {
#define DIAPAUSE_POINTER(name) decltype(&::name) name = nullptr;
  DIAPAUSE_VERBS(DIAPAUSE_POINTER)
#undef DIAPAUSE_POINTER
  // Returns the kind of a GID. Only rdma-core has it, and no header declares it.
  int (*ibv_query_gid_type)(ibv_context*, std::uint8_t, unsigned, int*) = nullptr;

  // Looks for all functions. A function that an older library lacks stays null.
  static Real find();
};

}  // namespace diapause::fabric
