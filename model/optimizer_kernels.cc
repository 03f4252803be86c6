#include "model/optimizer_kernels.h"

#include <map>
#include <optional>
#include <utility>

#include "model/error.h"
#include "model/multi_tensor.h"
#include "model/muon.h"
#include "model/rounding.h"
#include "model/sharding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model {
namespace {

// A pass over all parameters that moves so many bytes an element and does one
// operation on each.
void AppendSweep(KernelName name,
                 int64_t parameters,
                 int64_t launches,
                 int64_t read_bytes,
                 int64_t written_bytes,
                 std::vector<Kernel>& kernels) {
  ENSURE(launches >= 1, "a sweep over tensors is launched");
  Kernel kernel;
  kernel.kind = KernelKind::kCopy;
  kernel.name = name;
  kernel.launches = launches;
  kernel.bytes_read = read_bytes * parameters / kernel.launches;
  kernel.bytes_written = written_bytes * parameters / kernel.launches;
  kernel.parameter_bytes = kernel.bytes();
  kernel.parameter_bytes_written = kernel.bytes_written;
  kernel.vector_flops = parameters / kernel.launches;
  kernel.work_items = parameters / kernel.launches;
  kernels.push_back(kernel);
}

// Fairseq's masters are one tensor: gradients and parameters are copied to and
// from it a tensor at a time, the rest is one kernel an operation.
bool FlatMasters(const Workload& w) {
  return KeepsMasters(w) && RulesOf(w).flat_masters;
}

// LightSeq2's Adam under Fairseq's memory-efficient fp16: no masters; narrow
// parameters are widened before the update and written back by it.
bool WidensParameters(const Workload& w) {
  return RulesOf(w).widens_parameters && w.architecture.two_sided() &&
         BytesPerElement(w.precision) < 4;
}

// The whole update in one pass that reads narrow gradients and writes narrow
// parameters.
bool OnePassWithMasters(const Workload& w) {
  return MastersInUpdate(w) && !MastersAreShard(w) &&
         w.optimizer.implementation == OptimizerImplementation::kFused;
}

// Tensors that are updated together: all of them, or those of a layer with or
// without weight decay.
std::vector<std::vector<ParameterTensor>> GroupsOf(const Workload& w) {
  if (!w.optimizer.by_layer) return {TrainableTensorsOf(w)};
  std::map<std::pair<int64_t, bool>, std::vector<ParameterTensor>> groups;
  for (const ParameterTensor& tensor : TrainableTensorsOf(w)) {
    // Biases and LayerNorm do not decay.
    const std::pair group(tensor.layer, tensor.columns > 1);
    groups[group].push_back(tensor);
  }
  std::vector<std::vector<ParameterTensor>> list;
  list.reserve(groups.size());
  for (auto& [key, tensors] : groups) list.push_back(std::move(tensors));
  return list;
}

// What is updated alike, of all that trains.
struct UpdatedTensors {
  int64_t elements = 0;  // of one rank
  int64_t count = 0;
};

int64_t PackedLaunches(const Workload& w,
                       int64_t tensors,
                       std::optional<int64_t> lists) {
  // Their number alone is known without listing them.
  if (!lists && !w.optimizer.by_layer) {
    return CeilDivide(tensors, kTensorsPerLaunch);
  }
  int64_t launches = 0;
  for (const std::vector<ParameterTensor>& group : GroupsOf(w)) {
    launches +=
        lists
            ? static_cast<int64_t>(MultiTensorLaunches(group, *lists).size())
            : CeilDivide(static_cast<int64_t>(group.size()), kTensorsPerLaunch);
  }
  return launches;
}

// Some operations of an update that follow each other over every tensor.
struct UpdatePass {
  KernelName name;
  KernelKind kind = KernelKind::kOptimizer;
  int64_t operations = 1;
  int64_t tensors_read = 0;  // summed over the operations
  int64_t tensors_written = 0;
  int64_t flops = 0;    // an element
  int64_t special = 0;  // an element
  // The lists of a multi-tensor kernel; without them its launches are those of
  // a list of kTensorsPerLaunch.
  std::optional<int64_t> lists = std::nullopt;
};

// bitsandbytes updates state of 8 bits in one kernel a tensor, whatever the
// framework does with others.
bool InOnePass(const Optimizer& optimizer) {
  return optimizer.implementation == OptimizerImplementation::kFused ||
         optimizer.state_bits == 8;
}

// What a launch moves less where state is in few bits, each way.
int64_t LessState(const Workload& w, int64_t elements) {
  const int64_t numbers = OperationsOf(w).state_tensors * elements;
  return numbers * BytesOfState(w) - StateBytesOf(w, numbers);
}

std::vector<UpdatePass> UpdatePassesOf(const Workload& w) {
  const OptimizerOperations o = OperationsOf(w);
  const bool adan = w.optimizer.kind == OptimizerKind::kAdan;
  if (!InOnePass(w.optimizer)) {
    return {{.name = "optimizer",
             .operations = o.operations,
             .tensors_read = o.tensors_read,
             .tensors_written = o.tensors_written,
             .flops = o.flops,
             .special = o.special}};
  }
  std::vector<UpdatePass> passes = {{.name = "optimizer",
                                     .tensors_read = o.fused_tensors_read,
                                     .tensors_written = o.fused_tensors_written,
                                     .flops = o.flops,
                                     .special = o.special}};
  // The trainer's own kernel keeps the last gradient in that pass.
  if (!adan || OnePassWithMasters(w)) return passes;
  // Parameters, gradients, three moments and the last gradient.
  passes.front().lists = 6;
  // The fused Adan keeps the gradient for the next difference in two
  // operations of the framework: d = 0, d -= g.
  passes.push_back({.name = "zero the last gradient",
                    .kind = KernelKind::kElementwise,
                    .tensors_written = 1,
                    .lists = 1});
  passes.push_back({.name = "keep the gradient",
                    .kind = KernelKind::kElementwise,
                    .tensors_read = 2,
                    .tensors_written = 1,
                    .flops = 2,
                    .lists = 2});
  return passes;
}

int64_t LaunchesOf(const Workload& w,
                   int64_t tensors,
                   const UpdatePass& pass,
                   FusedAccess access) {
  if (FlatMasters(w)) return pass.operations;
  if (OnePassWithMasters(w) && access == FusedAccess::kAllTensors) {
    return CeilDivide(tensors, kTensorsPerFusedLaunch);
  }
  if (w.optimizer.state_bits == 8) return tensors;
  if (w.optimizer.in_backward) {
    return InOnePass(w.optimizer) ? tensors : pass.operations * tensors;
  }
  if (w.optimizer.implementation == OptimizerImplementation::kForLoop ||
      (w.optimizer.implementation == OptimizerImplementation::kFused &&
       access == FusedAccess::kOneTensor)) {
    return pass.operations * tensors;
  }
  return pass.operations * PackedLaunches(w, tensors, pass.lists);
}

// Launches of a pass over so many elements, alike: the sums over all of them
// are those of the whole pass, to within one byte a launch. `width`: bytes of
// an element of what is updated.
Kernel KernelOf(const UpdatePass& pass,
                int64_t elements,
                int64_t launches,
                int64_t width) {
  ENSURE(launches >= 1, "a pass over tensors is launched");
  Kernel kernel;
  kernel.kind = pass.kind;
  kernel.name = pass.name;
  kernel.launches = launches;
  kernel.bytes_read = elements * width * pass.tensors_read / launches;
  kernel.bytes_written = elements * width * pass.tensors_written / launches;
  kernel.vector_flops = pass.flops * elements / launches;
  kernel.special_ops = pass.special * elements / launches;
  kernel.work_items = elements / launches;
  return kernel;
}

// With momentum: m = mu m + g; p -= lr m.
constexpr OptimizerOperations kSgdOperations = {.operations = 2,
                                                .tensors_read = 4,
                                                .tensors_written = 2,
                                                .fused_tensors_read = 3,
                                                .fused_tensors_written = 2,
                                                .flops = 4,
                                                .special = 0,
                                                .state_tensors = 1};
// Loshchilov & Hutter 2019, as PyTorch's single-tensor path runs it:
// p *= 1 - lr wd (1 read, 1 write); m lerp g (2, 1); v *= b2 (1, 1);
// v += (1 - b2) g g (2, 1); d = sqrt v (1, 1); d /= c (1, 1);
// d += eps (1, 1); p -= s m / d (3, 1).
constexpr OptimizerOperations kAdamWOperations = {.operations = 8,
                                                  .tensors_read = 12,
                                                  .tensors_written = 8,
                                                  .fused_tensors_read = 4,
                                                  .fused_tensors_written = 3,
                                                  .flops = 14,
                                                  .special = 2,
                                                  .state_tensors = 2};
// Xie et al. 2022, algorithm 1, a line at a time: g *= clip (1 read, 1
// write); d += g (2, 1); m *= b1 (1, 1); m += g (2, 1); v *= b2 (1, 1);
// v += d (2, 1); d *= b2 (1, 1); d += g (2, 1); n *= b3 (1, 1);
// n += d d (2, 1); s = sqrt n (1, 1); s /= c (1, 1); s += eps (1, 1);
// p *= decay (1, 1); p -= m / s (3, 1); p -= v / s (3, 1); d = 0 (0, 1);
// d -= g (2, 1). One pass clips on the fly and leaves the last two out.
constexpr OptimizerOperations kAdanOperations = {.operations = 18,
                                                 .tensors_read = 27,
                                                 .tensors_written = 18,
                                                 .fused_tensors_read = 6,
                                                 .fused_tensors_written = 5,
                                                 .flops = 26,
                                                 .special = 2,
                                                 .state_tensors = 4};
// You et al. 2020: Adam's moments, then two norms a tensor.
constexpr OptimizerOperations kLambOperations = {.operations = 12,
                                                 .tensors_read = 17,
                                                 .tensors_written = 10,
                                                 .fused_tensors_read = 7,
                                                 .fused_tensors_written = 4,
                                                 .flops = 20,
                                                 .special = 2,
                                                 .state_tensors = 2};
// Chen et al. 2023, algorithm 2, as its authors' PyTorch runs it:
// p *= 1 - lr wd (1 read, 1 write); u = b1 m (1, 1); u += (1 - b1) g (2, 1);
// u = sign u (1, 1); p -= lr u (2, 1); m *= b2 (1, 1); m += (1 - b2) g (2, 1).
constexpr OptimizerOperations kLionOperations = {.operations = 7,
                                                 .tensors_read = 10,
                                                 .tensors_written = 7,
                                                 .fused_tensors_read = 3,
                                                 .fused_tensors_written = 2,
                                                 .flops = 10,
                                                 .special = 0,
                                                 .state_tensors = 1};
// Shazeer & Stern 2018, algorithm 4, as Transformers runs it without momentum:
// u = g g (1 read, 1 write); u += eps (1, 1); means of rows and of columns (2
// read); u = their outer product (0, 1); u *= g (2, 1); its norm (1 read);
// u /= c (1, 1); p's norm (1 read); u *= lr (1, 1); p -= u (2, 1). A compiler
// cannot go on before it has a mean or a norm: g for the means, g and p for the
// norms, g and p for the update.
constexpr OptimizerOperations kAdafactorOperations = {
    .operations = 11,
    .tensors_read = 12,
    .tensors_written = 7,
    .fused_tensors_read = 5,
    .fused_tensors_written = 1,
    .flops = 13,
    .special = 1,
    .state_tensors = 0};
// The same of tensors without rows and columns (`factored` of Transformers'
// Adafactor): u = g g (1, 1); u += eps (1, 1); v *= b (1, 1); v += (1 - b) u
// (2, 1); u = 1 / sqrt v (1, 1); u *= g (2, 1); its norm (1 read); u /= c (1, 1);
// p's norm (1 read); u *= lr (1, 1); p -= u (2, 1). Compiled: v, g and p for the
// moment and the norms, and again for the update.
constexpr OptimizerOperations kFlatAdafactorOperations = {
    .operations = 11,
    .tensors_read = 14,
    .tensors_written = 9,
    .fused_tensors_read = 6,
    .fused_tensors_written = 2,
    .flops = 13,
    .special = 1,
    .state_tensors = 1};
// Devlin et al. 2019 in PyTorch, a line at a time. Clip: norm (1 read),
// root, quotient, comparison (scalars), g *= c (1, 1). m *= b1 (1, 1);
// m += (1 - b1) g (2, 1); v *= b2 (1, 1); v += (1 - b2) g g (2, 1);
// u = sqrt v (1, 1); u += eps (1, 1); u = m / u (2, 1); d = wd p (1, 1);
// u += d (2, 1); u *= lr (1, 1); u = -u (1, 1); p += u (2, 1).
constexpr OptimizerOperations kBertAdamOperations = {.operations = 17,
                                                     .tensors_read = 19,
                                                     .tensors_written = 13,
                                                     .fused_tensors_read = 5,
                                                     .fused_tensors_written = 3,
                                                     .flops = 17,
                                                     .special = 2,
                                                     .state_tensors = 2};

}  // namespace

