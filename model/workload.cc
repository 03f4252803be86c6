#include "model/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "model/error.h"
#include "model/internal/enum_names.h"
#include "model/nearest.h"

namespace trainfare::model {
namespace {

template <class Enum>
using Name = std::pair<Enum, std::string_view>;

constexpr std::array kPrecisions = {
    Name<Precision>{Precision::kFp32, "fp32"},
    Name<Precision>{Precision::kTf32, "tf32"},
    Name<Precision>{Precision::kFp16, "fp16"},
    Name<Precision>{Precision::kBf16, "bf16"},
};
constexpr std::array kOptimizers = {
    Name<OptimizerKind>{OptimizerKind::kNone, "none"},
    Name<OptimizerKind>{OptimizerKind::kSgd, "sgd"},
    Name<OptimizerKind>{OptimizerKind::kAdamW, "adamw"},
    Name<OptimizerKind>{OptimizerKind::kAdan, "adan"},
    Name<OptimizerKind>{OptimizerKind::kLamb, "lamb"},
    Name<OptimizerKind>{OptimizerKind::kBertAdam, "bert_adam"},
};
constexpr std::array kImplementations = {
    Name<OptimizerImplementation>{OptimizerImplementation::kForLoop,
                                  "for_loop"},
    Name<OptimizerImplementation>{OptimizerImplementation::kMultiTensor,
                                  "multi_tensor"},
    Name<OptimizerImplementation>{OptimizerImplementation::kFused, "fused"},
};
constexpr std::array kMasters = {
    Name<Masters>{Masters::kApart, "apart"},
    Name<Masters>{Masters::kInUpdate, "in_update"},
};
constexpr std::array kFusions = {
    Name<Fusion>{Fusion::kEager, "eager"},
    Name<Fusion>{Fusion::kFairseq, "fairseq"},
    Name<Fusion>{Fusion::kFused, "fused"},
    Name<Fusion>{Fusion::kLightSeq, "lightseq"},
    Name<Fusion>{Fusion::kCompiled, "compiled"},
};
constexpr std::array kAttentions = {
    Name<Attention>{Attention::kMaterialised, "materialised"},
    Name<Attention>{Attention::kFlash, "flash"},
};
constexpr std::array kCompressions = {
    Name<CompressionKind>{CompressionKind::kNone, "none"},
    Name<CompressionKind>{CompressionKind::kHalf, "half"},
    Name<CompressionKind>{CompressionKind::kPowerSgd, "power_sgd"},
};
constexpr std::array<std::pair<std::string_view, bool LoraMatrices::*>, 6>
    kLoraMatrices = {{
        {"query", &LoraMatrices::query},
        {"key", &LoraMatrices::key},
        {"value", &LoraMatrices::value},
        {"output", &LoraMatrices::output},
        {"feed_forward_in", &LoraMatrices::feed_forward_in},
        {"feed_forward_out", &LoraMatrices::feed_forward_out},
    }};
constexpr std::array kWorks = {
    Name<Work>{Work::kTraining, "training"},
    Name<Work>{Work::kForwardBackward, "forward-backward"},
    Name<Work>{Work::kForward, "forward"},
};

void RequirePositive(int64_t value, std::string_view what) {
  if (value < 1) {
    throw InputError(
        fmt::format("{}: expected a count of at least 1, got {}", what, value));
  }
}

}  // namespace

void Validate(const Workload& w) {
  const Architecture& a = w.architecture;
  RequirePositive(w.batch, "batch");
  RequirePositive(w.sequence_length, "sequence_length");
  RequirePositive(w.accumulation, "accumulation");
  RequirePositive(a.layers, "model.layers");
  RequirePositive(a.hidden, "model.hidden");
  RequirePositive(a.heads, "model.heads");
  RequirePositive(a.intermediate, "model.intermediate");
  RequirePositive(a.vocabulary, "model.vocabulary");
  if (a.head == Head::kSequenceClassification) {
    RequirePositive(a.labels, "model.labels");
  }
  if (w.target_length < 0) {
    throw InputError(
        fmt::format("target_length: expected a count of at least 0, got {}",
                    w.target_length));
  }
  if (a.hidden % a.heads != 0) {
    throw InputError(
        fmt::format("model.heads: expected a divisor of hidden = {}, got {}",
                    a.hidden,
                    a.heads));
  }
  const Trainable& t = w.trainable;
  if (t.frozen_layers < 0 || t.frozen_layers > a.layers) {
    throw InputError(
        fmt::format("trainable.frozen_layers: expected 0 to {}, the layers of "
                    "{}, got {}",
                    a.layers,
                    a.name.empty() ? "the model" : a.name,
                    t.frozen_layers));
  }
  if (t.lora_rank < 0 || (t.lora_rank > 0 && t.frozen_layers > 0)) {
    throw InputError(
        "trainable: expected frozen layers or adapters, got both; adapters "
        "freeze all layers");
  }
  if (t.lora_rank > 0 && t.lora == LoraMatrices{}) {
    throw InputError(
        "trainable.lora.matrices: expected at least one matrix, got none");
  }
  if (w.stack.compiler_level < 1 || w.stack.compiler_level > 3) {
    throw InputError(fmt::format("compiler_level: expected 1, 2 or 3, got {}",
                                 w.stack.compiler_level));
  }
  if (w.compression.kind == CompressionKind::kPowerSgd &&
      w.compression.rank < 1) {
    throw InputError(
        fmt::format("gradient_compression.power_sgd: expected a rank of at "
                    "least 1, got {}",
                    w.compression.rank));
  }
  const auto longest = a.max_sequence_length();
  const int64_t length = std::max(w.sequence_length, w.target_length);
  if (longest && length > *longest) {
    throw InputError(fmt::format(
        "sequence_length: expected at most {}, the positions of {}, got {}",
        *longest,
        a.name.empty() ? "the model" : a.name,
        length));
  }
}

int64_t BytesPerElement(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
    case Precision::kTf32:
      return 4;
    case Precision::kFp16:
    case Precision::kBf16:
      return 2;
  }
  ENSURE(false, "a precision without a width");
}

