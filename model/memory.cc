#include "model/memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "model/bisection.h"
#include "model/error.h"
#include "model/internal/enum_names.h"
#include "model/optimizer_kernels.h"
#include "model/sharding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model {
namespace {

constexpr std::array kMoments = {
    std::pair{MemoryMoment::kForward, std::string_view("forward pass")},
    std::pair{MemoryMoment::kBackwardStart,
              std::string_view("start of the backward pass")},
    std::pair{MemoryMoment::kBackwardEnd,
              std::string_view("end of the backward pass")},
    std::pair{MemoryMoment::kOptimizerStep, std::string_view("optimizer step")},
};

constexpr int64_t kSingle = 4;      // bytes of an fp32 number
constexpr int64_t kMask = 1;        // of a dropout mask's element
constexpr int64_t kIndex = 8;       // of a token id
constexpr int64_t kStatistics = 8;  // mean and deviation of a row, fp32

// Widths of what a stack keeps.
struct Widths {
  int64_t element;  // operands of matrix products
  int64_t wide;     // results of LayerNorm and softmax
  int64_t mask;     // 0 without dropout
  bool autocast;    // operands are narrow copies of wide tensors

  explicit Widths(const Workload& w)
      : element(BytesPerElement(w.precision)),
        wide(Autocasts(w) ? kSingle : element),
        mask(w.architecture.dropout > 0 ? kMask : 0),
        autocast(Autocasts(w)) {}
};

bool TwoSided(const Workload& w) {
  return w.architecture.family == Family::kEncoderDecoder;
}

int64_t TargetLength(const Workload& w) {
  return w.target_length > 0 ? w.target_length : w.sequence_length;
}

// Whether the input of a matrix is kept: for the gradient of its weights, or
// of the adapter beside it. A frozen matrix needs only itself.
bool KeepsInput(const Workload& w, bool LoraMatrices::*matrix) {
  return w.trainable.lora_rank == 0 || w.trainable.lora.*matrix;
}

// X A of the adapter beside a matrix, kept for B's gradient.
int64_t AdapterBytes(const Workload& w,
                     int64_t tokens,
                     bool LoraMatrices::*matrix) {
  return w.trainable.lora.*matrix
             ? tokens * w.trainable.lora_rank * Widths(w).element
             : 0;
}

// Bytes kept of latent attention: what its two products take and their norms
// give.
int64_t LatentBytes(const Workload& w, int64_t tokens) {
  const Architecture& a = w.architecture;
  if (!a.latent()) return 0;
  const Widths width(w);
  // Keys are as many as queries; counted above as if each head had its own.
  return tokens *
         (2 * (a.latent_query + a.latent_key_value) + a.rotary_head_size) *
         width.element;
}

// What an RMSNorm of single operations keeps besides its input: that input and
// its scaled form in fp32.
int64_t NormTemporaries(const Workload& w, int64_t tokens) {
  const Architecture& a = w.architecture;
  if (a.norm != Norm::kRms || RulesOf(w).fuses_norm) return 0;
  return tokens * a.hidden * 2 * kSingle;
}

// One attention block and the residual and LayerNorm behind it.
int64_t AttentionBytes(const Workload& w,
                       int64_t query_length,
                       int64_t key_length,
                       bool cross) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  const int64_t h = a.hidden;
  const int64_t queries = w.batch * query_length;
  const int64_t keys = w.batch * key_length;
  const int64_t scores =
      w.batch * w.architecture.heads * query_length * key_length;

