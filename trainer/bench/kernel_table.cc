#include "trainer/bench/kernel_table.h"

#include <algorithm>
#include <array>

#include "model/stack_rules.h"
#include "trainer/bench/programs/programs.h"

namespace trainfare::trainer {
namespace {

using model::Kernel;
using model::KernelKind;
using Row = OperationRow;

// A product without a bias.
constexpr Row Bare(model::KernelName kernel) {
  return {kernel, "", "linear without bias", &programs::LinearWithoutBias};
}

bool ReadsNarrow(const Kernel& kernel) {
  return kernel.bytes_read < 4 * kernel.work_items;
}
// A cast before, and one behind, of what is narrow (RmsNormForward() of
// model/internal/passes/norms.cc).
size_t RmsNormKernels(std::span<const Kernel> kernels) {
  return ReadsNarrow(kernels.front()) ? 8 : 6;
}
// Two more of a factor that trains (RmsNormBackward()).
size_t RmsNormGradientKernels(std::span<const Kernel> kernels) {
  const bool weighted =
      kernels.size() > 1 && kernels[1].name == programs::kRmsWeightGradient;
  // The gradient of a product with a factor is read twice.
  const int64_t reads = weighted ? 2 : 1;
  const Kernel& first = kernels.front();
  const bool narrow = first.bytes_read < 4 * reads * first.work_items;
  return (weighted ? 14U : 12U) + (narrow ? 2U : 0U);
}
// Queries' and keys'.
size_t RotaryKernels(std::span<const Kernel>) { return 2 * 5; }
size_t RotaryGradientKernels(std::span<const Kernel>) { return 2 * 9; }

size_t NamesInRow(std::span<const Kernel> kernels,
                  model::KernelName following) {
  const model::KernelName first = kernels.front().name;
  return static_cast<size_t>(std::find_if(kernels.begin(),
                                          kernels.end(),
                                          [&](const Kernel& kernel) {
                                            return kernel.name != first &&
                                                   kernel.name != following;
                                          }) -
                             kernels.begin());
}
size_t KernelsOfOneName(std::span<const Kernel> kernels) {
  return NamesInRow(kernels, kernels.front().name);
}
// Experts are many kernels each, of which the trainer's are sums.
constexpr model::KernelName kPermute = "permute tokens";
constexpr model::KernelName kRoutingGradient = "routing gradient";
size_t RoutingKernels(std::span<const Kernel> kernels) {
  return NamesInRow(kernels, kPermute);
}
size_t RoutingGradientKernels(std::span<const Kernel> kernels) {
  return NamesInRow(kernels, kRoutingGradient);
}

constexpr std::array kRows = {
    Row{"input gradient",
        "",
        "linear input gradient",
        &programs::InputGradient},
    Row{"weight gradient",
        "",
        "linear weight gradient",
        &programs::WeightGradient},
    Row{"expert input gradient",
        "",
        "linear input gradient",
        &programs::InputGradient},
    Row{"expert weight gradient",
        "",
        "linear weight gradient",
        &programs::WeightGradient},
    Row{"adapter inner gradient",
        "",
        "linear input gradient",
        &programs::InputGradient},
    Row{"adapter input gradient",
        "",
        "linear input gradient",
        &programs::InputGradient},
    Row{"adapter up gradient",
        "",
        "linear weight gradient",
        &programs::WeightGradient},
    Row{"adapter down gradient",
        "",
        "linear weight gradient",
        &programs::WeightGradient},
    Bare("adapter down"),
    Bare("adapter up"),
    Bare("expert gate"),
    Bare("expert in"),
    Bare("expert out"),
    Bare("router"),
    Bare("shared expert gate"),
    Row{"routing", kPermute, "routing", &programs::Route, &RoutingKernels},
    Row{"permute gradient",
        kRoutingGradient,
        "routing gradient",
        &programs::RouteGradient,
        &RoutingGradientKernels},
    Row{"unpermute tokens",
        "",
        "sum of experts",
        &programs::Combine,
        &KernelsOfOneName},
    Row{"unpermute gradient",
        kRoutingGradient,
        "sum of experts gradient",
        &programs::CombineGradient,
        &RoutingGradientKernels},
    Row{"scale shared expert", "", "shared expert", &programs::SharedExpert},
    Row{"shared expert gradient",
        "",
        "shared expert gradient",
        &programs::SharedExpertGradient},
    Row{"adapter add", "", "adapter add", &programs::AdapterAdd},
    Row{"adapter gradient add", "", "add", &programs::Add},
    Row{"loss", "", "log-softmax", &programs::LogSoftmax},
    Row{"loss gradient",
        "",
        "log-softmax gradient",
        &programs::LogSoftmaxGradient},
    Row{"negative log-likelihood",
        "",
        "negative log-likelihood",
        &programs::NegativeLogLikelihood},
    Row{"zero target gradient",
        "scatter target gradient",
        "negative log-likelihood gradient",
        &programs::NegativeLogLikelihoodGradient},
    Row{"first tokens", "", "first tokens", &programs::FirstTokens},
    Row{"scatter first tokens",
        "",
        "first tokens gradient",
        &programs::FirstTokensGradient},
    Row{"tanh", "", "tanh", &programs::Tanh},
    Row{"tanh gradient", "", "tanh gradient", &programs::TanhGradient},
    Row{"activation", "", "head activation", &programs::HeadActivation},
    Row{"activation gradient",
        "",
        "head activation gradient",
        &programs::HeadActivationGradient},
    Row{"attention scores",
        "",
        "attention scores",
        &programs::BatchedProductByTransposed},
    Row{"attention context",
        "",
        "attention context",
        &programs::BatchedProduct},
    Row{"probability gradient",
        "",
        "attention probability gradient",
        &programs::BatchedProductByTransposed},
    Row{"value gradient",
        "",
        "attention value gradient",
        &programs::BatchedProductOfTransposed},
    Row{"query gradient",
        "",
        "attention query gradient",
        &programs::BatchedProduct},
    Row{"key gradient",
        "",
        "attention key gradient",
        &programs::BatchedProductOfTransposed},
    Row{"flash attention", "", "flash attention", &programs::FlashAttention},
    Row{"flash attention gradient",
        "",
        "flash attention gradient",
        &programs::FlashAttentionGradient},
    Row{"gelu", "", "gelu", &programs::ActivationForward},
    Row{"gelu gradient", "", "gelu gradient", &programs::ActivationGradient},
    Row{"gelu operation",
        "",
        "gelu by operations",
        &programs::WrittenOutGelu,
        &KernelsOfOneName},
    Row{"gelu operation gradient",
        "",
        "gelu by operations gradient",
        &programs::WrittenOutGeluGradient,
        &KernelsOfOneName},
    Row{"dropout", "", "dropout", &programs::DropoutForward},
    Row{"dropout gradient", "", "dropout gradient", &programs::DropoutGradient},
    Row{"embedding add", "", "add", &programs::Add},
    Row{"tied gradient add", "", "add", &programs::Add},
    Row{"gradient add", "", "add", &programs::Add},
    Row{"embedding scale", "", "scale", &programs::Scale},
    Row{"embedding scale gradient", "", "scale", &programs::Scale},
    Row{"residual add", "", "add", &programs::Add},
    Row{"residual gradient add", "", "add", &programs::Add},
    Row{"input gradient add", "", "add", &programs::Add},
    Row{"mask scores", "", "add mask", &programs::AddMask},
    Row{"scale scores", "", "scale", &programs::Scale},
    Row{"scale gradient", "", "scale", &programs::Scale},
    Row{"layer norm", "", "layer norm", &programs::LayerNorm},
    Row{"layer norm gradient",
        "layer norm weight gradient",
        "layer norm gradient",
        &programs::LayerNormGradient},
    Row{"rms norm", "", "rms norm", &programs::RmsNormForward, &RmsNormKernels},
    Row{"rms norm gradient",
        programs::kRmsWeightGradient,
        "rms norm gradient",
        &programs::RmsNormGradient,
        &RmsNormGradientKernels},
    Row{"rotary positions",
        "",
        "rotary positions",
        &programs::RotaryForward,
        &RotaryKernels},
    Row{"rotary gradient",
        "",
        "rotary gradient",
        &programs::RotaryGradient,
        &RotaryGradientKernels},
    Row{"repeat heads", "", "repeat heads", &programs::RepeatForward},
    Row{"repeated head gradients",
        "",
        "repeated head gradients",
        &programs::RepeatGradient},
    Row{"gated activation", "", "gated activation", &programs::Gate},
    Row{"gated activation gradient",
        "",
        "gated activation gradient",
        &programs::GateGradient},
    Row{"activation product", "", "product", &programs::GateProduct},
    Row{"activation product gradient", "", "product", &programs::GateProduct},
    Row{"softmax", "", "softmax", &programs::Softmax},
    Row{"softmax gradient", "", "softmax gradient", &programs::SoftmaxGradient},
    Row{"bias gradient", "", "bias gradient", &programs::BiasGradient},
    Row{"embedding gather", "", "embedding", &programs::Gather},
    Row{"zero table gradient",
        "table gradient",
        "embedding gradient",
        &programs::TableGradient},
    Row{"split heads", "", "transpose heads", &programs::Transpose},
    Row{"merge heads", "", "transpose heads", &programs::Transpose},
    Row{"split head gradients", "", "transpose heads", &programs::Transpose},
    Row{"merge head gradients", "", "transpose heads", &programs::Transpose},
    Row{"join projection gradients", "", "join", &programs::Join},
    Row{"cast weights", "", "cast", &programs::Cast},
    Row{"cast activation", "", "cast", &programs::Cast},
    Row{"cast logits", "", "cast", &programs::Cast},
    Row{"cast scores", "", "cast", &programs::Cast},
    Row{"cast gradient", "", "cast", &programs::Cast},
    Row{"cast weight gradient", "", "cast", &programs::Cast},
};
constexpr Row kLinear{"", "", "linear", &programs::LinearForward};

}  // namespace

const OperationRow* FindRow(const model::Workload& workload,
                            const Kernel& kernel,
                            model::Phase phase) {
  const auto row = std::find_if(
      kRows.begin(), kRows.end(), [&](const OperationRow& candidate) {
        return candidate.kernel == kernel.name;
      });
  // Under autocast casts of gradients stand among the kernels of one operation.
  const bool mixed =
      row != kRows.end() && row->count != nullptr && model::Autocasts(workload);
  if (mixed) return nullptr;
  if (row != kRows.end()) return &*row;
  // Every other product with a weight is a linear layer.
  return kernel.kind == KernelKind::kGemm && phase == model::Phase::kForward
             ? &kLinear
             : nullptr;
}

}  // namespace trainfare::trainer