OptimizerOperations OperationsOf(const Workload& w) {
  switch (w.optimizer.kind) {
    case OptimizerKind::kNone:
      return {};
    case OptimizerKind::kSgd:
      return kSgdOperations;
    case OptimizerKind::kAdamW:
      return kAdamWOperations;
    case OptimizerKind::kAdan:
      return kAdanOperations;
    case OptimizerKind::kLamb:
      return kLambOperations;
    case OptimizerKind::kLion:
      return kLionOperations;
    case OptimizerKind::kMuon:
      // Of what is no matrix of a block.
      return kAdamWOperations;
    case OptimizerKind::kAdafactor:
      return DividesState(w.parallel) ? kFlatAdafactorOperations
                                      : kAdafactorOperations;
    case OptimizerKind::kBertAdam:
      return kBertAdamOperations;
  }
  ENSURE(false, "an optimizer without operations");
}

int64_t StateNumbersOf(const Workload& w) {
  if (w.optimizer.kind == OptimizerKind::kMuon) {
    const MuonParts parts = MuonPartsOf(w);
    return parts.matrix_elements +
           kAdamWOperations.state_tensors * parts.other_elements;
  }
  if (w.optimizer.kind == OptimizerKind::kAdafactor) {
    int64_t numbers = 0;
    for (const ParameterTensor& tensor : TrainableTensorsOf(w)) {
      numbers += tensor.columns == 1
                     ? tensor.elements
                     : tensor.elements / tensor.columns + tensor.columns;
    }
    return numbers;
  }
  return OperationsOf(w).state_tensors * TrainableParameters(w);
}