bool OperationByOperation(const Stack& stack) {
  return stack.fusion == Fusion::kEager || stack.fusion == Fusion::kFairseq;
}

bool KeepsMasters(const Workload& workload) {
  return BytesPerElement(workload.precision) < 4 &&
         (workload.stack.narrow_weights ||
          workload.stack.fusion == Fusion::kFairseq);
}

bool NarrowWeights(const Workload& workload) {
  return KeepsMasters(workload) || (BytesPerElement(workload.precision) < 4 &&
                                    workload.stack.fusion == Fusion::kLightSeq);
}

bool MastersInUpdate(const Workload& workload) {
  return KeepsMasters(workload) && workload.stack.fusion != Fusion::kFairseq &&
         workload.optimizer.masters == Masters::kInUpdate;
}

bool Autocasts(const Workload& workload) {
  return (workload.stack.fusion == Fusion::kEager ||
          workload.stack.fusion == Fusion::kFused) &&
         !workload.stack.narrow_weights &&
         BytesPerElement(workload.precision) < 4;
}

std::string_view ToText(Precision value) {
  return internal::EnumName(value, kPrecisions);
}
std::string_view ToText(OptimizerKind value) {
  return internal::EnumName(value, kOptimizers);
}
std::string_view ToText(OptimizerImplementation value) {
  return internal::EnumName(value, kImplementations);
}
std::string_view ToText(Masters value) {
  return internal::EnumName(value, kMasters);
}
std::string_view ToText(Fusion value) {
  return internal::EnumName(value, kFusions);
}
std::string_view ToText(Attention value) {
  return internal::EnumName(value, kAttentions);
}
std::string_view ToText(Work value) {
  return internal::EnumName(value, kWorks);
}
std::string_view ToText(CompressionKind value) {
  return internal::EnumName(value, kCompressions);
}

Precision PrecisionFromText(std::string_view text) {
  return internal::EnumFromName(text, kPrecisions, "precision");
}
OptimizerKind OptimizerKindFromText(std::string_view text) {
  return internal::EnumFromName(text, kOptimizers, "optimizer");
}
OptimizerImplementation OptimizerImplementationFromText(std::string_view text) {
  return internal::EnumFromName(
      text, kImplementations, "optimizer implementation");
}
Masters MastersFromText(std::string_view text) {
  return internal::EnumFromName(text, kMasters, "place of masters");
}
Fusion FusionFromText(std::string_view text) {
  return internal::EnumFromName(text, kFusions, "stack");
}
Attention AttentionFromText(std::string_view text) {
  return internal::EnumFromName(text, kAttentions, "attention");
}
CompressionKind CompressionFromText(std::string_view text) {
  return internal::EnumFromName(text, kCompressions, "gradient compression");
}
void AddLoraMatrix(std::string_view name, LoraMatrices& matrices) {
  std::vector<std::string_view> known;
  for (const auto& [matrix, member] : kLoraMatrices) {
    if (matrix == name) {
      matrices.*member = true;
      return;
    }
    known.push_back(matrix);
  }
  throw InputError(fmt::format("unknown matrix \"{}\"{}; known: {}",
                               name,
                               DidYouMean(name, known),
                               fmt::join(known, ", ")));
}

}  // namespace trainfare::model
