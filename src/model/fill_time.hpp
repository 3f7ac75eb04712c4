// The checkpoint-fill-time law: the least time that a machine needs to write its memory to its
// storage.
//
//   time = (memory written / capacity of the storage) x (time to fill a single device)
//
// Cao, Arya, Garg, Matott, Panda, Subramoni, Vienne, Cooperman, "System-level scalable
// checkpoint-restart for petascale computing" (2016), section III-D. The law assumes that all
// devices work at their full rate, and ignores the network in front of them: the same paper
// measured times 7 to 17 times as long.
#pragma once

namespace diapause::model {

struct Storage {
  double capacity_bytes = 0;      // capacity of all devices
  double device_bytes = 0;        // capacity of a single one
  double device_bytes_per_s = 0;  // rate of writing to a single one
};

// Returns the seconds to fill one device.
double device_fill_time_s(const Storage& storage);

// Returns the seconds to write so many bytes to all devices at once.
double fill_time_s(const Storage& storage, double written_bytes);

// Returns the rate of all devices together, in bytes per second, which the law assumes.
double storage_bytes_per_s(const Storage& storage);

}  // namespace diapause::model
