// A CUDA runtime without a GPU: memory is the host's, copies are done at once,
// kernels and products are counted and not run. With it LibTorch and the
// trainer go through all they do on a GPU, on a machine that has none, but for
// the numbers: tensors hold what was copied to them, or zeros.
//
// Built with stubs.py's into one library that stands for all of CUDA's, under
// each of their names. PRETEND_GPUS is how many there are (1), and
// PRETEND_GPU_BYTES the memory of each (80e9).

#include <cuda_runtime_api.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace {

int64_t Setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}
int Gpus() { return static_cast<int>(Setting("PRETEND_GPUS", 1)); }
size_t Capacity() {
  return static_cast<size_t>(Setting("PRETEND_GPU_BYTES", 80'000'000'000));
}

thread_local int current = 0;
thread_local cudaError_t last_error = cudaSuccess;
cudaError_t Fail(cudaError_t error) { return last_error = error; }

std::atomic<int64_t> launches{0};

struct Block {
  size_t size;
  cudaMemoryType type;
};
std::mutex blocks_mutex;
std::map<char*, Block> blocks;
size_t device_bytes = 0;

cudaError_t Allocate(void** pointer, size_t size, cudaMemoryType type) {
  const std::lock_guard lock(blocks_mutex);
  const bool device = type == cudaMemoryTypeDevice;
  if (device && device_bytes + size > Capacity()) {
    return Fail(cudaErrorMemoryAllocation);
  }
  // Zeros that take no memory until they are touched.
  void* block = nullptr;
  if (::posix_memalign(&block, 4096, size + 1) != 0) {
    return Fail(cudaErrorMemoryAllocation);
  }
  if (size < size_t{64} << 20) std::memset(block, 0, size);
  if (device) device_bytes += size;
  blocks[static_cast<char*>(block)] = {size, type};
  *pointer = block;
  return cudaSuccess;
}

cudaError_t Release(void* pointer) {
  const std::lock_guard lock(blocks_mutex);
  const auto found = blocks.find(static_cast<char*>(pointer));
  if (found == blocks.end()) {
    return pointer == nullptr ? cudaSuccess : Fail(cudaErrorInvalidValue);
  }
  if (found->second.type == cudaMemoryTypeDevice) {
    device_bytes -= found->second.size;
  }
  blocks.erase(found);
  std::free(pointer);
  return cudaSuccess;
}

cudaError_t Launch(dim3 grid, dim3 block) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 ||
      block.x * block.y * block.z == 0 || block.x * block.y * block.z > 1024) {
    return Fail(cudaErrorInvalidConfiguration);
  }
  ++launches;
  return cudaSuccess;
}

struct Event {
  bool timed;
  double recorded_ms = 0;
};
Event* Of(cudaEvent_t event) { return reinterpret_cast<Event*>(event); }
double NowMs() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 +
         static_cast<double>(time.tv_nsec) * 1e-6;
}

// A launch between its two halves.
struct Configuration {
  dim3 grid;
  dim3 block;
  size_t shared;
  void* stream;
};
thread_local Configuration configuration;

int SomeHandle(void** handle) {
  static int nothing;
  *handle = &nothing;
  return 0;
}

}  // namespace

extern "C" {

// Kernels and products so far, of all threads.
int64_t pretend_gpu_launches() { return launches; }

// Devices.

cudaError_t cudaGetDeviceCount(int* count) {
  *count = Gpus();
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= Gpus()) return Fail(cudaErrorInvalidDevice);
  current = device;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(
      text, static_cast<size_t>(size), "0000:%02X:00.0", 0x3b + device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}
// The properties of an H100 SXM, as far as LibTorch asks.
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  *p = {};
  std::strcpy(p->name, "Pretended H100");
  p->uuid.bytes[0] = static_cast<char>(device + 1);
  p->pciBusID = 0x3b + device;
  p->major = 9;
  p->totalGlobalMem = Capacity();
  p->multiProcessorCount = 132;
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->maxThreadsPerMultiProcessor = 2048;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 0x7fffffff;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->sharedMemPerBlock = 49152;
  p->sharedMemPerBlockOptin = 232448;
  p->sharedMemPerMultiprocessor = 233472;
  p->l2CacheSize = 50 << 20;
  p->memoryBusWidth = 5120;
  p->textureAlignment = 512;
  p->concurrentKernels = p->unifiedAddressing = p->canMapHostMemory = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int) {
  switch (what) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = 132;
      break;
    case cudaDevAttrWarpSize:
      *value = 32;
      break;
    case cudaDevAttrMaxThreadsPerBlock:
      *value = 1024;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = 2048;
      break;
    case cudaDevAttrMaxGridDimX:
      *value = 0x7fffffff;
      break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      *value = 65535;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = 49152;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = 232448;
      break;
    default:
      *value = 0;
  }
  return cudaSuccess;
}

// Errors.

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "cudaSuccess" : "an error";
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "an error";
}

// Memory.

cudaError_t cudaMalloc(void** pointer, size_t size) {
  return Allocate(pointer, size, cudaMemoryTypeDevice);
}
cudaError_t cudaFree(void* pointer) { return Release(pointer); }
cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned) {
  return Allocate(pointer, size, cudaMemoryTypeHost);
}
cudaError_t cudaFreeHost(void* pointer) { return Release(pointer); }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const std::lock_guard lock(blocks_mutex);
  *total = Capacity();
  *free = Capacity() - device_bytes;
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind) {
  std::memmove(to, from, n);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t n, cudaMemcpyKind kind, cudaStream_t) {
  if (kind == cudaMemcpyDeviceToDevice) ++launches;
  std::memmove(to, from, n);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, size_t n) {
  std::memset(to, value, n);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t n, cudaStream_t) {
  ++launches;
  std::memset(to, value, n);
  return cudaSuccess;
}
cudaError_t cudaGetSymbolAddress(void** pointer, const void*) {
  static char symbol[1 << 20];
  *pointer = symbol;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                     const void* pointer) {
  const std::lock_guard lock(blocks_mutex);
  *attributes = {};
  auto* const at = static_cast<char*>(const_cast<void*>(pointer));
  auto after = blocks.upper_bound(at);
  if (after == blocks.begin()) return cudaSuccess;
  --after;
  if (at >= after->first + after->second.size) return cudaSuccess;
  attributes->type = after->second.type;
  attributes->devicePointer = at;
  if (after->second.type == cudaMemoryTypeHost) attributes->hostPointer = at;
  return cudaSuccess;
}

