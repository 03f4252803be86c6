#include "trainer/device/device.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "model/error.h"
#include "trainer/kernels/cuda_module.h"

namespace trainfare::trainer {
namespace {

using model::InputError;

struct Gpu {
  std::string name;
  std::string bus_id;
};
// The GPU in use; empty until one is opened.
Gpu& OpenedGpu() {
  static Gpu gpu;
  return gpu;
}

// The handle of the CUDA module; null until a GPU is opened.
void*& Module() {
  static void* module = nullptr;
  return module;
}

template <class Function>
Function* ModuleFunction(const char* name) {
  ENSURE(Module() != nullptr, "a GPU is open");
  const auto function = reinterpret_cast<Function*>(::dlsym(Module(), name));
  ENSURE(function != nullptr, "the CUDA module has its entry points");
  return function;
}

std::filesystem::path ModulePath() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "lib" / "trainfare" /
         "libtrainfare_cuda.so";
}

at::Device OpenGpu(int number) {
  const std::filesystem::path path = ModulePath();
  if (!std::filesystem::exists(path)) {
    throw InputError(
        "--device cuda: this build has no CUDA; configure it where the CUDA "
        "13 toolkit is");
  }
  // The driver is there where a GPU is; what else is missing matters only then.
  if (::dlopen("libcuda.so.1", RTLD_NOW) == nullptr) {
    throw InputError("--device cuda: no GPU to run on: no NVIDIA driver here");
  }
  // Never closed: LibTorch registers the operators of GPUs from it.
  Module() = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (Module() == nullptr) {
    throw InputError(
        fmt::format("--device cuda: {}; LibTorch's CUDA libraries are those of "
                    "the NVIDIA wheels that torch 2.11 names",
                    ::dlerror()));
  }
  std::array<char, 256> text{};
  std::array<char, 32> bus_id{};
  if (ModuleFunction<decltype(trainfare_cuda_open)>("trainfare_cuda_open")(
          number, text.data(), text.size(), bus_id.data(), bus_id.size()) !=
      0) {
    throw InputError(
        fmt::format("--device cuda: no GPU to run on: {}", text.data()));
  }
  OpenedGpu() = {text.data(), bus_id.data()};
  return {at::kCUDA, static_cast<at::DeviceIndex>(number)};
}

}  // namespace

at::Device OpenDevice(const std::string& name, int number) {
  if (name == "cpu") return at::kCPU;
  if (name == "cuda") return OpenGpu(number);
  throw InputError(fmt::format("--device: expected cpu or cuda, got {}", name));
}

c10d::Backend* OpenNccl(c10d::Store* store, int rank, int world_size) {
  std::array<char, 256> text{};
  c10d::Backend* group = ModuleFunction<decltype(trainfare_cuda_nccl)>(
      "trainfare_cuda_nccl")(store, rank, world_size, text.data(), text.size());
  if (group == nullptr) {
    throw InputError(fmt::format("NCCL: {}", text.data()));
  }
  return group;
}

void FusedAdanOnGpu(const std::vector<AdanTensor>& tensors,
                    const AdanScalars& scalars) {
  static const auto launch =
      ModuleFunction<decltype(trainfare_cuda_adan)>("trainfare_cuda_adan");
  std::array<char, 256> text{};
  if (launch(
          tensors.data(), tensors.size(), &scalars, text.data(), text.size()) !=
      0) {
    throw std::runtime_error(fmt::format("fused Adan: {}", text.data()));
  }
}

void FusedAdamWOnGpu(const std::vector<AdamWTensor>& tensors,
                     const AdamWScalars& scalars) {
  static const auto launch =
      ModuleFunction<decltype(trainfare_cuda_adamw)>("trainfare_cuda_adamw");
  std::array<char, 256> text{};
  if (launch(
          tensors.data(), tensors.size(), &scalars, text.data(), text.size()) !=
      0) {
    throw std::runtime_error(fmt::format("fused AdamW: {}", text.data()));
  }
}

namespace {

void RunFused(FusedOperation operation, bool backward, const void* arguments) {
  static const auto launch =
      ModuleFunction<decltype(trainfare_cuda_fused)>("trainfare_cuda_fused");
  std::array<char, 256> text{};
  if (launch(operation, backward, arguments, text.data(), text.size()) != 0) {
    throw std::runtime_error(fmt::format("fused layers: {}", text.data()));
  }
}

}  // namespace

void FusedForwardOnGpu(const BiasActivation& arguments) {
  RunFused(FusedOperation::kBiasActivation, false, &arguments);
}
void FusedBackwardOnGpu(const BiasActivation& arguments) {
  RunFused(FusedOperation::kBiasActivation, true, &arguments);
}
void FusedForwardOnGpu(const AddNorm& arguments) {
  RunFused(FusedOperation::kAddNorm, false, &arguments);
}
void FusedBackwardOnGpu(const AddNorm& arguments) {
  RunFused(FusedOperation::kAddNorm, true, &arguments);
}
void FusedForwardOnGpu(const SoftmaxDropout& arguments) {
  RunFused(FusedOperation::kSoftmaxDropout, false, &arguments);
}
void FusedBackwardOnGpu(const SoftmaxDropout& arguments) {
  RunFused(FusedOperation::kSoftmaxDropout, true, &arguments);
}

std::vector<std::string> DescribeDevices() {
  using Json = nlohmann::ordered_json;
  const auto line = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::vector<std::string> lines;
  const DeviceDescription processor = Describe(at::kCPU);
  lines.push_back(line({{"kind", processor.kind},
                        {"name", processor.name},
                        {"threads", processor.threads}}));
  for (int number = 0;; ++number) {
    try {
      const DeviceDescription gpu = Describe(OpenDevice("cuda", number));
      lines.push_back(line({{"kind", gpu.kind},
                            {"name", gpu.name},
                            {"number", number},
                            {"bus_id", gpu.bus_id}}));
    } catch (const InputError& error) {
      // Past the last one there is nothing to say.
      if (number == 0) {
        lines.push_back(line({{"kind", "none"}, {"reason", error.what()}}));
      }
      return lines;
    }
  }
}

DeviceDescription Describe(at::Device device) {
  if (device.is_cuda()) {
    const Gpu& gpu = OpenedGpu();
    return {gpu.name, "cuda", at::get_num_threads(), gpu.bus_id};
  }
  return {HostCpuName(), "cpu", at::get_num_threads(), ""};
}

}  // namespace trainfare::trainer
