#include "model/fill_time.hpp"

namespace diapause::model {

double device_fill_time_s(const Storage& storage) {
  return storage.device_bytes / storage.device_bytes_per_s;
}

double fill_time_s(const Storage& storage, double written_bytes) {
  return written_bytes / storage.capacity_bytes * device_fill_time_s(storage);
}

double storage_bytes_per_s(const Storage& storage) {
  return storage.capacity_bytes / storage.device_bytes * storage.device_bytes_per_s;
}

}  // namespace diapause::model
