#include "calibrate/session/runs_towards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

#include "calibrate/records/observation.h"
#include "calibrate/session/machine.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/fields.h"
#include "model/memory.h"
#include "model/rounding.h"
#include "model/stack_rules.h"
#include "model/trainer_rules.h"
#include "model/workload.h"

namespace trainfare::calibrate {
namespace {

using model::Architecture;
using model::Workload;

constexpr std::array<int64_t, 4> kNarrower = {1, 2, 4, 8};
// The share of the memory that runs may take: others use this machine, too, and
// the libraries and the allocator's gaps have the rest.
constexpr double kMemoryShare = 0.6;
constexpr int64_t kShortest = 16;
// The planner weighs every candidate against every other.
constexpr size_t kMostCandidates = 700;

// What becomes narrower together, beside heads of keys.
constexpr int64_t Architecture::*const kWidths[] = {
    &Architecture::hidden,
    &Architecture::heads,
    &Architecture::intermediate,
    &Architecture::upper_intermediate,
    &Architecture::expert_intermediate,
    &Architecture::shared_intermediate,
    &Architecture::expert_latent,
    &Architecture::state_heads,
    &Architecture::delta_key_heads,
    &Architecture::delta_value_heads,
    &Architecture::convolution_channels,
    &Architecture::latent_query,
    &Architecture::latent_key_value};

bool Divides(const Architecture& a, int64_t factor) {
  for (const auto width : kWidths) {
    if (a.*width % factor != 0) return false;
  }
  const auto divides = [&](int64_t keys) {
    return keys % factor == 0 || keys == 1;
  };
  return divides(a.key_heads()) && divides(a.full_key_value_heads);
}

Architecture Narrower(const Architecture& whole, int64_t factor) {
  Architecture a = whole;
  // Heads are as wide as they were, also where hidden over heads says so.
  for (const auto width : kWidths) a.*width /= factor;
  if (a.key_value_heads > 1) a.key_value_heads /= factor;
  if (a.full_key_value_heads > 1) a.full_key_value_heads /= factor;
  return a;
}

// A half of all layers, a quarter and so on; experts and windows stay where
// they are among those that are left.
Architecture Lower(const Architecture& whole, int64_t layers) {
  Architecture a = whole;
  const auto part = [&](int64_t count) {
    return model::CeilDivide(count * layers, whole.layers);
  };
  a.layers = layers;
  a.windowed_layers = part(whole.windowed_layers);
  // Below them stands one of each sort at least.
  a.shared_key_value_layers =
      whole.shared_key_value_layers * layers / whole.layers;
  const int64_t below = a.layers - a.shared_key_value_layers;
  const int64_t full = a.full_layers_below(below);
  if (a.attention_differs() && (full == 0 || full == below)) {
    a.shared_key_value_layers = a.upper_intermediate = 0;
  }
  if (a.shared_key_value_layers == 0) a.upper_intermediate = 0;
  if (!a.attention_differs()) {
    a.full_head_size = a.full_key_value_heads = 0;
    a.windowed_sinks = false;
  }
  a.unrotated_layers =
      std::min(part(whole.unrotated_layers), layers - a.windowed_layers);
  a.dense_layers = std::min(part(whole.dense_layers), layers);
  a.expert_period = std::min(whole.expert_period,
                             std::max<int64_t>(1, layers - a.dense_layers));
  a.feed_forward_layers = part(whole.feed_forward_layers);
  a.state_space_layers = std::min(part(whole.state_space_layers), a.mixers());
  a.delta_rule_layers = std::min(part(whole.delta_rule_layers), a.mixers());
  a.convolution_layers = std::min(part(whole.convolution_layers), a.mixers());
  if (whole.decoder_layers > 0) {
    a.decoder_layers = std::max<int64_t>(1, part(whole.decoder_layers));
  }
  return a;
}

// The largest first: 128, 96, 64, 48, ..., since kernels are cut to powers of
// two and runs of these alone say nothing of what the others cost.
std::vector<int64_t> DownFrom(int64_t most, int64_t least) {
  std::vector<int64_t> counts;
  for (int64_t count = most; count >= least; count /= 2) {
    counts.push_back(count);
    const int64_t between = count * 3 / 4;
    if (between > count / 2 && between >= least) counts.push_back(between);
    if (count == 1) break;
  }
  return counts;
}

// What is asked, as one step on one device without accumulation.
Workload StepOf(const Workload& asked) {
  Workload w = asked;
  w.accumulation = 1;
  w.work = model::Work::kTraining;
  w.parallel = {};
  w.compression = {};
  return w;
}

// The trainer has no adapters beside experts: those of attention, else the
// usual ones.
void SetAdaptersAside(Workload& w) {
  model::LoraMatrices& lora = w.trainable.lora;
  if (w.architecture.experts == 0 || w.trainable.lora_rank == 0) return;
  lora.feed_forward_gate = lora.feed_forward_in = lora.feed_forward_out = false;
  lora.expert_latent_in = lora.expert_latent_out = false;
  if (lora == model::LoraMatrices{}) lora.query = lora.value = true;
}

// The trainer's tables are as wide as its blocks, and classifiers with types of
// tokens and positions from 0 have BERT's head.
void SetEmbeddingsAside(Architecture& a) {
  a.embedding_size = 0;
  const bool bert = a.family == model::Family::kEncoder &&
                    model::LayoutOf(a) == model::EncoderLayout::kBert;
  if (!bert || a.head != model::Head::kSequenceClassification) return;
  a.pooler = true;
  a.classifier_dense = false;
}

// The same as the trainer runs it: what it does not have stands aside, and is
// left to the formulas.
Workload Runnable(const Workload& step, const hardware::Device& device) {
  Workload w = step;
  if (w.stack.fusion != model::Fusion::kFused) {
    w.stack.fusion = model::Fusion::kEager;
  }
  const bool host = hardware::KindOf(device).is_host;
  if (model::ScoresOnChip(w.stack.attention)) {
    w.stack.attention = model::Attention::kFlash;
  }
  w.attention_checkpointing = w.operation_checkpointing = false;
  w.optimizer.state_bits = 0;
  w.optimizer.wide_gradients = false;
  w.optimizer.in_backward = false;
  w.wide_blocks = 0;
  w.stack.loss = model::LossKernels::kOfStack;
  w.stack.experts = model::ExpertKernels::kOfStack;
  w.trainable.wide_adapters = false;
  w.trainable.lora_dropout = 0.0;
  w.trainable.adapters_as_units = false;
  SetAdaptersAside(w);
  SetEmbeddingsAside(w.architecture);
  if (host && w.architecture.dropout > 0) {
    w.stack.attention = model::Attention::kMaterialised;
  }
  if (model::HasPlainBlock(w.architecture)) {
    w.trainable = {};
    w.gradient_checkpointing = false;
    w.checkpointed_blocks = 0;
  } else {
    w.stack.fusion = model::Fusion::kEager;
  }
  w.stack.stochastic_rounding = false;
  if (model::KeepsMasters(w) || model::UpdatesNarrow(w)) {
    w.optimizer.masters = model::Masters::kInUpdate;
  }
  if (w.optimizer.kind != model::OptimizerKind::kAdan &&
      w.optimizer.kind != model::OptimizerKind::kSgd) {
    w.optimizer.kind = model::OptimizerKind::kAdamW;
  }
  if (w.optimizer.kind == model::OptimizerKind::kSgd &&
      w.optimizer.implementation == model::OptimizerImplementation::kFused) {
    w.optimizer.implementation = model::OptimizerImplementation::kMultiTensor;
  }
  w.trainable.embeddings_beside_adapters = false;
  w.trainable.base_bits = 0;
  w.trainable.base_by_operations = false;
  w.documents = 1;
  w.load_factor = 1;
  w.power_limit = {};
  w.predictions_per_sequence = 0;
  return w;
}

void AddCandidates(const Workload& run,
                   model::Bytes<> most,
                   std::set<std::string>& known,
                   std::vector<Workload>& candidates) {
  for (const Architecture& size : SizesOf(run.architecture)) {
    Workload w = run;
    w.architecture = size;
    // As large a part of the blocks, and not 0, which is all.
    w.checkpointed_blocks = model::CeilDivide(
        run.checkpointed_blocks * size.layers, run.architecture.layers);
    if (w.trainable.frozen_layers > 0) {
      w.trainable.frozen_layers =
          w.trainable.frozen_layers * size.layers / run.architecture.layers;
    }
    // What is asked may be shorter yet.
    const int64_t shortest = std::min(kShortest, run.sequence_length);
    for (const int64_t length : DownFrom(run.sequence_length, shortest)) {
      w.sequence_length = length;
      if (run.target_length > 0) {
        w.target_length = std::max<int64_t>(
            1, run.target_length * length / run.sequence_length);
      }
      for (const int64_t batch : DownFrom(run.batch, 1)) {
        w.batch = batch;
        if (model::EstimateMemory(w, {}).total() > most) continue;
        if (known.insert(Describe(w)).second) candidates.push_back(w);
      }
    }
  }
}

}  // namespace

PlanOptions PlanOf(const hardware::Device& device,
                   const CalibrateOptions& options) {
  if (!options.towards.empty()) return PlanTowards(device, options.towards);
  return PlanHere(device,
                  options.precisions.empty() ? DefaultPrecisions(device)
                                             : options.precisions,
                  options.models);
}

std::vector<Architecture> SizesOf(const Architecture& whole) {
  std::vector<Architecture> sizes;
  for (const int64_t factor : kNarrower) {
    if (!Divides(whole, factor)) break;
    const Architecture narrow = factor == 1 ? whole : Narrower(whole, factor);
    for (int64_t layers = whole.layers; layers >= 1; layers /= 2) {
      Architecture size =
          layers == whole.layers ? narrow : Lower(narrow, layers);
      if (layers != whole.layers) {
        size.name +=
            fmt::format(", {} layer{}", layers, layers == 1 ? "" : "s");
      }
      if (factor > 1) size.name += fmt::format(", 1/{} wide", factor);
      sizes.push_back(std::move(size));
    }
  }
  return sizes;
}

PlanOptions PlanTowards(const hardware::Device& device,
                        const std::vector<Workload>& asked) {
  PlanOptions plan;
  std::set<std::string> known;
  const model::Bytes<> most = device.memory_capacity * kMemoryShare;
  for (const Workload& one : asked) {
    hardware::RequirePrecisions(device, one);
    RequireTrainable(device, one.precision);
    const Workload step = StepOf(one);
    plan.scenarios.push_back(step);
    const Workload run = Runnable(step, device);
    model::RequireTrainerRun(run);
    AddCandidates(run, most, known, plan.candidates);
  }
  if (plan.candidates.empty()) {
    throw model::InputError(
        fmt::format("no size of {} that a calibration runs fits into {:.0f} % "
                    "of this machine's memory; hint: a shorter --length, or "
                    "calibrate --models",
                    asked.front().architecture.name,
                    100.0 * kMemoryShare));
  }
  // Evenly thinned, so that every size and shape keeps some.
  const size_t count = plan.candidates.size();
  if (count > kMostCandidates) {
    std::vector<Workload> kept;
    for (size_t i = 0; i < kMostCandidates; ++i) {
      kept.push_back(plan.candidates[i * count / kMostCandidates]);
    }
    plan.candidates = std::move(kept);
  }
  return plan;
}

}  // namespace trainfare::calibrate
