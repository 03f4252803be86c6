#include "trainer/device.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "model/error.h"
#include "trainer/cuda_module.h"

namespace trainfare::trainer {
namespace {

using model::InputError;

// Of the GPU in use; empty until one is opened.
std::string& GpuName() {
  static std::string name;
  return name;
}

std::filesystem::path ModulePath() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "lib" / "trainfare" /
         "libtrainfare_cuda.so";
}

at::Device OpenGpu() {
  const std::filesystem::path path = ModulePath();
  if (!std::filesystem::exists(path)) {
    throw InputError(
        "--device cuda: this build has no CUDA; configure it where the CUDA "
        "13 toolkit is");
  }
  // Never closed: LibTorch registers the operators of GPUs from it.
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) {
    throw InputError(fmt::format("--device cuda: {}", ::dlerror()));
  }
  const auto open = reinterpret_cast<decltype(&trainfare_cuda_open)>(
      ::dlsym(module, "trainfare_cuda_open"));
  ENSURE(open != nullptr, "the CUDA module has its entry point");
  std::array<char, 256> text{};
  if (open(0, text.data(), text.size()) != 0) {
    throw InputError(
        fmt::format("--device cuda: no GPU to run on: {}", text.data()));
  }
  GpuName() = text.data();
  return {at::kCUDA, 0};
}

}  // namespace

at::Device OpenDevice(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  if (name == "cuda") return OpenGpu();
  throw InputError(fmt::format("--device: expected cpu or cuda, got {}", name));
}

DeviceDescription Describe(at::Device device) {
  if (device.is_cuda()) return {GpuName(), "cuda", at::get_num_threads()};
  return {HostCpuName(), "cpu", at::get_num_threads()};
}

}  // namespace trainfare::trainer
