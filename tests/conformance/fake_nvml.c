// NVIDIA's library as far as the meter uses it, with two boards that a test drives.
struct board {
  unsigned long long energy_mj;
  unsigned power_mw;
  int energy_error;
};

#define EXPORT __attribute__((visibility("default")))

EXPORT struct board fake_nvml_boards[2];
EXPORT int fake_nvml_init_error;

EXPORT int nvmlInit_v2(void) { return fake_nvml_init_error; }
EXPORT int nvmlShutdown(void) { return 0; }

EXPORT const char* nvmlErrorString(int error) {
  switch (error) {
    case 3:
      return "Not Supported";
    case 4:
      return "Insufficient Permissions";
    default:
      return "GPU is lost";
  }
}

EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &fake_nvml_boards[index];
  return 0;
}

EXPORT int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* energy_mj) {
  const struct board* board = device;
  *energy_mj = board->energy_mj;
  return board->energy_error;
}

EXPORT int nvmlDeviceGetPowerUsage(void* device, unsigned* power_mw) {
  const struct board* board = device;
  *power_mw = board->power_mw;
  return board->energy_error == 15 ? 15 : 0;
}