  // Inputs of the three projections: one tensor, or under autocast a narrow
  // copy for each. The encoder's output, which cross-attention reads, is kept
  // once for all layers when it needs no copy.
  const int64_t other = cross ? keys : queries;
  const bool query = KeepsInput(w, &LoraMatrices::query);
  const bool key = KeepsInput(w, &LoraMatrices::key);
  const bool value = KeepsInput(w, &LoraMatrices::value);
  int64_t inputs = 0;
  if (width.autocast) {
    inputs = (query ? queries : 0) + (key ? other : 0) + (value ? other : 0);
  } else if (query || key || value) {
    inputs = queries;
  }
  int64_t bytes = inputs * h * width.element;
  bytes += AdapterBytes(w, queries, &LoraMatrices::query) +
           AdapterBytes(w, keys, &LoraMatrices::key) +
           AdapterBytes(w, keys, &LoraMatrices::value) +
           AdapterBytes(w, queries, &LoraMatrices::output);
  // Split into heads.
  bytes +=
      (queries * a.query_width() + keys * (a.key_width() + a.value_width())) *
      width.element;
  bytes += LatentBytes(w, queries) + NormTemporaries(w, queries);
  if (a.query_key_norm != QueryKeyNorm::kNone) {  // their inputs
    bytes += (queries * a.query_width() + keys * a.key_width()) * width.element;
  }

  if (w.stack.attention == Attention::kFlash) {
    bytes += w.batch * w.architecture.heads * query_length * kSingle;
  } else {
    switch (RulesOf(w).block) {
      case BlockKernels::kByOperation: {
        // Probabilities; mask; what dropout or the cast made of them.
        const bool changed = width.mask > 0 || width.autocast;
        bytes +=
            scores * (width.wide + width.mask + (changed ? width.element : 0));
        break;
      }
      case BlockKernels::kFusedPasses:
      case BlockKernels::kHandFused:
        bytes += scores * (width.element + width.mask +
                           (width.mask > 0 ? width.element : 0));
        break;
      case BlockKernels::kCompiled:  // dropout is applied again in the backward
                                     // pass
        bytes += scores * (width.element + width.mask);
        break;
    }
  }
  if (KeepsInput(w, &LoraMatrices::output)) {
    bytes += queries * a.context_width() * width.element;  // context, merged
  }
  bytes += queries * h * width.mask;
  bytes += queries * (h * width.wide + kStatistics);  // input of LayerNorm
  return bytes;
}

// Bytes kept of a feed-forward over so many rows, without its input: what the
// activation took and gave; with a gate both products and theirs, and,
// operation by operation, the activation of the gate.
int64_t HiddenBytes(const Workload& w, int64_t rows, int64_t intermediate) {
  const Architecture& a = w.architecture;
  const int64_t one = rows * intermediate * Widths(w).element;
  int64_t bytes = one;
  if (KeepsInput(w, &LoraMatrices::feed_forward_out)) bytes += one;
  if (a.gated) bytes += RulesOf(w).fuses_gate ? one : 2 * one;
  return bytes;
}

int64_t ExpertBytes(const Workload& w, int64_t tokens) {
  const Architecture& a = w.architecture;
  const Widths width(w);
  const int64_t rows = tokens * a.experts_per_token;
  int64_t bytes = tokens * a.experts * kSingle;  // scores
  // Rows side by side, and what comes back of them before it is weighted.
  bytes += 2 * rows * a.hidden * width.element;
  bytes += HiddenBytes(w, rows, a.expert_intermediate);
  if (a.shared_intermediate > 0) {
    bytes += HiddenBytes(w, tokens, a.shared_intermediate) +
             tokens * a.hidden * width.element;
  }
  return bytes;
}

int64_t FeedForwardBytes(const Workload& w, int64_t tokens, bool experts) {
  const Widths width(w);
  const int64_t h = w.architecture.hidden;
  const int64_t i = w.architecture.intermediate;
  int64_t bytes = experts ? ExpertBytes(w, tokens) : HiddenBytes(w, tokens, i);
  if (KeepsInput(w, &LoraMatrices::feed_forward_in) ||
      KeepsInput(w, &LoraMatrices::feed_forward_gate)) {
    bytes += tokens * h * width.element;
  }
  bytes += NormTemporaries(w, tokens);
  bytes += AdapterBytes(w, tokens, &LoraMatrices::feed_forward_gate) +
           AdapterBytes(w, tokens, &LoraMatrices::feed_forward_in) +
           AdapterBytes(w, tokens, &LoraMatrices::feed_forward_out);
  if (RulesOf(w).block == BlockKernels::kHandFused) {
    bytes += tokens * i * width.mask;
  }
  // Fairseq's translation models drop out the activation, too: its mask, and
  // what it made of the tensor.
  if (RulesOf(w).drops_activation_apart && TwoSided(w) && width.mask > 0) {
    bytes += tokens * i * (width.mask + width.element);
  }
  bytes += tokens * h * width.mask;
  bytes += tokens * (h * width.wide + kStatistics);
  return bytes;
}