int64_t StateNumbersOfRank(const Workload& w, int64_t updated) {
  if (!DividesState(w.parallel)) return StateNumbersOf(w);
  const int64_t tensors = OperationsOf(w).state_tensors;
  if (w.optimizer.kind != OptimizerKind::kMuon) return tensors * updated;
  const MuonParts parts = MuonPartsOf(w);
  return MuonShareOf(w, parts).kept.elements +
         tensors * ShareOf(parts.other_elements, w.parallel);
}

namespace {

// The passes of an update over these tensors.
void AppendPasses(const Workload& w,
                  const UpdatedTensors& tensors,
                  FusedAccess access,
                  std::vector<Kernel>& kernels) {
  const int64_t narrow = BytesPerElement(w.precision);
  const bool narrow_both = WidensParameters(w) || OnePassWithMasters(w);
  for (const UpdatePass& pass : UpdatePassesOf(w)) {
    Kernel kernel = KernelOf(pass,
                             tensors.elements,
                             LaunchesOf(w, tensors.count, pass, access),
                             BytesOfState(w));
    if (narrow_both) {
      // Gradients come narrow, parameters also leave narrow.
      const int64_t elements = tensors.elements / kernel.launches;
      kernel.bytes_read -= (kSingle - narrow) * elements;
      kernel.bytes_written += narrow * elements;
    }
    if (w.optimizer.state_bits > 0 && kernel.name == "optimizer") {
      const int64_t less = LessState(w, tensors.elements / kernel.launches);
      kernel.bytes_read -= less;
      kernel.bytes_written -= less;
    }
    kernel.parameter_bytes = kernel.bytes();
    kernel.parameter_bytes_written = kernel.bytes_written;
    kernels.push_back(kernel);
  }
}

}  // namespace

