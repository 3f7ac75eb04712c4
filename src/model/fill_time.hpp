// The checkpoint-fill-time law: how long a machine needs at least to write its memory to its storage.
//
//   time = (memory written / capacity of the storage) x (time to fill a single device)
//
// Cao, Arya, Garg, Matott, Panda, Subramoni, Vienne, Cooperman, "System-level scalable checkpoint-restart for petascale
// computing" (2016), section III-D. It assumes that all devices take part at their full rate, and knows nothing of the
// network before them: the same paper measured times eight to ten times as long.
#pragma once

namespace diapause::model {

struct Storage {
  double capacity_bytes = 0;      // of all devices
  double device_bytes = 0;        // of a single one
  double device_bytes_per_s = 0;  // written, by a single one
};

// Seconds to fill one device.
double device_fill_time_s(const Storage& storage);

// Seconds to write so many bytes to all devices at once.
double fill_time_s(const Storage& storage, double written_bytes);

// Bytes a second of all devices together, which is what the law assumes.
double storage_bytes_per_s(const Storage& storage);

}  // namespace diapause::model