int64_t EmbeddingBytes(const Workload& w, int64_t tokens) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  int64_t tables = 1;
  if (a.table_rows() > 0) ++tables;
  if (a.token_types > 0) ++tables;
  int64_t bytes = tokens * tables * kIndex;
  if (a.embedding_layer_norm) {
    bytes += tokens * (a.hidden * width.wide + kStatistics);
  }
  return bytes + tokens * a.hidden * width.mask;
}

// Rows at which the head gives logits, and how many classes each has.
struct Logits {
  int64_t rows = 0;
  int64_t classes = 0;
  bool vocabulary = false;
};

Logits LogitsOf(const Workload& w) {
  const Architecture& a = w.architecture;
  const int64_t length = TwoSided(w) ? TargetLength(w) : w.sequence_length;
  switch (a.head) {
    case Head::kNone:
      return {};
    case Head::kSequenceClassification:
      return {w.batch, a.labels, false};
    case Head::kQuestionAnswering:
      return {w.batch * length, 2, false};
    case Head::kMaskedLanguageModel:
    case Head::kPreTraining:
    case Head::kCausalLanguageModel:
      return {
          w.batch * (w.predictions_per_sequence > 0 ? w.predictions_per_sequence
                                                    : length),
          a.vocabulary,
          true};
  }
  ENSURE(false, "a head without logits");
}

int64_t HeadBytes(const Workload& w) {
  const Widths width(w);
  const Logits logits = LogitsOf(w);
  const bool transformed =
      logits.vocabulary && w.architecture.head != Head::kCausalLanguageModel;
  if (!transformed) return 0;
  // Dense, GELU, LayerNorm: three inputs and the operand of the projection.
  return logits.rows *
         (w.architecture.hidden * (3 * width.element + width.wide) +
          kStatistics);
}

// Logits, their log-probabilities and, in training, the gradient, in fp32.
int64_t LogitBytes(const Workload& w) {
  const Logits logits = LogitsOf(w);
  const int64_t kept = w.work == Work::kForward ? 1 : 2;
  // Eager causal models widen narrow logits and let these go: what stands at
  // once is widened logits, a copy of them without the last position or their
  // gradient, and log-probabilities (modeling_llama.py of Transformers 4.40).
  const bool widened = RulesOf(w).shifts_logits && kept == 2 &&
                       BytesPerElement(w.precision) < kSingle &&
                       w.architecture.head == Head::kCausalLanguageModel;
  if (widened) return 3 * logits.rows * logits.classes * kSingle;
  if (RulesOf(w).chunks_loss &&
      w.architecture.head == Head::kCausalLanguageModel) {
    // In place, with one fp32 copy; beside them the rows' own gradient.
    return LossChunk(w.architecture, logits.rows) * logits.classes *
               (BytesPerElement(w.precision) + kSingle) +
           logits.rows * w.architecture.hidden * BytesPerElement(w.precision);
  }
  if (RulesOf(w).fuses_loss && logits.vocabulary) {
    return logits.rows * logits.classes * BytesPerElement(w.precision);
  }
  return logits.rows * logits.classes *
         (BytesPerElement(w.precision) + kept * kSingle);
}

int64_t LongestQuery(const Workload& w) {
  return TwoSided(w) ? std::max(TargetLength(w), w.sequence_length)
                     : w.sequence_length;
}

