#pragma once

// Names of kernels: one table, against which every use is checked while it is
// compiled. A KernelName is made of a literal of the table alone, so that a
// misspelled one, or one that nobody counts, does not compile:
//
//   if (kernel.name == "layer norm") ...

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace trainfare::model {

// Sorted; the first is that of a kernel without a name (of a record).
inline constexpr auto kKernelNames = std::to_array<std::string_view>({
    "",
    "activation",
    "activation gradient",
    "activation product",
    "activation product gradient",
    "adapter add",
    "adapter down",
    "adapter down gradient",
    "adapter gradient add",
    "adapter inner gradient",
    "adapter input gradient",
    "adapter up",
    "adapter up gradient",
    "add compression error",
    "add partial sums",
    "attention context",
    "attention gate",
    "attention gate gradient",
    "attention output projection",
    "attention scores",
    "bias",
    "bias and gelu",
    "bias and head split",
    "bias and layer norm weight gradient",
    "bias gradient",
    "bias, dropout and residual",
    "bias, dropout, residual and layer norm",
    "cast activation",
    "cast adapter input",
    "cast gradient",
    "cast logits",
    "cast scores",
    "cast weight gradient",
    "cast weights",
    "causal convolution",
    "causal convolution gradient",
    "chunk decay",
    "chunk decay gradient",
    "chunk gradient add",
    "chunk inverse",
    "chunk inverse gradient",
    "chunk outputs",
    "chunk outputs gradient",
    "chunk recurrence",
    "chunk recurrence gradient",
    "chunk scan",
    "chunk scan gradient",
    "chunk scores",
    "chunk scores gradient",
    "chunk states",
    "chunk states gradient",
    "chunk updates",
    "chunk values gradient",
    "classifier",
    "classifier dense",
    "clip gradient",
    "clip projections",
    "compress gradients",
    "decompress gradients",
    "delta decay projection",
    "delta gate projection",
    "delta gates",
    "delta gates gradient",
    "delta heads",
    "delta input projection",
    "delta output projection",
    "delta unit norm",
    "delta unit norm gradient",
    "delta write projection",
    "dequantise weights",
    "dropout",
    "dropout and softmax gradient",
    "dropout gradient",
    "embedding add",
    "embedding gather",
    "embedding norm",
    "embedding projection",
    "embedding scale",
    "embedding scale gradient",
    "expert gate",
    "expert in",
    "expert input gradient",
    "expert latent in",
    "expert latent out",
    "expert out",
    "expert weight gradient",
    "feed-forward gate",
    "feed-forward in",
    "feed-forward out",
    "first tokens",
    "flash attention",
    "flash attention gradient",
    "flash attention query gradient",
    "flash attention row sums",
    "gated activation",
    "gated activation gradient",
    "gated norm",
    "gated norm gradient",
    "gather latent keys",
    "gather predicted tokens",
    "gather target",
    "gelu",
    "gelu and bias gradient",
    "gelu gradient",
    "gelu operation",
    "gelu operation gradient",
    "gradient add",
    "gradient from factors",
    "gradient norm",
    "gradient to left factor",
    "gradient to right factor",
    "head transform",
    "input gradient",
    "input gradient add",
    "join next tokens",
    "join projection gradients",
    "keep compression error",
    "keep the gradient",
    "key and value projection",
    "key and value up projection",
    "key gradient",
    "key projection",
    "largest value",
    "latent projection",
    "layer norm",
    "layer norm gradient",
    "layer norm weight gradient",
    "layer norm, residual and dropout gradient",
    "logits chunk",
    "logits projection",
    "loss",
    "loss chunk",
    "loss gradient",
    "loss gradient add",
    "mask and softmax",
    "mask gradient",
    "mask scores",
    "mask, softmax and dropout",
    "merge head gradients",
    "merge heads",
    "momentum",
    "narrow parameters",
    "negative log-likelihood",
    "next sentence",
    "next-token projection",
    "optimizer",
    "orthogonalise",
    "orthogonalise left factor",
    "permute gradient",
    "permute tokens",
    "pooler",
    "position bias",
    "position bias gradient",
    "probability gradient",
    "query down projection",
    "query gradient",
    "query projection",
    "query up projection",
    "query, key and value projection",
    "repeat heads",
    "repeated head gradients",
    "residual add",
    "residual gradient add",
    "rms norm",
    "rms norm gradient",
    "rms norm weight gradient",
    "rotary gradient",
    "rotary positions",
    "router",
    "routing",
    "routing gradient",
    "scale and clip gradients",
    "scale gradient",
    "scale queries",
    "scale scores",
    "scale shared expert",
    "scatter first tokens",
    "scatter target gradient",
    "shared expert gate",
    "shared expert gradient",
    "smooth loss",
    "soft cap",
    "soft cap gradient",
    "softmax",
    "softmax gradient",
    "span logits",
    "split head gradients",
    "split heads",
    "squared relu gradient",
    "squared relu operation",
    "state passing",
    "state passing gradient",
    "state-space input projection",
    "state-space output projection",
    "sum head gradients",
    "table gradient",
    "tanh",
    "tanh gradient",
    "tied gradient add",
    "unit rows",
    "unit rows gradient",
    "unpermute gradient",
    "unpermute tokens",
    "unscale gradients",
    "value gradient",
    "value projection",
    "vocabulary logits",
    "weight gradient",
    "widen parameters",
    "zero gradients",
    "zero table gradient",
    "zero target gradient",
    "zero the last gradient",
});
static_assert(std::is_sorted(kKernelNames.begin(), kKernelNames.end()));

class KernelName {
 public:
  constexpr KernelName() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a literal is the name.
  consteval KernelName(const char* text) : index_(IndexOf(text)) {}

  // The name that a text is which is not known before the program runs.
  static constexpr std::optional<KernelName> Find(std::string_view text) {
    const auto* const found =
        std::lower_bound(kKernelNames.begin(), kKernelNames.end(), text);
    if (found == kKernelNames.end() || *found != text) return std::nullopt;
    KernelName name;
    name.index_ = static_cast<uint16_t>(found - kKernelNames.begin());
    return name;
  }

  constexpr std::string_view text() const { return kKernelNames[index_]; }
  constexpr size_t index() const { return index_; }

  friend constexpr bool operator==(KernelName, KernelName) = default;

 private:
  static consteval uint16_t IndexOf(std::string_view text) {
    // Not in the table: no constant expression, so that it does not compile.
    return Find(text).value().index_;
  }

  uint16_t index_ = 0;
};

}  // namespace trainfare::model
