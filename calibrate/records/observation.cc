#include "calibrate/records/observation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>

#include "model/error.h"
#include "model/fields.h"
#include "model/nearest.h"
#include "model/presets.h"
#include "model/stack_rules.h"

namespace trainfare::calibrate {

bool IsDevice(const hardware::Device& device, std::string_view name) {
  return name == device.name ||
         (!device.reported_name.empty() && name == device.reported_name) ||
         std::find(device.aliases.begin(), device.aliases.end(), name) !=
             device.aliases.end();
}

int64_t PartsOf(const hardware::Device& device, std::string_view name) {
  if (IsDevice(device, name)) return 1;
  if (!device.static_shapes) return 0;
  const hardware::Device* part =
      hardware::DeviceCatalog::Shipped().TryFind(name);
  if (part == nullptr || part->part_of != device.name) return 0;
  return device.cores / part->cores;
}

std::string SettingsOf(const model::Workload& workload) {
  std::string settings;
  settings.reserve(64);  // every prediction by a fit asks
  settings += model::ToText(workload.precision);
  for (const std::string_view word : {model::ToText(workload.stack.fusion),
                                      model::ToText(workload.stack.attention),
                                      model::ToText(workload.work)}) {
    settings += ' ';
    settings += word;
  }
  // A part that trains runs other kernels than the whole.
  if (!workload.trainable.everything()) settings += " partly-frozen";
  // So do other blocks than BERT's and GPT-2's.
  const model::Architecture& a = workload.architecture;
  if (a.gated) settings += " gated";
  if (a.norm == model::Norm::kRms) settings += " rms-norm";
  if (a.key_heads() < a.heads) settings += " grouped";
  if (a.latent()) settings += " latent";
  if (a.experts > 0) {
    settings += " experts";
    const model::ExpertKernels experts = model::ExpertsOf(workload);
    if (experts != model::RulesOf(workload).experts) {
      settings += '-';
      settings += model::ToText(experts);
    }
  }
  if (a.state_space_layers > 0) settings += " state-space";
  if (a.delta_rule_layers > 0) settings += " delta-rule";
  if (a.convolution_layers > 0) settings += " convolution";
  if (a.single_part_blocks) settings += " single-part";
  if (a.gated_attention) settings += " gated-attention";
  return settings;
}

std::string Describe(const KernelObservation& observed) {
  std::string text =
      fmt::format("{} {}", model::ToText(observed.phase), observed.operation);
  for (const model::Kernel& kernel : observed.kernels) {
    const model::GemmExtents& g = kernel.gemm;
    text += g.batch > 0
                ? fmt::format(", {} x {} x {} x {}", g.batch, g.m, g.n, g.k)
                : fmt::format(", {}", kernel.work_items);
  }
  return text + " of " + Describe(observed.workload);
}

namespace {

// Dimensions that the name does not tell: where they are not those of the
// preset of that name, or, without a name, not the usual ones. Tables have
// names of their own for models that are no presets.
std::string UnusualDimensions(const model::Architecture& a) {
  std::string text;
  if (a.decoder_layers > 0 && a.decoder_layers != a.layers) {
    text += fmt::format(" decoder {}", a.decoder_layers);
  }
  if (a.next_token_blocks > 0) {
    text += fmt::format(" next-token {}", a.next_token_blocks);
  }
  model::Architecture usual;
  if (const auto preset = model::TryFindArchitecture(a.name)) {
    usual = *preset;
  } else if (a.name.empty() || a.name == "custom") {
    usual.family = a.family;
    SetFamilyDefaults(usual);
  } else {
    return text;
  }
  usual.name = a.name;  // "bert-base" is one of its preset's names
  usual.head = a.head;
  usual.labels = a.labels;
  usual.dropout = a.dropout;
  usual.next_token_blocks = a.next_token_blocks;
  if (a == usual) return text;
  const auto add = [&](std::string_view name, auto value, auto known) {
    if (value != known) text += fmt::format(" {} {}", name, value);
  };
  if (a.family != usual.family) {
    text += fmt::format(" {}", model::ToText(a.family));
  }
  add("embedding size", a.embedding_size, usual.embedding_size);
  add("positions", a.positions, usual.positions);
  add("position offset", a.position_offset, usual.position_offset);
  add("token types", a.token_types, usual.token_types);
  add("embedding norm", a.embedding_layer_norm, usual.embedding_layer_norm);
  add("pooler", a.pooler, usual.pooler);
  add("separate projections",
      a.separate_projections,
      usual.separate_projections);
  add("classifier dense", a.classifier_dense, usual.classifier_dense);
  add("shared next-token", a.shared_next_token, usual.shared_next_token);
  const auto usual_block = model::BlockTexts(usual);
  for (const auto& [name, value] : model::BlockTexts(a)) {
    if (value != usual_block.at(name)) {
      text += fmt::format(" {} {}", name, value);
    }
  }
  return text;
}

// What few workloads have of adapters; nothing for the others.
std::string RestOfAdapters(const model::Workload& w) {
  if (w.trainable.lora_rank == 0) return "";
  std::string text;
  const std::vector<std::string> words = ToWords(w.trainable.lora);
  text += fmt::format(" of {}", fmt::join(words, "+"));
  if (w.trainable.base_bits > 0) {
    text += fmt::format(" over {} bits", w.trainable.base_bits);
  }
  if (w.trainable.lora_dropout > 0) {
    text += fmt::format(" dropout {}", w.trainable.lora_dropout);
  }
  if (w.trainable.embeddings_beside_adapters) text += " embeddings";
  if (w.trainable.base_by_operations) text += " by operations";
  return text;
}

// The same of the update, of kernels and of how wide they are.
std::string RestOfStack(const model::Workload& w) {
  const model::Workload usual;
  std::string text;
  if (model::UpdatesNarrow(w)) text += " narrow state";
  if (w.optimizer.by_layer) text += " by layer";
  if (w.optimizer.state_bits > 0) {
    text += fmt::format(" state of {} bits", w.optimizer.state_bits);
  }
  if (w.stack.compiler_level != usual.stack.compiler_level) {
    text += fmt::format(" O{}", w.stack.compiler_level);
  }
  if (w.stack.loss != usual.stack.loss) {
    text += fmt::format(" {} loss", model::ToText(w.stack.loss));
  }
  if (w.stack.experts != usual.stack.experts) {
    text += fmt::format(" {} experts", model::ToText(w.stack.experts));
  }
  if (w.optimizer.wide_gradients) text += " wide gradients";
  if (w.optimizer.in_backward) text += " updated in the pass backward";
  if (w.trainable.wide_adapters) text += " wide adapters";
  if (w.trainable.adapters_as_units) text += " adapters as units";
  if (!w.trainable.double_quantised) text += " quantised once";
  if (w.stack.stochastic_rounding) text += " stochastic rounding";
  if (w.fp8.scaling != usual.fp8.scaling) {
    text += fmt::format(" scaled by {}", model::ToText(w.fp8.scaling));
  }
  if (!w.fp8.weight_gradients) text += " weight gradients in 16 bits";
  if (w.fp8.gathered) text += " gathered in 8 bits";
  if (w.wide_blocks > 0) {
    text += fmt::format(" {} blocks in 16 bits", w.wide_blocks);
  }
  if (w.load_factor != usual.load_factor) {
    text += fmt::format(" load factor {}", w.load_factor);
  }
  return text;
}

// The same of how ranks share a step.
std::string RestOfRanks(const model::Workload& w) {
  const model::Workload usual;
  std::string text;
  if (w.compression.kind != usual.compression.kind) {
    text += fmt::format(
        " {} {}", model::ToText(w.compression.kind), w.compression.rank);
  }
  const model::Parallel& p = w.parallel;
  if (p.shard != usual.parallel.shard) {
    text += fmt::format(" {}", model::ToText(p.shard));
  }
  if (p.data != usual.parallel.data) text += fmt::format(" over {}", p.data);
  if (p.replicate != usual.parallel.replicate) {
    text += fmt::format(" in {} copies", p.replicate);
  }
  if (p.tensor > 1) text += fmt::format(" tensor{}", p.tensor);
  if (p.sequence) text += " sequence";
  if (p.tensor_overlap != usual.parallel.tensor_overlap) {
    text += fmt::format(" overlapping {}", model::ToText(p.tensor_overlap));
  }
  if (p.context > 1) text += fmt::format(" context{}", p.context);
  if (p.expert > 1) text += fmt::format(" expert{}", p.expert);
  if (p.expert_tensor > 0) {
    text += fmt::format(" expert tensor{}", p.expert_tensor);
  }
  if (p.expert_exchange != usual.parallel.expert_exchange) {
    text += fmt::format(" {}", model::ToText(p.expert_exchange));
  }
  if (p.expert_overlap) text += " overlapping experts";
  if (p.pipeline > 1) text += fmt::format(" pipeline{}", p.pipeline);
  if (p.chunks > 1) text += fmt::format(" chunks{}", p.chunks);
  if (p.stages != usual.parallel.stages) {
    text += fmt::format(" stages by {}", model::ToText(p.stages));
  }
  if (!p.reshard_after_forward) text += " kept gathered";
  if (p.embedding_units) text += " embeddings as units";
  if (p.offload != usual.parallel.offload) {
    text += fmt::format(" offloading {}", model::ToText(p.offload));
  }
  if (p.offload_activations) text += " offloading activations";
  return text;
}

// All that few workloads have.
std::string RestOf(const model::Workload& w) {
  std::string text = UnusualDimensions(w.architecture) + RestOfAdapters(w) +
                     RestOfStack(w) + RestOfRanks(w);
  if (w.attention_checkpointing) text += " attention checkpointed";
  if (w.operation_checkpointing) text += " operations checkpointed";
  if (w.power_limit.base() > 0.0) {
    text += fmt::format(" within {} W", w.power_limit.base());
  }
  return text;
}

}  // namespace

std::string Describe(const model::Workload& workload) {
  const model::Architecture& a = workload.architecture;
  std::string text = fmt::format(
      "{} {} {}x{}x{}x{}x{} b{} s{} {} {}-{} {}-{}",
      a.name.empty() ? model::ToText(a.family) : std::string_view(a.name),
      model::ToText(a.head),
      a.layers + a.decoder_layers,
      a.hidden,
      a.heads,
      a.intermediate,
      a.vocabulary,
      workload.batch,
      workload.sequence_length,
      model::ToText(workload.precision),
      model::ToText(workload.optimizer.kind),
      model::ToText(workload.optimizer.implementation),
      model::ToText(workload.stack.fusion),
      model::ToText(workload.stack.attention));
  if (model::MastersInUpdate(workload)) text += " narrow weights";
  if (workload.accumulation > 1) {
    text += fmt::format(" x{}", workload.accumulation);
  }
  if (workload.target_length > 0) {
    text += fmt::format(" t{}", workload.target_length);
  }
  if (workload.documents > 1) {
    text += fmt::format(" d{}", workload.documents);
  }
  if (workload.work != model::Work::kTraining) {
    text += fmt::format(" {}", model::ToText(workload.work));
  }
  if (workload.predictions_per_sequence > 0) {
    text += fmt::format(" p{}", workload.predictions_per_sequence);
  }
  const model::Trainable& trainable = workload.trainable;
  if (trainable.frozen_layers > 0) {
    text += fmt::format(" frozen{}", trainable.frozen_layers);
  }
  if (trainable.lora_rank > 0) {
    text += fmt::format(" lora{}", trainable.lora_rank);
  }
  if (workload.gradient_checkpointing) text += " checkpointed";
  if (workload.checkpointed_blocks > 0) {
    text += fmt::format("{}", workload.checkpointed_blocks);
  }
  if (a.dropout != model::Architecture{}.dropout) {
    text += fmt::format(" dropout {}", a.dropout);
  }
  if (a.labels != model::Architecture{}.labels) {
    text += fmt::format(" labels {}", a.labels);
  }
  return text + RestOf(workload);
}

std::string_view ToText(Quantity quantity) {
  switch (quantity) {
    case Quantity::kStep:
      return "step";
    case Quantity::kForward:
      return "forward";
    case Quantity::kBackward:
      return "backward";
    case Quantity::kOptimizer:
      return "optimizer";
    case Quantity::kKernel:
      return "kernel";
  }
  ENSURE(false, "every quantity has a name");
}

Quantity QuantityFromText(std::string_view text) {
  std::vector<std::string_view> known;
  for (const Quantity quantity : kAllQuantities) {
    if (ToText(quantity) == text) return quantity;
    known.push_back(ToText(quantity));
  }
  throw model::InputError(
      fmt::format("expected {}, got \"{}\"", model::JoinNames(known), text));
}

}  // namespace trainfare::calibrate