// Streams and events. All is done when it is asked for.

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = static_cast<cudaStream_t>(std::malloc(1));
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t,
                                  cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t,
                                     cudaStreamCaptureStatus* status,
                                     unsigned long long* id,
                                     cudaGraph_t*,
                                     const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**,
                                     size_t*) {
  *status = cudaStreamCaptureStatusNone;
  if (id != nullptr) *id = 0;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const bool timed = (flags & cudaEventDisableTiming) == 0;
  *event = reinterpret_cast<cudaEvent_t>(new Event{timed});
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete Of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  Of(event)->recorded_ms = NowMs();
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event,
                                     cudaStream_t stream,
                                     unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventElapsedTime(float* ms,
                                 cudaEvent_t begin,
                                 cudaEvent_t end) {
  // What CUDA refuses as well.
  if (!Of(begin)->timed || !Of(end)->timed || Of(begin)->recorded_ms == 0 ||
      Of(end)->recorded_ms == 0) {
    return Fail(cudaErrorInvalidResourceHandle);
  }
  *ms = static_cast<float>(Of(end)->recorded_ms - Of(begin)->recorded_ms);
  return cudaSuccess;
}

// Kernels.

void** __cudaRegisterFatBinary(void*) {
  static void* nothing;
  return &nothing;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
unsigned __cudaPushCallConfiguration(dim3 grid,
                                     dim3 block,
                                     size_t shared,
                                     cudaStream_t stream) {
  configuration = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid,
                                       dim3* block,
                                       size_t* shared,
                                       void* stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *static_cast<void**>(stream) = configuration.stream;
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(
    const void*, dim3 grid, dim3 block, void**, size_t, cudaStream_t) {
  return Launch(grid, block);
}
cudaError_t __cudaLaunchKernel(
    cudaKernel_t, dim3 grid, dim3 block, void**, size_t, cudaStream_t) {
  return Launch(grid, block);
}
cudaError_t cudaLaunchCooperativeKernel(
    const void*, dim3 grid, dim3 block, void**, size_t, cudaStream_t) {
  return Launch(grid, block);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config,
                                const void*,
                                void**) {
  return Launch(config->gridDim, config->blockDim);
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->binaryVersion = attributes->ptxVersion = 90;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          const void*,
                                                          int,
                                                          size_t) {
  *blocks = 2;
  return cudaSuccess;
}

// The driver, where LibTorch goes past the runtime. Every entry does nothing.

int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return 0;
}
int pretend_gpu_nothing() { return 0; }
cudaError_t cudaGetDriverEntryPointByVersion(
    const char*,
    void** entry,
    unsigned,
    unsigned long long,
    cudaDriverEntryPointQueryResult* result) {
  *entry = reinterpret_cast<void*>(&pretend_gpu_nothing);
  if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

// cuBLAS and cuDNN. A product is one launch.

int cublasCreate_v2(void** handle) { return SomeHandle(handle); }
int cublasLtCreate(void** handle) { return SomeHandle(handle); }
#define PRETEND_PRODUCT(name) \
  int name(...) {             \
    ++launches;               \
    return 0;                 \
  }
PRETEND_PRODUCT(cublasSgemm_v2)
PRETEND_PRODUCT(cublasSgemmStridedBatched)
PRETEND_PRODUCT(cublasGemmEx)
PRETEND_PRODUCT(cublasGemmStridedBatchedEx)
PRETEND_PRODUCT(cublasLtMatmul)
int cublasLtMatmulAlgoGetHeuristic(
    void*, void*, void*, void*, void*, void*, void*, int, void*, int* found) {
  *found = 1;
  return 0;
}
// Too old for attention, which then is LibTorch's own.
size_t cudnnGetVersion() { return 8900; }
size_t cudnnGetCudartVersion() { return CUDART_VERSION; }

// NCCL. Nothing is sent.

struct PretendCommunicator {
  int ranks;
  int rank;
};
struct PretendUniqueId {
  char bytes[128];
};
int ncclGetVersion(int* version) {
  *version = 22809;
  return 0;
}
int ncclGetUniqueId(PretendUniqueId* id) {
  std::memset(id->bytes, 1, sizeof id->bytes);
  return 0;
}
int ncclCommInitRankConfig(PretendCommunicator** communicator,
                           int ranks,
                           PretendUniqueId,
                           int rank,
                           void*) {
  *communicator = new PretendCommunicator{ranks, rank};
  return 0;
}
int ncclCommGetAsyncError(PretendCommunicator*, int* error) {
  *error = 0;
  return 0;
}
int ncclCommCount(const PretendCommunicator* communicator, int* ranks) {
  *ranks = communicator->ranks;
  return 0;
}
int ncclCommUserRank(const PretendCommunicator* communicator, int* rank) {
  *rank = communicator->rank;
  return 0;
}
const char* ncclGetErrorString(int) { return "no error"; }
const char* ncclGetLastError(PretendCommunicator*) { return "no error"; }

}  // extern "C"
