#include "model/trainable.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "model/logits.h"
#include "model/stack_rules.h"

namespace trainfare::model {
namespace {

struct Candidate {
  bool LoraMatrices::*member = nullptr;
  AdaptedMatrix matrix;
};

std::vector<AdaptedMatrix> Chosen(const Workload& w,
                                  std::initializer_list<Candidate> matrices) {
  std::vector<AdaptedMatrix> chosen;
  if (w.trainable.lora_rank == 0) return chosen;
  chosen.reserve(matrices.size());
  for (const Candidate& candidate : matrices) {
    if (!(w.trainable.lora.*candidate.member)) continue;
    // Keys are values, or are another block's.
    if (candidate.matrix.outputs == 0) continue;
    chosen.push_back(candidate.matrix);
    chosen.back().takes = TakesInput(w, candidate.member);
  }
  return chosen;
}

// Calls `with` with the attention and the dense feed-forward of blocks that
// differ, as `w` asks of theirs, and with what sort of blocks that is.
template <class With>
void ForEachSort(const Workload& w, const With& with) {
  const Architecture& a = w.architecture;
  for (const BlocksAlike& sort : BlocksByParts(a, 0, a.layers)) {
    const WorkloadOfParts of(w, sort.parts);
    with(AdaptedOfAttention(of.get()),
         AdaptedOfFeedForward(of.get(), of.get().architecture.intermediate),
         sort);
  }
}

// Calls `with` with every adapted matrix and how often it is in the model.
// Every expert that is routed to has adapters of its own.
template <class With>
void ForEachAdapted(const Workload& w, const With& with) {
  if (w.trainable.lora_rank == 0) return;
  const Architecture& a = w.architecture;
  const int64_t with_experts = a.expert_layers();
  const auto each = [&](const std::vector<AdaptedMatrix>& matrices,
                        int64_t times) {
    if (times == 0) return;
    for (const AdaptedMatrix& matrix : matrices) with(matrix, times);
  };
  // A decoder of two sides has its cross-attention under the same names.
  if (a.blocks_differ()) {
    ForEachSort(
        w, [&](const auto& attention, const auto& dense, const auto& sort) {
          each(attention, sort.count);
          if (!sort.parts.experts()) each(dense, sort.count);
        });
  } else {
    each(AdaptedOfAttention(w), a.attention_layers() + 2 * a.decoder_layers);
    each(AdaptedOfFeedForward(w, a.intermediate),
         a.feed_forwards() - with_experts + a.decoder_layers);
  }
  each(AdaptedOfLayerInput(w), a.layers);
  each(AdaptedOfLayerEmbeddings(w), 1);
  each(AdaptedOfStateSpace(w), a.state_space_layers);
  each(AdaptedOfDeltaRule(w), a.delta_rule_layers);
  each(AdaptedOfConvolution(w), a.convolution_layers);
  each(AdaptedOfExpert(w), with_experts * a.experts);
  each(AdaptedOfLatent(w), with_experts);
  if (a.shared_intermediate > 0) {
    each(AdaptedOfFeedForward(w, a.shared_intermediate), with_experts);
  }
}

// What stands beside attention and a dense feed-forward of one sort of blocks.
struct AdaptedOfSort {
  BlockParts parts;
  std::vector<AdaptedMatrix> attention;
  std::vector<AdaptedMatrix> dense;
};
std::vector<AdaptedOfSort> AdaptedOfSorts(const Workload& w) {
  std::vector<AdaptedOfSort> sorts;
  if (!w.architecture.blocks_differ()) return sorts;
  ForEachSort(w,
              [&](const auto& attention, const auto& dense, const auto& sort) {
                sorts.push_back({sort.parts, attention, dense});
              });
  return sorts;
}

// Those of all blocks, in model order.
void AppendAdapters(const Workload& w, std::vector<ParameterTensor>& tensors) {
  const Architecture& a = w.architecture;
  const int64_t rank = w.trainable.lora_rank;
  const AdaptedOfSort usual{
      {}, AdaptedOfAttention(w), AdaptedOfFeedForward(w, a.intermediate)};
  const std::vector<AdaptedOfSort> sorts = AdaptedOfSorts(w);
  const auto of_parts = [&](const BlockParts& parts) -> const AdaptedOfSort& {
    for (const AdaptedOfSort& sort : sorts) {
      if (sort.parts == parts) return sort;
    }
    return usual;
  };
  const auto layer_input = AdaptedOfLayerInput(w);
  const auto expert = AdaptedOfExpert(w);
  const auto latent = AdaptedOfLatent(w);
  const auto state_space = AdaptedOfStateSpace(w);
  const auto delta_rule = AdaptedOfDeltaRule(w);
  const auto convolution = AdaptedOfConvolution(w);
  const auto shared = AdaptedOfFeedForward(w, a.shared_intermediate);
  int64_t layer = 0;
  const auto append = [&](const std::vector<AdaptedMatrix>& matrices,
                          bool routed = false) {
    for (const AdaptedMatrix& m : matrices) {
      tensors.push_back({m.module, rank * m.inputs, layer, m.inputs, routed});
      tensors.push_back({m.module, rank * m.outputs, layer, rank, routed});
    }
  };
  append(AdaptedOfLayerEmbeddings(w));
  for (layer = 1; layer <= a.layers + a.decoder_layers; ++layer) {
    if (layer > a.layers) {
      append(usual.attention);
      append(usual.attention);
      append(usual.dense);
      continue;
    }
    const BlockParts parts = a.parts_of(layer - 1);
    const AdaptedOfSort& sort = of_parts(parts);
    if (parts.mixer == Mixer::kAttention) append(sort.attention);
    if (parts.mixer == Mixer::kStateSpace) append(state_space);
    if (parts.mixer == Mixer::kDeltaRule) append(delta_rule);
    if (parts.mixer == Mixer::kConvolution) append(convolution);
    if (parts.feed_forward == FeedForwardKind::kDense) append(sort.dense);
    append(layer_input);
    if (!parts.experts()) continue;
    for (int64_t i = 0; i < a.experts; ++i) append(expert, /*routed=*/true);
    append(latent);
    if (a.shared_intermediate > 0) append(shared);
  }
}

// Tables of a causal model of which copies train beside adapters, where a stage
// has them: its word embeddings and, unless tied to them, its output layer.
struct CopiedTables {
  bool words = false;
  bool output = false;
  int64_t count() const { return (words ? 1 : 0) + (output ? 1 : 0); }
};

CopiedTables CopiedTablesOf(const Workload& w) {
  const Architecture& a = w.architecture;
  if (!w.trainable.embeddings_beside_adapters) return {};
  return {a.looks_up_tokens, PredictsVocabulary(w) && a.untied_output};
}

// Beside adapters only the task's own layer trains; a vocabulary head is the
// pre-trained model's.
bool HeadTrainsBesideAdapters(Head head) {
  return head == Head::kSequenceClassification ||
         head == Head::kQuestionAnswering;
}

}  // namespace

LoraMatrices LoraMatricesOf(const Architecture& a) {
  LoraMatrices m;
  const bool low_rank_query = a.latent() && a.latent_query > 0;
  if (a.attention_layers() + a.decoder_layers > 0) {
    m.query = !low_rank_query;
    m.query_down = m.query_up = low_rank_query;
    m.key = !a.latent() && a.key_projection_width() > 0;
    m.value = !a.latent() && a.value_projection_width() > 0;
    m.key_value_down = m.key_value_up = a.latent();
    m.output = true;
    m.attention_gate = a.separate_attention_gate;
  }
  m.state_space_in = m.state_space_out = a.state_space_layers > 0;
  const bool delta = a.delta_rule_layers > 0;
  m.delta_rule_in = m.delta_rule_write = m.delta_rule_out = delta;
  m.delta_rule_gate = m.delta_rule_decay = delta && !a.delta_joint_projections;
  m.convolution_in = m.convolution_out = a.convolution_layers > 0;
  const bool widens = a.feed_forwards() + a.decoder_layers > 0;
  m.feed_forward_gate = widens && a.gated;
  m.feed_forward_in = m.feed_forward_out = widens;
  m.expert_latent_in = m.expert_latent_out = widens && a.expert_latent > 0;
  m.layer_gate = m.layer_projection = m.layer_embeddings =
      a.layer_embedding_size > 0;
  return m;
}

namespace {

// What modules are of which models have different ones by the same name. LFM2
// calls the last products of attention and of its convolutions the same, AFMoE
// the gates of attention and of feed-forwards.
void NameModulesOf(const Architecture& a, LoraMatrices& named) {
  if (named.in_proj) {
    bool& in =
        a.convolution_layers > 0 ? named.convolution_in : named.state_space_in;
    in = true;
  }
  if (named.out_proj) {
    bool& out = a.state_space_layers > 0  ? named.state_space_out
                : a.delta_rule_layers > 0 ? named.delta_rule_out
                                          : named.output;
    out = out || a.convolution_layers == 0 || a.attention_layers() > 0;
    if (a.convolution_layers > 0) named.convolution_out = true;
  }
  if (named.gate_proj) {
    named.feed_forward_gate = true;
    if (a.separate_attention_gate) named.attention_gate = true;
  }
  named.in_proj = named.out_proj = named.gate_proj = false;
}

}  // namespace

void NameUsualMatrices(const Architecture& a, Trainable& trainable) {
  LoraMatrices& named = trainable.lora;
  NameModulesOf(a, named);
  if (trainable.lora_rank == 0 || named != LoraMatrices{}) return;
  // Of a model that is not known yet there is nothing of either.
  if (a.other_mixers() > 0 && a.attention_layers() == 0) {
    named.state_space_in = a.state_space_layers > 0;
    named.delta_rule_in = a.delta_rule_layers > 0;
    named.convolution_in = a.convolution_layers > 0;
    return;
  }
  named.query = named.value = !a.latent();
  named.key_value_down = named.output = a.latent();
}

void NameAllMatrices(const Architecture& a,
                     Fusion fusion,
                     Trainable& trainable) {
  LoraMatrices all;
  AddLoraMatrix("all", all);
  if (trainable.lora != all) return;
  trainable.lora = Modules(fusion, LoraMatricesOf(a));
}

LoraMatrices Modules(Fusion fusion, LoraMatrices matrices) {
  if (!StateSpaceOutIsModule(fusion)) matrices.state_space_out = false;
  if (OneFirstProduct(fusion)) {
    matrices.delta_rule_gate = matrices.delta_rule_write =
        matrices.delta_rule_decay = false;
  }
  return matrices;
}

bool StateSpaceOutIsModule(Fusion fusion) {
  return RulesOf(fusion).block == BlockKernels::kHandFused;
}

std::vector<AdaptedMatrix> AdaptedOfAttention(const Workload& w) {
  using M = LoraMatrices;
  const Architecture& a = w.architecture;
  const int64_t h = a.hidden;
  if (OneAdapterOfProjections(w)) {
    return Chosen(w,
                  {{&M::query, {"query", h, a.projections_width(), false}},
                   {&M::attention_gate,
                    {"attention_gate", h, a.attention_gate_width(), false}},
                   {&M::output, {"output", a.context_width(), h, false}}});
  }
  return Chosen(
      w,
      {{&M::query, {"query", h, a.query_projection_width(), false}},
       {&M::query_down, {"query_down", h, a.latent_query, false}},
       {&M::query_up, {"query_up", a.latent_query, a.query_width(), false}},
       {&M::key, {"key", h, a.key_projection_width(), true}},
       {&M::value, {"value", h, a.value_projection_width(), true}},
       {&M::key_value_down,
        {"key_value_down", h, a.key_value_down_width(), false}},
       {&M::key_value_up,
        {"key_value_up", a.latent_key_value, a.key_value_up_width(), false}},
       {&M::attention_gate,
        {"attention_gate", h, a.attention_gate_width(), false}},
       {&M::output, {"output", a.context_width(), h, false}}});
}

namespace {

// Of a feed-forward of so wide rows.
std::vector<AdaptedMatrix> AdaptedOfRows(const Workload& w,
                                         int64_t h,
                                         int64_t width) {
  using M = LoraMatrices;
  if (OneAdapterOfGate(w)) {
    return Chosen(
        w,
        {{&M::feed_forward_gate, {"feed_forward_gate", h, 2 * width, false}},
         {&M::feed_forward_out, {"feed_forward_out", width, h, false}}});
  }
  return Chosen(
      w,
      {{&M::feed_forward_gate, {"feed_forward_gate", h, width, false}},
       {&M::feed_forward_in, {"feed_forward_in", h, width, false}},
       {&M::feed_forward_out, {"feed_forward_out", width, h, false}}});
}

}  // namespace

std::vector<AdaptedMatrix> AdaptedOfFeedForward(const Workload& w,
                                                int64_t width) {
  return AdaptedOfRows(w, w.architecture.hidden, width);
}

std::vector<AdaptedMatrix> AdaptedOfExpert(const Workload& w) {
  const Architecture& a = w.architecture;
  return AdaptedOfRows(w, a.expert_width(), a.expert_intermediate);
}

std::vector<AdaptedMatrix> AdaptedOfLatent(const Workload& w) {
  using M = LoraMatrices;
  const int64_t h = w.architecture.hidden;
  const int64_t latent = w.architecture.expert_latent;
  if (latent == 0) return {};
  return Chosen(
      w,
      {{&M::expert_latent_in, {"expert_latent_in", h, latent, false}},
       {&M::expert_latent_out, {"expert_latent_out", latent, h, false}}});
}

std::vector<AdaptedMatrix> AdaptedOfStateSpace(const Workload& w) {
  using M = LoraMatrices;
  const Architecture& a = w.architecture;
  return Chosen(
      w,
      {{&M::state_space_in,
        {"state_space_in", a.hidden, a.state_projection_width(), false}},
       {&M::state_space_out,
        {"state_space_out", a.state_width(), a.hidden, false}}});
}

namespace {

// Columns of the widest of the first products of the delta rule.
int64_t FirstOfDeltaRule(const Workload& w) {
  const Architecture& a = w.architecture;
  if (OneFirstProduct(w.stack.fusion)) return a.delta_projection_width();
  return a.delta_channels() +
         (a.delta_joint_projections ? a.delta_value_width() : 0);
}

}  // namespace

bool OneFirstProduct(Fusion fusion) {
  return RulesOf(fusion).block == BlockKernels::kHandFused;
}

std::vector<AdaptedMatrix> AdaptedOfDeltaRule(const Workload& w) {
  using M = LoraMatrices;
  const Architecture& a = w.architecture;
  const int64_t h = a.hidden;
  const int64_t heads = a.delta_value_heads;
  const int64_t gate = a.delta_value_width();
  const int64_t write = (a.delta_joint_projections ? 2 : 1) * heads;
  return Chosen(
      w,
      {{&M::delta_rule_in, {"delta_rule_in", h, FirstOfDeltaRule(w), false}},
       {&M::delta_rule_gate, {"delta_rule_gate", h, gate, false}},
       {&M::delta_rule_write, {"delta_rule_write", h, write, false}},
       {&M::delta_rule_decay, {"delta_rule_decay", h, heads, false}},
       {&M::delta_rule_out, {"delta_rule_out", gate, h, false}}});
}

std::vector<AdaptedMatrix> AdaptedOfConvolution(const Workload& w) {
  using M = LoraMatrices;
  const Architecture& a = w.architecture;
  const int64_t h = a.hidden;
  return Chosen(
      w,
      {{&M::convolution_in,
        {"convolution_in", h, a.convolution_projection_width(), false}},
       {&M::convolution_out,
        {"convolution_out", a.convolution_width(), h, false}}});
}

std::vector<AdaptedMatrix> AdaptedOfLayerInput(const Workload& w) {
  using M = LoraMatrices;
  const int64_t h = w.architecture.hidden;
  const int64_t size = w.architecture.layer_embedding_size;
  if (size == 0) return {};
  return Chosen(w,
                {{&M::layer_gate, {"layer_gate", h, size, false}},
                 {&M::layer_projection, {"layer_projection", size, h, false}}});
}

std::vector<AdaptedMatrix> AdaptedOfLayerEmbeddings(const Workload& w) {
  const Architecture& a = w.architecture;
  return Chosen(
      w,
      {{&LoraMatrices::layer_embeddings,
        {"layer_embeddings", a.hidden, a.layer_table_width(), false}}});
}

bool OneAdapterOfProjections(const Workload& w) {
  const LoraMatrices& m = w.trainable.lora;
  return w.trainable.lora_rank > 0 && w.architecture.joint_projection() &&
         m.query && m.key && m.value;
}

bool OneAdapterOfGate(const Workload& w) {
  const LoraMatrices& m = w.trainable.lora;
  return w.trainable.lora_rank > 0 && w.architecture.joint_gate &&
         m.feed_forward_gate && m.feed_forward_in;
}

bool DropsAdapterInputs(const Workload& w) {
  return w.trainable.lora_rank > 0 && w.trainable.lora_dropout > 0 &&
         w.work != Work::kForward;
}

bool WidensAdapterInputs(const Workload& w) {
  return w.trainable.lora_rank > 0 && w.trainable.wide_adapters &&
         BytesPerElement(w.precision) < kSingle &&
         RulesOf(w).block != BlockKernels::kCompiled;
}

bool TakesInput(const Workload& w, bool LoraMatrices::*matrix) {
  const Architecture& a = w.architecture;
  const LoraMatrices& m = w.trainable.lora;
  if (w.trainable.lora_rank == 0 || !(m.*matrix)) return false;
  if (a.joint_projection()) {
    if (matrix == &LoraMatrices::key) return !m.query;
    if (matrix == &LoraMatrices::value) return !m.query && !m.key;
  }
  if (a.joint_gate && matrix == &LoraMatrices::feed_forward_in) {
    return !m.feed_forward_gate;
  }
  return true;
}

std::vector<ParameterTensor> TrainableTensorsOf(const Workload& w) {
  const Architecture& a = w.architecture;
  if (w.trainable.everything()) return ParameterTensorsOf(a);
  std::vector<ParameterTensor> trains;
  if (w.trainable.lora_rank > 0) {
    trains.reserve(static_cast<size_t>(TrainableTensorCount(w)));
    const CopiedTables copies = CopiedTablesOf(w);
    const auto append_table = [&](std::string_view name, int64_t layer) {
      trains.push_back(
          {name, a.vocabulary * a.word_width(), layer, a.word_width()});
    };
    if (copies.words) append_table("word_embeddings", 0);
    AppendAdapters(w, trains);
    if (copies.output) append_table("lm_head", a.blocks() + 1);
    if (HeadTrainsBesideAdapters(a.head)) {
      const std::vector<ParameterTensor> head = HeadTensorsOf(a);
      trains.insert(trains.end(), head.begin(), head.end());
    }
    return trains;
  }
  const std::vector<ParameterTensor> all = ParameterTensorsOf(a);
  std::copy_if(all.begin(),
               all.end(),
               std::back_inserter(trains),
               [&](const ParameterTensor& tensor) {
                 return tensor.layer > w.trainable.frozen_layers;
               });
  return trains;
}

int64_t TrainableTensorCount(const Workload& w) {
  const Architecture& a = w.architecture;
  if (w.trainable.everything()) return ParameterTensorCount(a);
  if (w.trainable.lora_rank == 0) {
    return static_cast<int64_t>(TrainableTensorsOf(w).size());
  }
  const size_t head =
      HeadTrainsBesideAdapters(a.head) ? HeadTensorsOf(a).size() : 0;
  return AdapterTensorCount(w) + CopiedTablesOf(w).count() +
         static_cast<int64_t>(head);
}

int64_t TrainableParameters(const Workload& w) {
  const Architecture& a = w.architecture;
  if (w.trainable.everything()) return TotalParameters(a);
  if (w.trainable.lora_rank > 0) {
    return AdapterParameters(w) + EmbeddingCopies(w) +
           (HeadTrainsBesideAdapters(a.head) ? HeadParameters(a) : 0);
  }
  int64_t sum = 0;
  for (const ParameterTensor& tensor : TrainableTensorsOf(w)) {
    sum += tensor.elements;
  }
  return sum;
}

bool EmbeddingsMayTrainBesideAdapters(const Architecture& a) {
  return a.head == Head::kCausalLanguageModel && !a.embedding_layer_norm &&
         !a.projects_embeddings();
}

bool EmbeddingsTrain(const Workload& w) {
  return w.architecture.looks_up_tokens &&
         (w.trainable.everything() || w.trainable.embeddings_beside_adapters);
}

bool LayerEmbeddingsTrain(const Workload& w) {
  return w.architecture.layer_embedding_size > 0 &&
         (EmbeddingsTrain(w) ||
          (w.trainable.lora_rank > 0 && w.trainable.lora.layer_embeddings));
}

int64_t EmbeddingCopies(const Workload& w) {
  const Architecture& a = w.architecture;
  return CopiedTablesOf(w).count() * a.vocabulary * a.word_width();
}

int64_t OutputCopies(const Workload& w) {
  if (!PredictsVocabulary(w)) return 0;
  const Architecture& a = w.architecture;
  const CopiedTables copies = CopiedTablesOf(w);
  const bool made = copies.output || (copies.words && !a.untied_output);
  return made ? a.vocabulary * a.word_width() : 0;
}

int64_t ParametersInAll(const Workload& w) {
  return TotalParameters(w.architecture) + AdapterParameters(w) +
         EmbeddingCopies(w);
}

int64_t AdapterParameters(const Workload& w) {
  int64_t sum = 0;
  ForEachAdapted(w, [&](const AdaptedMatrix& matrix, int64_t times) {
    sum += times * w.trainable.lora_rank * (matrix.inputs + matrix.outputs);
  });
  return sum;
}

namespace {

// The same with experts of which nothing is left but the router.
Workload WithoutExperts(const Workload& w) {
  Workload without = w;
  without.architecture.expert_intermediate = 0;
  without.architecture.expert_bias = false;
  return without;
}

int64_t ExpertAdapterParameters(const Workload& w) {
  const Architecture& a = w.architecture;
  int64_t of_expert = 0;
  for (const AdaptedMatrix& matrix : AdaptedOfExpert(w)) {
    of_expert += w.trainable.lora_rank * (matrix.inputs + matrix.outputs);
  }
  return a.expert_layers() * a.experts * of_expert;
}

}  // namespace

int64_t ExpertParametersInAll(const Workload& w) {
  const Workload without = WithoutExperts(w);
  return TotalParameters(w.architecture) -
         TotalParameters(without.architecture) + ExpertAdapterParameters(w);
}

int64_t TrainableExpertParameters(const Workload& w) {
  if (w.trainable.lora_rank > 0) return ExpertAdapterParameters(w);
  return TrainableParameters(w) - TrainableParameters(WithoutExperts(w));
}

int64_t AdapterTensorCount(const Workload& w) {
  int64_t tensors = 0;
  ForEachAdapted(
      w, [&](const AdaptedMatrix&, int64_t times) { tensors += 2 * times; });
  return tensors;
}

std::optional<AdaptedMatrix> SmallestAdapted(const Workload& w) {
  std::optional<AdaptedMatrix> smallest;
  ForEachAdapted(w, [&](const AdaptedMatrix& matrix, int64_t) {
    if (!smallest || matrix.smaller_side() < smallest->smaller_side()) {
      smallest = matrix;
    }
  });
  return smallest;
}

int64_t LayersWithBackward(const Workload& w) {
  return w.architecture.layers - w.trainable.frozen_layers;
}

int64_t BlocksComputedAgain(const Workload& w) {
  if (!w.gradient_checkpointing) return 0;
  const int64_t all = LayersWithBackward(w);
  return w.checkpointed_blocks > 0 ? std::min(w.checkpointed_blocks, all) : all;
}

bool AllBlocksComputedAgain(const Workload& w) {
  const int64_t again = BlocksComputedAgain(w);
  return again > 0 && again == LayersWithBackward(w);
}

bool BaseAsProducts(const Workload& w) {
  const int64_t bits = w.trainable.base_bits;
  return (bits == 8 && w.precision == Precision::kFp8) ||
         (bits == 4 && w.precision == Precision::kFp4);
}

int64_t QuantisedElements(const Workload& w) {
  if (w.trainable.base_bits == 0) return 0;
  const Architecture& a = w.architecture;
  const int64_t of_last_products =
      StateSpaceOutIsModule(w.stack.fusion)
          ? 0
          : a.state_space_layers * a.state_width() * a.hidden;
  return BlockMatrixElements(a) - of_last_products;
}

bool WidensBase(const Workload& w) {
  return w.trainable.base_bits > 0 && !BaseAsProducts(w);
}

bool OperationsMayWidenBase(const Architecture& a) {
  return a.experts == 0 && a.decoder_layers == 0 && !a.other_blocks();
}

bool ActivationTrains(const Workload& w) {
  return w.architecture.activation == Activation::kXielu &&
         w.trainable.lora_rank == 0;
}

int64_t WidenedBlockBytes(const Workload& w) {
  if (!WidensBase(w) || !w.trainable.base_by_operations) return 0;
  const Architecture& a = w.architecture;
  return QuantisedElements(w) / a.layers * BytesPerElement(w.precision);
}

int64_t WidenedMatrixBytes(const Workload& w) {
  if (!WidensBase(w) || w.trainable.base_by_operations) return 0;
  // Adapters may stand beside each of these matrices.
  Workload all = w;
  all.trainable.lora = LoraMatricesOf(w.architecture);
  int64_t largest = 0;
  ForEachAdapted(all, [&](const AdaptedMatrix& matrix, int64_t /*times*/) {
    largest = std::max(largest, matrix.inputs * matrix.outputs);
  });
  return largest * BytesPerElement(w.precision);
}

}  // namespace trainfare::model