// Tensors of the one block that a pass is in: the larger of attention, with
// `head_tensors` split into heads, and feed-forward.
int64_t BlockTransients(const Workload& w, int64_t head_tensors) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  const int64_t length = LongestQuery(w);
  const int64_t tokens = w.batch * length;
  const int64_t residual = 2 * tokens * a.hidden * width.wide;
  // Queries, keys and values, and as far as four the context.
  const int64_t widths = a.query_width() + a.key_width() + a.value_width() +
                         (head_tensors > 3 ? a.context_width() : 0);
  const int64_t heads = tokens * widths * width.element;
  const int64_t scores =
      w.stack.attention == Attention::kFlash
          ? 0
          : 2 * w.batch * a.heads * length * length * width.wide;
  const int64_t inner =
      std::max(a.experts < 1 || a.dense_layers > 0 ? a.intermediate : 0,
               a.experts_per_token * a.expert_intermediate);
  const int64_t feed_forward =
      (a.gated ? 3 : 2) * tokens * inner * width.element;
  return residual + std::max(heads + scores, feed_forward);
}

// What a backward pass holds besides what was kept for it: gradients of
// queries, keys and values.
int64_t BackwardTransients(const Workload& w) { return BlockTransients(w, 3); }

// A forward pass that keeps nothing: queries, keys, values and context.
int64_t ForwardTransients(const Workload& w) { return BlockTransients(w, 4); }

// Keys and values of grouped attention that single operations repeat, so that
// every head of the queries has its own (Transformers' repeat_kv).
int64_t RepeatedHeadBytes(const Workload& w, int64_t tokens) {
  const Architecture& a = w.architecture;
  if (a.latent() || !OperationByOperation(w.stack)) return 0;
  return tokens * (a.heads - a.key_heads()) *
         (a.query_head_size() + a.context_head_size()) * Widths(w).element;
}

// Activations while the head is at work: those that the backward pass finds,
// and of the block that it computes anew.
struct ActivationBytes {
  int64_t kept = 0;
  int64_t anew = 0;
};

ActivationBytes Activations(const Workload& w) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  const int64_t source = w.batch * w.sequence_length;
  const int64_t target = w.batch * TargetLength(w);
  // Blocks without a backward pass keep nothing, frozen embeddings neither.
  const int64_t layers = LayersWithBackward(w);
  const bool embeddings = w.trainable.everything();
  ActivationBytes result;
  int64_t& bytes = result.kept;
  bytes = HeadBytes(w);
  if (embeddings) bytes += EmbeddingBytes(w, source);
  const int64_t expert_layers = std::min(layers, a.expert_layers());
  const int64_t plain = layers - expert_layers;
  const int64_t dense = plain > 0 ? LayerActivationBytes(w) : 0;
  const int64_t expert =
      expert_layers > 0 ? LayerActivationBytes(w, /*experts=*/true) : 0;
  const int64_t decoder_layer =
      TwoSided(w) ? DecoderLayerActivationBytes(w) : 0;
  if (w.gradient_checkpointing) {
    // The input of every block, and one block in full, with what it gives,
    // while it runs again.
    bytes += layers * source * a.hidden * width.wide;
    if (TwoSided(w)) bytes += a.decoder_layers * target * a.hidden * width.wide;
    result.anew = std::max({dense, expert, decoder_layer}) +
                  source * a.hidden * width.wide + RepeatedHeadBytes(w, source);
  } else {
    bytes += plain * dense + expert_layers * expert +
             a.decoder_layers * decoder_layer;
  }
  if (TwoSided(w) && embeddings) bytes += EmbeddingBytes(w, target);
  return result;
}

