#include "hardware/models/gpu/instructions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "hardware/models/gpu/power.h"
#include "hardware/models/gpu/tiling.h"
#include "model/error.h"

namespace trainfare::hardware::models {
namespace {

using model::Kernel;
using model::KernelKind;

// A product on tensor cores of compute capability 7.0: four HMMA.884 steps are
// an 8 x 8 x 4 product in each quarter of a warp (Jia et al. 2018; Raihan et
// al. 2019: 16 of them for 16 x 16 x 16 with sums in fp32).
constexpr double kFlopsPerTensorInstruction = 512.0;
// Each result is scaled and narrowed, exchanged, and written 16 bytes at a
// time.
constexpr double kInstructionsAnOutput = 3.0;
constexpr double kFlopsAnOutput = 1.0;
// Adding to a result that is there: widen and multiply-add.
constexpr double kInstructionsAnAddend = 1.2;
constexpr double kThreads = static_cast<double>(kGpuThreadsPerWarp);

// What one thread of a kernel does, and for how many elements: counted in the
// machine code (SASS) for compute capability 7.0 of kernels of the form that
// the stack's source has, slow paths of divisions and roots not taken. Check:
// docs/models/counts.md, "Instructions";
// tests/hardware/models/gpu/gpu_instructions_test.cc.
struct ThreadForm {
  model::KernelName kernel;
  double elements = 0;      // of a thread
  double instructions = 0;  // executed by it
  double fp32_flops = 0;
  double fp16_flops = 0;
  double block = 0;  // threads
  // The bytes that a reduction reads an element as, by model/kernels.h.
  double read_bytes = 0;
};

// facebookresearch/fairseq on PyTorch's kernels: vectors of 4 elements where
// memory is contiguous, an element at a time where it is not.
constexpr std::array kFairseqForms = {
    ThreadForm{"embedding gather", 1, 34, 0, 0, 128},
    ThreadForm{"embedding scale", 4, 27, 4, 4, 128},
    ThreadForm{"embedding add", 4, 34, 8, 8, 128},
    ThreadForm{"dropout", 4, 97, 16, 4, 256},
    // Apex: Welford's sums, then the norm, an element at a time.
    ThreadForm{"layer norm", 8, 509, 219, 40, 128, 2},
    ThreadForm{"bias", 4, 110, 0, 0, 128},
    ThreadForm{"scale queries", 4, 27, 4, 4, 128},
    ThreadForm{"mask scores", 4, 110, 0, 0, 128},
    ThreadForm{"softmax", 2, 134, 38, 2, 128, 2},
    ThreadForm{"merge heads", 4, 110, 0, 0, 128},
    ThreadForm{"residual add", 4, 34, 8, 8, 128},
    ThreadForm{"gelu", 4, 27, 0, 4, 128},  // ReLU in translation
    ThreadForm{"loss", 8, 139, 104, 24, 1024, 2},
    ThreadForm{"gather target", 1, 34, 0, 0, 128},
    ThreadForm{"smooth loss", 4, 11, 4, 0, 512, 4},
    ThreadForm{"zero target gradient", 4, 10, 0, 0, 128},
    ThreadForm{"scatter target gradient", 1, 34, 0, 0, 128},
    ThreadForm{"loss gradient add", 4, 20, 8, 0, 128},
    ThreadForm{"loss gradient", 4, 67, 52, 0, 1024, 8},
    ThreadForm{"layer norm gradient", 1, 52, 10, 6, 128, 4},
    ThreadForm{"layer norm weight gradient", 1, 28, 5, 2, 128, 4},
    ThreadForm{"dropout gradient", 4, 38, 8, 4, 128},
    ThreadForm{"gelu gradient", 4, 38, 0, 8, 128},
    ThreadForm{"residual gradient add", 4, 34, 8, 8, 128},
    ThreadForm{"input gradient add", 4, 34, 8, 8, 128},
    ThreadForm{"bias gradient", 16, 62, 16, 16, 512, 2},
    ThreadForm{"split head gradients", 4, 110, 0, 0, 128},
    ThreadForm{"merge head gradients", 4, 110, 0, 0, 128},
    ThreadForm{"softmax gradient", 2, 73, 14, 4, 128, 4},
    ThreadForm{"mask gradient", 4, 110, 0, 0, 128},
    ThreadForm{"embedding scale gradient", 4, 27, 4, 4, 128},
    ThreadForm{"zero table gradient", 4, 10, 0, 0, 128},
    ThreadForm{"table gradient", 4, 54, 4, 8, 128},
    ThreadForm{"tied gradient add", 4, 34, 8, 8, 128},
    ThreadForm{"zero gradients", 4, 10, 0, 0, 128},
    ThreadForm{"unscale gradients", 4, 50, 0, 4, 128},
    ThreadForm{"gradient norm", 4, 11, 8, 0, 512},
    // Apex's fused Adam; three divisions and a root.
    ThreadForm{"optimizer", 4, 235, 194, 0, 512},
    ThreadForm{"narrow parameters", 4, 50, 0, 0, 128},
};

// bytedance/lightseq, lightseq/training/csrc/kernels: 16 bytes a thread, pairs
// of halves, random numbers whether anything is dropped or not.
constexpr std::array kLightSeqForms = {
    ThreadForm{"embedding gather", 8, 61, 0, 16, 128},
    ThreadForm{"dropout", 8, 177, 22, 16, 1024},
    ThreadForm{"layer norm", 8, 190, 76, 32, 128, 2},
    ThreadForm{"bias and head split", 8, 118, 0, 8, 128},
    ThreadForm{"mask and softmax", 1, 61, 14, 1, 32, 2},
    ThreadForm{"merge heads", 8, 94, 0, 0, 1024},
    ThreadForm{"bias, dropout and residual", 8, 213, 22, 32, 1024},
    ThreadForm{"bias and gelu", 8, 239, 22, 32, 1024},
    // An element at a time, read twice and three times.
    ThreadForm{"loss", 1, 27, 13, 2, 1024, 2},
    ThreadForm{"loss gradient", 1, 56, 32, 3, 1024, 2},
    ThreadForm{"layer norm gradient", 8, 184, 101, 34, 128, 4},
    ThreadForm{"layer norm weight gradient", 1, 29, 8, 4, 1024, 4},
    ThreadForm{"dropout gradient", 8, 80, 6, 16, 1024},
    ThreadForm{"gelu gradient", 1, 24, 3, 3, 1024},
    ThreadForm{"residual gradient add", 8, 28, 0, 8, 1024},
    ThreadForm{"bias gradient", 1, 7, 1, 1, 1024, 2},
    ThreadForm{"split head gradients", 8, 94, 0, 0, 1024},
    ThreadForm{"merge head gradients", 8, 94, 0, 0, 1024},
    ThreadForm{"dropout and softmax gradient", 1, 47, 8.75, 4, 128, 5},
    ThreadForm{"zero table gradient", 4, 10, 0, 0, 128},
    ThreadForm{"table gradient", 8, 61, 0, 16, 1024},
    ThreadForm{"widen parameters", 4, 50, 0, 4, 128},
    ThreadForm{"gradient norm", 4, 15, 8, 4, 512},
    ThreadForm{"optimizer", 1, 85, 40, 1, 1024},
};

const ThreadForm& FormOf(const model::Workload& workload,
                         const Kernel& kernel) {
  std::span<const ThreadForm> forms;
  if (workload.stack.fusion == model::Fusion::kFairseq) forms = kFairseqForms;
  if (workload.stack.fusion == model::Fusion::kLightSeq) forms = kLightSeqForms;
  for (const ThreadForm& form : forms) {
    if (form.kernel == kernel.name) return form;
  }
  throw model::InputError(
      fmt::format("instructions: nobody counted those of \"{}\" in stack {}",
                  kernel.name.text(),
                  ToText(workload.stack.fusion)));
}

// Products of a block with a bias behind them.
constexpr auto kWithBias =
    std::to_array<model::KernelName>({"query projection",
                                      "key projection",
                                      "value projection",
                                      "attention output projection",
                                      "feed-forward in",
                                      "feed-forward out"});

// Whether a product is added to a bias that was laid out for it.
bool AddsToBias(const model::Workload& workload, const Kernel& kernel) {
  return workload.stack.fusion == model::Fusion::kFairseq &&
         kernel.kind == KernelKind::kGemm &&
         std::find(kWithBias.begin(), kWithBias.end(), kernel.name) !=
             kWithBias.end();
}

// A product in tiles, each held by warps of R_w x C_w:
//
//   n = F / 512 (1 + 2 / R_w + 2 / C_w + 2 / R + 2 / C) + e m n / 32
//
//   F          FLOPs of all tiles, the padded ones among them
//   2 / R_w .. operands from shared memory, 16 bytes a thread
//   2 / R ..   operands into it: a load and a store of 16 bytes a thread
//   e          instructions an output
GpuInstructions OfProduct(const Device& device,
                          const model::Workload& workload,
                          const Kernel& kernel) {
  const model::GemmExtents& g = kernel.gemm;
  const auto peak = device.MatrixPeak(workload.precision);
  ENSURE(peak.has_value(), "a precision that the device does not have");
  const TileChoice choice =
      ChooseTile(g,
                 device,
                 EngineOf(device, workload.precision),
                 peak->base(),
                 static_cast<double>(BytesPerElement(workload.precision)));
  ENSURE(choice.tile != nullptr, "a product has a tile");
  const auto rows = static_cast<double>(choice.tile->rows);
  const auto columns = static_cast<double>(choice.tile->columns);
  const double warps_a_tile =
      static_cast<double>(choice.tile->threads) / kThreads;
  const double area = rows * columns / warps_a_tile;
  const double side = std::exp2(std::ceil(std::log2(area) / 2.0));
  const double other_side = area / side;
  const double tensor = 2.0 * choice.tiles * rows * columns *
                        static_cast<double>(g.k) / kFlopsPerTensorInstruction;
  const auto outputs = static_cast<double>(g.batch * g.m * g.n);
  const double adds = AddsToBias(workload, kernel) ? 1.0 : 0.0;
  GpuInstructions sum;
  sum.executed = tensor * (1.0 + 2.0 / side + 2.0 / other_side + 2.0 / rows +
                           2.0 / columns) +
                 (kInstructionsAnOutput + adds * kInstructionsAnAddend) *
                     outputs / kThreads;
  sum.fp32_flops = (kFlopsAnOutput + adds) * outputs;
  sum.fp16_flops = adds * outputs;
  sum.blocks = choice.tiles * choice.splits;
  sum.warps = sum.blocks * warps_a_tile;
  sum.resident_warps = choice.active_warps;
  return sum;
}

}  // namespace

GpuInstructions InstructionsOf(const Device& device,
                               const model::Workload& workload,
                               const Kernel& kernel) {
  if (kernel.matrix_flops > 0) return OfProduct(device, workload, kernel);
  const ThreadForm& form = FormOf(workload, kernel);
  const double elements =
      kernel.kind == KernelKind::kReduction
          ? static_cast<double>(kernel.bytes_read) / form.read_bytes
          : static_cast<double>(kernel.work_items);
  const double threads = elements / form.elements;
  GpuInstructions sum;
  sum.executed = form.instructions * threads / kThreads;
  sum.warps = std::max(1.0, threads / kThreads);
  sum.fp32_flops = form.fp32_flops * threads;
  sum.fp16_flops = form.fp16_flops * threads;
  sum.blocks = std::max(1.0, threads / form.block);
  sum.resident_warps = std::min(static_cast<double>(device.warps_per_core),
                                sum.warps / static_cast<double>(device.cores));
  return sum;
}

}  // namespace trainfare::hardware::models
