// A management library with two GPUs, for run_monitor_test.cc and the pretended
// GPU: the entry points that trainer/machine/nvml.cc looks for, with fixed
// answers, and those that LibTorch does.

#include <strings.h>

#include <cstring>

namespace {
int gpu = 0;
unsigned long long energy_mj = 1'000'000;
}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  // Either domain has its zeros, or some of them.
  const size_t length = std::strlen(bus_id);
  const char* const bus = bus_id + (length < 7 ? 0 : length - 7);
  if (::strcasecmp(bus, "3B:00.0") != 0 && ::strcasecmp(bus, "3C:00.0") != 0) {
    return 6;  // not found
  }
  *device = &gpu;
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::strncpy(text, "580.1", size);
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return device == &gpu ? 0 : 2;
}
int nvmlDeviceGetClockInfo(void*, unsigned which, unsigned* mhz) {
  if (which != 1 && which != 2) return 2;
  *mhz = which == 1 ? 1980 : 2619;
  return 0;
}
int nvmlDeviceGetTemperature(void*, unsigned sensor, unsigned* celsius) {
  *celsius = 61;
  return sensor == 0 ? 0 : 2;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 512'300;
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void*,
                                        unsigned long long* millijoules) {
  *millijoules = energy_mj;
  energy_mj += 2'500;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*,
                                              unsigned long long* reasons) {
  *reasons = 0x04 | 0x40 | 0x01;  // power cap, heat, idle
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) {
  *count = 2;
  return 7;  // no room for them
}
// LibTorch's, on the way to its message that memory is short.
int nvmlDeviceGetComputeRunningProcesses(void*, unsigned* count, void*) {
  *count = 0;
  return 0;
}
int nvmlDeviceGetGpuFabricInfoV(void*, void*) { return 3; }  // not supported
int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, void*) { return 3; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, void*) { return 3; }
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return 0;
}
}