// Tensors as large as the parameters that an update makes and drops, out of
// `parameters` elements: a multi-tensor update holds whole lists of them, a
// for-loop those of its largest tensor, a fused one none.
int64_t OptimizerTemporaries(const Workload& w, int64_t parameters) {
  int64_t lists = 0;
  switch (w.optimizer.kind) {
    case OptimizerKind::kNone:
      return 0;
    case OptimizerKind::kSgd:
      break;  // updates in place
    case OptimizerKind::kAdamW:
    case OptimizerKind::kLamb:
    case OptimizerKind::kBertAdam:
      lists = 1;  // the root of the second moment
      break;
    case OptimizerKind::kAdan:
      lists = 2;  // and the difference of two gradients
      break;
  }
  switch (w.optimizer.implementation) {
    case OptimizerImplementation::kForLoop: {
      int64_t largest = 0;
      for (const ParameterTensor& tensor : TrainableTensorsOf(w)) {
        largest = std::max(largest, tensor.elements);
      }
      // And its gradient in fp32.
      if (MastersInUpdate(w)) ++lists;
      return lists * ShareOf(largest, w.parallel) * BytesOfState(w);
    }
    case OptimizerImplementation::kMultiTensor:
      return lists * parameters * BytesOfState(w);
    case OptimizerImplementation::kFused:
      return 0;
  }
  ENSURE(false, "an implementation without temporaries");
}

// What ranks that share the state hold besides their shares.
struct Gathered {
  int64_t parameters = 0;  // in whole, while blocks go by
  int64_t at_end = 0;      // of these, when the backward pass ends
  int64_t gradients = 0;   // of one unit, before they are summed
  int64_t root_gradients = 0;
  int64_t buffers = 0;  // of the collectives
  int64_t buffers_at_end = 0;
};

// The root and two blocks, the one at work and the next, in whole; without
// resharding all blocks. Beside them what one block is gathered into and its
// gradients are copied to. Source: PyTorch FSDP2 (fully_shard), and for ranks
// that hold all parameters DeepSpeed's bucket of gradients.
Gathered GatheredOf(const Workload& w) {
  Gathered held;
  if (ShardsOf(w.parallel) == 1) return held;
  if (!ShardsParameters(w.parallel)) {
    held.buffers = held.buffers_at_end =
        std::min(TrainableParameters(w), kReduceBucket) * GradientWidth(w);
    return held;
  }
  const ShardUnits units = ShardUnitsOf(w);
  const int64_t root = GatheredBytes(w, units.root);
  int64_t blocks = 0;
  int64_t block = 0;
  int64_t summed = 0;
  int64_t trained = 0;
  for (const ShardUnit& unit : units.blocks) {
    blocks += GatheredBytes(w, unit);
    block = std::max(block, GatheredBytes(w, unit));
    summed = std::max(summed, SummedBytes(w, unit));
    trained = std::max(trained, unit.trained);
  }
  const int64_t two = std::min(blocks, 2 * block);
  held.parameters = root + (w.parallel.reshard_after_forward ? two : blocks);
  held.at_end = root;
  const int64_t width =
      NarrowWeights(w) ? BytesPerElement(w.precision) : kSingle;
  held.gradients = trained * width;
  held.root_gradients = units.root.trained * width;
  held.buffers = block + summed;
  held.buffers_at_end = SummedBytes(w, units.root);
  return held;
}

Bytes<> Size(int64_t bytes) { return Byte(static_cast<double>(bytes)); }

MemoryEstimate Make(MemoryMoment moment, const std::vector<MemoryTerm>& terms) {
  MemoryEstimate estimate;
  estimate.moment = moment;
  for (const MemoryTerm& term : terms) {
    if (term.size.base() > 0) estimate.terms.push_back(term);
  }
  return estimate;
}

}  // namespace

Bytes<> MemoryEstimate::total() const {
  Bytes<> sum;
  for (const MemoryTerm& term : terms) sum += term.size;
  return sum;
}

Bytes<> MemoryEstimate::Of(std::string_view name) const {
  Bytes<> sum;
  for (const MemoryTerm& term : terms) {
    if (term.name == name) sum += term.size;
  }
  return sum;
}

int64_t LayerActivationBytes(const Workload& w, bool experts) {
  return AttentionBytes(w, w.sequence_length, w.sequence_length, false) +
         FeedForwardBytes(w, w.batch * w.sequence_length, experts);
}