void AppendOptimizerKernels(const Workload& w,
                            std::vector<Kernel>& kernels,
                            FusedAccess access) {
  if (w.optimizer.kind == OptimizerKind::kNone) return;
  // Each tensor is divided over the ranks that share the state.
  const int64_t parameters = UpdatedByRank(w);
  const int64_t tensors = TrainableTensorCount(w);

  // Narrow gradients are unscaled into fp32 before the update, the masters
  // written back narrow after it.
  const int64_t narrow = BytesPerElement(w.precision);
  const bool flat = FlatMasters(w);
  const bool one_pass = OnePassWithMasters(w);
  // Masters that are the shard are narrowed where they are gathered.
  const bool casts = KeepsMasters(w) && !one_pass && !MastersAreShard(w);
  const bool by_tensor =
      flat || (MastersInUpdate(w) &&
               w.optimizer.implementation == OptimizerImplementation::kForLoop);
  const int64_t lists = MastersInUpdate(w)
                            ? PackedLaunches(w, tensors, std::nullopt)
                            : CeilDivide(tensors, kTensorsPerLaunch);
  const int64_t launches = by_tensor ? tensors : lists;
  const auto sweep =
      [&](KernelName name, int64_t count, int64_t read, int64_t written) {
        AppendSweep(name, parameters, count, read, written, kernels);
      };
  if (Autocasts(w) && w.precision == Precision::kFp16) {
    // The loss scale is taken off, and a value that is not finite looked for.
    sweep("unscale gradients", lists, kSingle, kSingle);
  }
  if (flat) sweep("zero gradients", 1, 0, kSingle);
  // Sums in fp32 are what the masters take.
  if (casts && !SumsGradientsWide(w)) {
    sweep("unscale gradients", launches, narrow, kSingle);
  }
  if (flat) sweep("gradient norm", 1, kSingle, 0);
  // Apex's fused update divides by the loss scale itself.
  if (flat && w.optimizer.implementation != OptimizerImplementation::kFused) {
    sweep("scale and clip gradients", 1, kSingle, kSingle);
  }
  const bool widens = WidensParameters(w);
  if (widens) {
    sweep("widen parameters", launches, narrow, kSingle);
    sweep("gradient norm", 1, narrow, 0);
  }
  if (w.optimizer.kind == OptimizerKind::kMuon) {
    const MuonParts parts = MuonPartsOf(w);
    AppendMuonKernels(w, parts, kernels);
    if (parts.other_tensors > 0) {
      const int64_t elements = ShareOf(parts.other_elements, w.parallel);
      AppendPasses(w, {elements, parts.other_tensors}, access, kernels);
    }
  } else {
    AppendPasses(w, {parameters, tensors}, access, kernels);
  }
  if (casts) sweep("narrow parameters", launches, kSingle, narrow);
}

}  // namespace trainfare::model
