#include "model/rates.hpp"

#include <algorithm>

namespace diapause::model {

double assumed_storage_mb_s(std::uint32_t nodes) { return std::min(500.0 * nodes, 100000.0); }

LevelTimes times_at_rates(int level, const JobSize& job, const Rates& rates) {
  const double node_mb = job.bytes / 1e6 / std::max(job.nodes, 1U);
  const double copy_s = node_mb / rates.memory_mb_s;
  const double send_s = node_mb / rates.network_mb_s;
  const double data_nodes = std::max(1.0, 1.0 * job.group_nodes - job.parity);
  if (level == 1) return {copy_s, 0, copy_s};
  if (level == 2) return {copy_s, send_s, send_s};
  if (level == 3) return {copy_s, send_s * (1 + job.parity / data_nodes), send_s * data_nodes};
  const double storage_s = job.bytes / 1e6 / rates.storage_mb_s;
  return {copy_s, storage_s, storage_s};
}

Powers assumed_powers(double nodes, double idle_w, double busy_w) {
  const double more_w = busy_w - idle_w;
  const double waiting_w = nodes * (idle_w + 0.25 * more_w);
  return {nodes * busy_w, waiting_w, waiting_w, nodes * idle_w, nodes * 0.05 * more_w};
}

}  // namespace diapause::model