int64_t LossChunk(const Architecture& a, int64_t rows) {
  const int64_t parts = (a.vocabulary + a.hidden - 1) / a.hidden;
  const int64_t least = (rows + parts - 1) / parts;
  return std::min(
      rows, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(least))));
}

int64_t QuantisedBytes(int64_t elements, int64_t bits) {
  constexpr int64_t kGroup = 64;
  return elements * bits / 8 + (elements + kGroup - 1) / kGroup * kSingle;
}

int64_t DecoderLayerActivationBytes(const Workload& w) {
  const int64_t target = TargetLength(w);
  return AttentionBytes(w, target, target, false) +
         AttentionBytes(w, target, w.sequence_length, true) +
         FeedForwardBytes(w, w.batch * target, false);
}

MemoryEstimate EstimateMemory(const Workload& w,
                              const MemorySurroundings& surroundings) {
  const Widths width(w);
  const Architecture& a = w.architecture;
  const int64_t count = TotalParameters(a) + AdapterParameters(w);
  const int64_t trained = TrainableParameters(w);
  // LightSeq2 trains narrow parameters without fp32 masters: 2 + 2 bytes
  // a parameter (published/s003_mixed_precision_bytes_per_parameter); others
  // that keep weights narrow have masters; the rest casts fp32 weights.
  const bool half = width.element < kSingle;
  const bool masters = KeepsMasters(w);
  const bool narrow = NarrowWeights(w);
  const int64_t parameter_width = narrow ? width.element : kSingle;

  // Matrices of blocks that adapters stand beside may be kept in few bits.
  const int64_t quantised =
      w.trainable.base_bits > 0 ? BlockMatrixElements(a) : 0;
  const Parallel& shared = w.parallel;
  const bool shares = ShardsOf(shared) > 1;
  const auto share = [&](int64_t elements, bool divided) {
    return divided ? ShareOf(elements, shared) : elements;
  };
  const bool divided = shares && ShardsParameters(shared);
  const Gathered gathered = GatheredOf(w);
  // What trains is kept as masters where these are the shard.
  const int64_t kept =
      MastersAreShard(w) && w.work == Work::kTraining ? count - trained : count;
  const Bytes<> parameters =
      Size(share(kept - quantised, divided) * parameter_width +
           QuantisedBytes(share(quantised, divided), w.trainable.base_bits));
  // Copies are made of what is gathered, where that is less than all.
  const int64_t copied =
      divided ? gathered.parameters / kSingle : count - quantised;
  const Bytes<> copies = Size(half && !narrow ? copied * width.element : 0);
  const MemoryTerm context{"framework context", surroundings.context};
  const MemoryTerm workspace{"workspace", surroundings.workspace};
  const MemoryTerm logits{"logits", Size(LogitBytes(w))};

  if (w.work == Work::kForward) {
    return Make(MemoryMoment::kForward,
                {{"parameters", parameters},
                 {"gathered parameters", Size(gathered.parameters)},
                 {"weight copies", copies},
                 {"activations", Size(ForwardTransients(w))},
                 logits,
                 workspace,
                 context});
  }

  const Bytes<> gradients =
      Size(share(trained, shares && ShardsGradients(shared)) *
           (shares ? GradientWidth(w) : parameter_width));
  const Bytes<> buckets = shares ? Size(gathered.buffers)
                          : surroundings.communication_buckets ? gradients
                                                               : Bytes<>();
  const Bytes<> end_buckets = shares ? Size(gathered.buffers_at_end) : buckets;
  const bool updates = w.work == Work::kTraining;
  // What a rank updates.
  const int64_t updated = share(trained, shares);
  const Bytes<> state =
      updates ? Size(OperationsOf(w.optimizer.kind).state_tensors * updated *
                     BytesOfState(w))
              : Bytes<>();
  const MemoryTerm master{"master weights",
                          Size(updates && masters ? updated * kSingle : 0)};
  // Fairseq's are beside the masters all the time.
  const MemoryTerm unscaled{
      "unscaled gradients",
      Size(updates && masters && RulesOf(w).flat_masters ? updated * kSingle
                                                         : 0)};
  // A first micro-batch makes its gradients layer by layer, while activations
  // go; a later one adds to gradients that are already there, and so do
  // buckets that stand from the beginning.
  const bool standing =
      w.accumulation > 1 || (surroundings.communication_buckets && !shares);
  // Sums of a divided table are of its share.
  const bool whole_table =
      w.accumulation > 1 && w.trainable.everything() && !divided;
  const Bytes<> table_gradient =
      whole_table ? Size(a.vocabulary * a.hidden * kSingle) : Bytes<>();

  // Where blocks are computed anew the logits are gone by then, so that one or
  // the other is the peak.
  const ActivationBytes activations = Activations(w);
  int64_t logit_bytes = LogitBytes(w);
  int64_t transients = BackwardTransients(w);
  int64_t held = activations.kept;
  if (w.gradient_checkpointing) {
    if (logit_bytes > activations.anew + transients) {
      transients = 0;
    } else {
      held += activations.anew;
      logit_bytes = 0;
    }
  }
  const MemoryEstimate start =
      Make(MemoryMoment::kBackwardStart,
           {{"parameters", parameters},
            {"gathered parameters", Size(gathered.parameters)},
            {"weight copies", copies},
            {"gradients", standing ? gradients : Bytes<>()},
            {"gathered gradients", Size(gathered.gradients)},
            {"communication buckets", buckets},
            master,
            unscaled,
            {"optimizer state", state},
            {"activations", Size(held)},
            {"logits", Size(logit_bytes)},
            {"backward transients", Size(transients)},
            workspace,
            context});
  const MemoryEstimate end = Make(
      MemoryMoment::kBackwardEnd,
      {{"parameters", parameters},
       {"gathered parameters", Size(gathered.at_end)},
       {"gradients", gradients},
       {"gathered gradients", Size(gathered.root_gradients)},
       {"communication buckets", end_buckets},
       master,
       unscaled,
       {"optimizer state", state},
       {"activations",
        w.trainable.everything() ? Size(EmbeddingBytes(w, w.tokens()))
                                 : Bytes<>()},
       {"embedding gradient", table_gradient},
       {"backward transients", Size(2 * w.tokens() * a.hidden * width.wide)},
       workspace,
       context});
  // All gradients in fp32 at once, unless the update widens them itself.
  const bool widened =
      masters && !MastersAreShard(w) &&
      !(MastersInUpdate(w) &&
        w.optimizer.implementation != OptimizerImplementation::kMultiTensor);
  const MemoryEstimate update = Make(
      MemoryMoment::kOptimizerStep,
      {{"parameters", parameters},
       {"gradients", gradients},
       {"communication buckets", divided ? Bytes<>() : buckets},
       master,
       {"optimizer state", state},
       {"unscaled gradients", Size(updates && widened ? updated * kSingle : 0)},
       {"optimizer temporaries",
        updates ? Size(OptimizerTemporaries(w, updated)) : Bytes<>()},
       workspace,
       context});
  return std::max({start, end, update},
                  [](const MemoryEstimate& x, const MemoryEstimate& y) {
                    return x.total() < y.total();
                  });
}

std::optional<int64_t> LargestBatch(const Workload& workload,
                                    const MemorySurroundings& surroundings,
                                    Bytes<> capacity) {
  const auto fits = [&](int64_t batch) {
    Workload trial = workload;
    trial.batch = batch;
    return EstimateMemory(trial, surroundings).total() <= capacity;
  };
  if (!fits(1)) return std::nullopt;
  // The estimate never falls with the batch: double, then halve the gap.
  int64_t low = 1;
  int64_t high = 2;
  constexpr int64_t kFarTooLarge = int64_t{1} << 24;
  while (high < kFarTooLarge && fits(high)) {
    low = high;
    high *= 2;
  }
  return LargestThat(low, high, fits);
}

std::string_view ToText(MemoryMoment moment) {
  return internal::EnumName(moment, kMoments);
}

}  // namespace trainfare::model
