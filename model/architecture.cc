#include "model/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <optional>
#include <utility>

#include "model/error.h"

namespace trainfare::model {
namespace {

enum class TensorDetail { kCounts, kTensors };

// Counts the tensors of one block after another, and lists them where that is
// asked for: a prediction counts at every step, without their names, and equal
// blocks only once.
template <TensorDetail kOf>
class TensorLister {
 public:
  static constexpr bool kListed = kOf == TensorDetail::kTensors;
  explicit TensorLister(const Architecture& a) : a_(a) {}

  void SetLayer(int64_t layer) { layer_ = layer; }
  // What follows stands so often in the model; of a list always once.
  void SetTimes(int64_t times) {
    ENSURE(times == 1 || !kListed, "every tensor of a list stands for itself");
    times_ = times;
  }
  void Add(std::string_view module, int64_t elements, int64_t columns = 1) {
    count_ += times_;
    elements_ += times_ * elements;
    if (columns > 1) matrix_elements_ += times_ * elements;
    if constexpr (kListed) {
      tensors_.push_back(
          {module, elements, layer_, columns, in_routed_expert_});
    }
  }
  void Linear(std::string_view name,
              int64_t inputs,
              int64_t outputs,
              bool bias = true) {
    Add(name, inputs * outputs, inputs);
    if (bias) Add(name, outputs);
  }
  void LayerNorm(std::string_view name) { NormOf(name, a_.hidden); }
  void NormOf(std::string_view name, int64_t width) {
    for (int64_t row = 0; row < a_.norm_rows(); ++row) Add(name, width);
  }
  // The norms of attention or feed-forward: before it, behind it, or both.
  void Norms(std::string_view name) {
    LayerNorm(name);
    if (a_.norm_placement == NormPlacement::kBoth) {
      LayerNorm(name == "output.LayerNorm" ? "output.post_norm"
                                           : "attention.post_norm");
    }
  }
  void SelfAttention() { SelfAttention(a_, /*normed=*/true); }
  // `a`: of such attention in all blocks; `normed`: with the norms that belong
  // to it.
  void SelfAttention(const Architecture& a, bool normed) {
    const bool bias = a.attention_bias;
    if (a.latent()) {
      LatentProjections();
    } else if (a.joint_projection()) {
      Linear("attention.self.query_key_value",
             a.hidden,
             a.projections_width(),
             bias);
    } else {
      Linear(
          "attention.self.query", a.hidden, a.query_projection_width(), bias);
      if (a.key_projection_width() > 0) {
        Linear("attention.self.key", a.hidden, a.key_width(), bias);
      }
      if (a.value_projection_width() > 0) {
        Linear("attention.self.value", a.hidden, a.value_width(), bias);
      }
    }
    if (a.separate_attention_gate) {
      Linear("attention.self.gate",
             a.hidden,
             a.attention_gate_width(),
             /*bias=*/false);
    }
    QueryKeyNorms(a);
    if (a.attention_sinks) Add("attention.self.sinks", a.heads);
    Linear(
        "attention.output.dense", a.context_width(), a.hidden, a.output_bias);
    if (normed) Norms("attention.output.LayerNorm");
  }
  void QueryKeyNorms(const Architecture& a) {
    if (a.query_key_norm == QueryKeyNorm::kNone ||
        a.query_key_norm == QueryKeyNorm::kRotated) {
      return;
    }
    // One head's weights are those of all heads, or each has its own.
    const bool shared = a.query_key_norm == QueryKeyNorm::kHead;
    NormOf("attention.self.query_norm",
           shared ? a.query_head_size() : a.query_width());
    if (a.borrows_keys()) return;
    NormOf("attention.self.key_norm",
           shared ? a.query_head_size() : a.key_width());
  }
  // DeepSeek-AI 2024, section 2.1: queries, and keys and values, through a
  // norm between two products; the part of a key that carries its position is
  // one for all heads.
  void LatentProjections() {
    if (a_.latent_query > 0) {
      Linear("attention.self.query_down",
             a_.hidden,
             a_.latent_query,
             a_.attention_bias);
      NormOf("attention.self.query_norm", a_.latent_query);
      Linear(
          "attention.self.query_up", a_.latent_query, a_.query_width(), false);
    } else {
      Linear("attention.self.query", a_.hidden, a_.query_width(), false);
    }
    Linear("attention.self.latent",
           a_.hidden,
           a_.key_value_down_width(),
           a_.attention_bias);
    NormOf("attention.self.latent_norm", a_.latent_key_value);
    Linear("attention.self.key_value_up",
           a_.latent_key_value,
           a_.key_value_up_width(),
           false);
  }
  void CrossAttention() {
    Linear("crossattention.self.query",
           a_.hidden,
           a_.query_width(),
           a_.attention_bias);
    Linear("crossattention.self.key",
           a_.hidden,
           a_.key_width(),
           a_.attention_bias);
    Linear("crossattention.self.value",
           a_.hidden,
           a_.value_width(),
           a_.attention_bias);
    Linear("crossattention.output.dense",
           a_.context_width(),
           a_.hidden,
           a_.output_bias);
    LayerNorm("crossattention.output.LayerNorm");
  }
  // `rows`: the width of what it takes and gives.
  void Expert(std::string_view gate,
              std::string_view in,
              std::string_view out,
              int64_t rows,
              int64_t intermediate,
              bool bias) {
    const bool joint = a_.gated && a_.joint_gate;
    if (a_.gated && !joint) Linear(gate, rows, intermediate, bias);
    Linear(in, rows, (joint ? 2 : 1) * intermediate, bias);
    Linear(out, intermediate, rows, bias);
  }
  // Mamba-2 (Mamba2Mixer of Transformers, MambaMixer of Megatron-LM); filters
  // are no matrices.
  void StateSpace() {
    Linear("mixer.in_proj",
           a_.hidden,
           a_.state_projection_width(),
           /*bias=*/false);
    Add("mixer.conv1d", a_.state_channels() * a_.state_convolution);
    Add("mixer.conv1d", a_.state_channels());
    Add("mixer.dt_bias", a_.state_heads);
    Add("mixer.A_log", a_.state_heads);
    Add("mixer.D", a_.state_heads);
    Add("mixer.norm", a_.state_width());
    Linear("mixer.out_proj", a_.state_width(), a_.hidden, /*bias=*/false);
    Norms("mixer.LayerNorm");
  }
  // Gated DeltaNet (Qwen3NextGatedDeltaNet of Transformers); its norm's weights
  // are those of every head.
  void DeltaRule() {
    const auto product = [&](std::string_view name, int64_t outputs) {
      Linear(name, a_.hidden, outputs, /*bias=*/false);
    };
    if (a_.delta_joint_projections) {
      product("linear_attn.in_proj_qkvz",
              a_.delta_channels() + a_.delta_value_width());
      product("linear_attn.in_proj_ba", 2 * a_.delta_value_heads);
    } else {
      product("linear_attn.in_proj_qkv", a_.delta_channels());
      product("linear_attn.in_proj_z", a_.delta_value_width());
      product("linear_attn.in_proj_b", a_.delta_value_heads);
      product("linear_attn.in_proj_a", a_.delta_value_heads);
    }
    Add("linear_attn.conv1d", a_.delta_channels() * a_.delta_convolution);
    Add("linear_attn.dt_bias", a_.delta_value_heads);
    Add("linear_attn.A_log", a_.delta_value_heads);
    Add("linear_attn.norm", a_.delta_value_size);
    Linear("linear_attn.out_proj",
           a_.delta_value_width(),
           a_.hidden,
           /*bias=*/false);
    Norms("linear_attn.LayerNorm");
  }
  // A short convolution (Lfm2ShortConv of Transformers).
  void Convolution() {
    Linear("conv.in_proj",
           a_.hidden,
           a_.convolution_projection_width(),
           /*bias=*/false);
    Add("conv.conv", a_.convolution_width() * a_.convolution_reach);
    Linear("conv.out_proj",
           a_.convolution_width(),
           a_.hidden,
           /*bias=*/false);
    Norms("conv.LayerNorm");
  }
  void FeedForward(bool experts = false) {
    FeedForward(experts, a_.intermediate);
  }
  // `intermediate`: of one that is dense.
  void FeedForward(bool experts, int64_t intermediate) {
    if (experts) {
      Linear("router", a_.hidden, a_.scored_experts(), a_.router_bias);
      const int64_t times = times_;
      if (!kListed) times_ *= a_.experts;
      in_routed_expert_ = true;
      for (int64_t i = 0; i < (kListed ? a_.experts : 1); ++i) {
        Expert("experts.gate",
               "experts.in",
               "experts.out",
               a_.expert_width(),
               a_.expert_intermediate,
               a_.expert_bias);
      }
      in_routed_expert_ = false;
      times_ = times;
      if (a_.expert_latent > 0) {
        Linear("experts.latent_in", a_.hidden, a_.expert_latent, false);
        Linear("experts.latent_out", a_.expert_latent, a_.hidden, false);
      }
      if (a_.shared_intermediate > 0) {
        Expert("shared_expert.gate",
               "shared_expert.in",
               "shared_expert.out",
               a_.hidden,
               a_.shared_intermediate,
               false);
      }
      if (a_.shared_expert_gate) {
        Linear("shared_expert_gate", a_.hidden, 1, false);
      }
      if (a_.expert_norms) ExpertNorms();
    } else {
      Expert("gate.dense",
             "intermediate.dense",
             "output.dense",
             a_.hidden,
             intermediate,
             a_.feed_forward_bias);
      if (a_.activation == Activation::kXielu) {
        Add("activation.alpha_p", 1);
        Add("activation.alpha_n", 1);
      }
    }
    if (!a_.shared_norm) Norms("output.LayerNorm");
  }
  // Gemma4TextDecoderLayer of Transformers: per_layer_input_gate,
  // per_layer_projection, post_per_layer_input_norm.
  void LayerInput() {
    if (a_.layer_embedding_size == 0) return;
    Linear("layer_input.gate", a_.hidden, a_.layer_embedding_size, false);
    Linear("layer_input.projection", a_.layer_embedding_size, a_.hidden, false);
    LayerNorm("layer_input.LayerNorm");
  }
  void ExpertNorms() {
    Add("router.scale", a_.hidden);
    Add("router.expert_scale", a_.scored_experts());
    LayerNorm("shared_expert.post_norm");
    LayerNorm("experts.LayerNorm");
    LayerNorm("experts.post_norm");
  }
  std::vector<ParameterTensor> Take() { return std::move(tensors_); }
  int64_t count() const { return count_; }
  int64_t elements() const { return elements_; }
  // The elements of the matrices among them.
  int64_t matrix_elements() const { return matrix_elements_; }

 private:
  const Architecture& a_;
  int64_t layer_ = 0;
  bool in_routed_expert_ = false;
  int64_t times_ = 1;
  int64_t count_ = 0;
  int64_t elements_ = 0;
  int64_t matrix_elements_ = 0;
  std::vector<ParameterTensor> tensors_;
};

template <class List>
void AddEmbeddings(const Architecture& a, List& list) {
  if (!a.looks_up_tokens) return;
  list.SetLayer(0);
  list.Add("word_embeddings", a.vocabulary * a.word_width(), a.word_width());
  const int64_t width = a.embedding_width();
  // Words are of both sides, positions and norms of each (BART).
  const int sides = a.two_sided() ? 2 : 1;
  for (int side = 0; side < sides; ++side) {
    if (a.table_rows() > 0) {
      list.Add("position_embeddings", a.positions * width, width);
    }
    if (a.token_types > 0) {
      list.Add("token_type_embeddings", a.token_types * width, width);
    }
    if (a.embedding_layer_norm) list.NormOf("embeddings.LayerNorm", width);
  }
  if (a.projects_embeddings()) {
    list.Linear("embeddings_project",
                a.word_width(),
                a.hidden,
                a.family == Family::kEncoder);
  }
}

// What all blocks have of embeddings of their own: the table, and what makes
// as much of what the lowest block is given (embed_tokens_per_layer,
// per_layer_model_projection and its norm).
template <class List>
void AddLayerEmbeddings(const Architecture& a, List& list) {
  if (a.layer_embedding_size == 0) return;
  const int64_t width = a.layer_table_width();
  list.SetLayer(0);
  list.Add("layer_embeddings", a.layer_table_rows() * width, width);
  list.Linear("layer_embeddings.projection", a.hidden, width, false);
  list.NormOf("layer_embeddings.LayerNorm", a.layer_embedding_size);
}

template <class List>
void AddHead(const Architecture& a, List& list) {
  switch (a.head) {
    case Head::kSequenceClassification:
      if (a.classifier_dense) {
        list.Linear("pre_classifier", a.hidden, a.hidden, a.head_bias);
      }
      if (a.head_norm) list.LayerNorm("pre_classifier.norm");
      list.Linear("classifier", a.hidden, a.labels);
      break;
    case Head::kQuestionAnswering:
      if (a.head_norm) {
        list.Linear("pre_classifier", a.hidden, a.hidden, a.head_bias);
        list.LayerNorm("pre_classifier.norm");
      }
      list.Linear("qa_outputs", a.hidden, 2);
      break;
    case Head::kPreTraining:
      list.Linear("cls.seq_relationship", a.hidden, 2);
      [[fallthrough]];
    case Head::kMaskedLanguageModel:
      // The projection itself is tied to the word embeddings, of which another
      // stage has its own.
      if (!a.looks_up_tokens) {
        list.Add(
            "cls.predictions", a.vocabulary * a.word_width(), a.word_width());
      }
      list.Linear("cls.transform.dense", a.hidden, a.word_width(), a.head_bias);
      list.NormOf("cls.transform.LayerNorm", a.word_width());
      list.Add("cls.predictions", a.vocabulary);
      break;
    case Head::kCausalLanguageModel:
      if (a.projects_embeddings()) {
        list.Linear("project_out", a.hidden, a.word_width(), false);
      }
      if (a.untied_output) {
        list.Linear("lm_head", a.word_width(), a.vocabulary, false);
      }
      if (a.logits_bias) list.Add("lm_head", a.vocabulary);
      break;
    case Head::kNone:
      break;
  }
}

// A run of equal blocks from `index` on, of so many of a side: the first holds
// what all share, and experts begin behind the dense ones. One block of a list,
// or where blocks of several sorts take turns.
int64_t EqualBlocks(const Architecture& a,
                    bool listed,
                    int64_t index,
                    int64_t blocks) {
  if (listed || index == 0 || a.expert_period > 1 || a.other_blocks() ||
      a.blocks_differ()) {
    return 1;
  }
  const bool dense = a.experts > 0 && index < a.dense_layers;
  return (dense ? std::min(a.dense_layers, blocks) : blocks) - index;
}

// One side: `blocks` above the layer `below`, each as `add_block` has it.
template <class AddBlock, class List>
void AddSide(const Architecture& a,
             int64_t below,
             int64_t blocks,
             const AddBlock& add_block,
             List& list) {
  int64_t run = 1;
  for (int64_t i = 0; i < blocks; i += run) {
    run = EqualBlocks(a, List::kListed, i, blocks);
    list.SetLayer(below + i + 1);
    list.SetTimes(run);
    if (a.position_kind == PositionKind::kRelative &&
        (i == 0 || a.relative_bias_each_block)) {
      list.Add("attention.bias_table", a.relative_buckets * a.heads);
    }
    add_block(i);
  }
  list.SetTimes(1);
}

// The encoder, or a model of one side. Shared weights are those of the lowest
// block, whose pass backward is the last that adds to their gradients.
template <class List>
void AddBlocks(const Architecture& a, List& list) {
  // Few models have any, and those few.
  std::list<std::pair<BlockParts, Architecture>> others;
  const auto of_parts = [&](const BlockParts& parts) -> const Architecture& {
    if (!parts.sees_all && !parts.borrows_keys) return a;
    for (const auto& [known, other] : others) {
      if (known == parts) return other;
    }
    return others.emplace_back(parts, WithParts(a, parts)).second;
  };
  const auto add_block = [&](int64_t i) {
    const BlockParts parts = a.parts_of(i);
    const Architecture& of = of_parts(parts);
    if (parts.mixer == Mixer::kAttention) {
      list.SelfAttention(of, a.first_norm || i > 0);
    } else if (parts.mixer == Mixer::kStateSpace) {
      list.StateSpace();
    } else if (parts.mixer == Mixer::kDeltaRule) {
      list.DeltaRule();
    } else if (parts.mixer == Mixer::kConvolution) {
      list.Convolution();
    }
    if (parts.feed_forward != FeedForwardKind::kNone) {
      list.FeedForward(parts.experts(), of.intermediate);
    }
    list.LayerInput();
  };
  AddSide(a, 0, a.shared_blocks ? 1 : a.layers, add_block, list);
}

template <class List>
void AddDecoderBlocks(const Architecture& a, List& list) {
  const auto add_block = [&](int64_t) {
    list.SelfAttention();
    list.CrossAttention();
    list.FeedForward();
  };
  AddSide(a, a.layers, a.decoder_layers, add_block, list);
}

// Each has the norms of both inputs, the product that joins them, attention and
// a feed-forward as the last ones are, and a norm; embeddings and logits are the
// model's own.
template <class List>
void AddNextTokenBlocks(const Architecture& a, List& list) {
  const int64_t blocks = a.next_token_weights();
  const int64_t run = List::kListed ? 1 : blocks;
  for (int64_t i = 0; i < blocks; i += run) {
    list.SetLayer(a.layers + a.decoder_layers + i + 1);
    list.SetTimes(run);
    list.LayerNorm("next_token.embedding_norm");
    list.LayerNorm("next_token.hidden_norm");
    list.Linear("next_token.projection", 2 * a.hidden, a.hidden, false);
    list.SelfAttention();
    list.FeedForward(a.experts > 0);
    list.LayerNorm("next_token.norm");
  }
  list.SetTimes(1);
}

template <class List>
void AddAll(const Architecture& a, List& list) {
  AddEmbeddings(a, list);
  AddLayerEmbeddings(a, list);
  AddBlocks(a, list);
  if (a.decoder_layers > 0 && a.closing_norm()) {  // a side has its own
    list.LayerNorm("encoder.final_layer_norm");
  }
  AddDecoderBlocks(a, list);
  AddNextTokenBlocks(a, list);
  list.SetLayer(a.blocks() + 1);
  if (a.closing_norm()) list.LayerNorm("final_layer_norm");
  if (a.has_pooler()) list.Linear("pooler.dense", a.hidden, a.hidden);
  AddHead(a, list);
}

// Blocks of attention among the first so many of a model that has others, where
// each stands in the middle of its share of those that mix tokens.
int64_t AttentionBelow(const Architecture& a, int64_t block) {
  if (a.mixers() == 0) return 0;
  const int64_t mixing =
      a.single_part_blocks ? block - a.feed_forwards_below(block) : block;
  return (mixing * a.attention_layers() + a.mixers() / 2) / a.mixers();
}

}  // namespace

bool Architecture::joint_projection() const {
  const bool joint = family == Family::kDecoder && !separate_projections;
  return (joint || joint_projections) && !latent();
}

bool Architecture::norm_before() const {
  switch (norm_placement) {
    case NormPlacement::kByFamily:
      return family == Family::kDecoder;
    case NormPlacement::kAfter:
      return false;
    // OLMo 2 normalises outputs, and closes with one norm more all the same.
    case NormPlacement::kBefore:
    case NormPlacement::kBoth:
    case NormPlacement::kOutputs:
      return true;
  }
  ENSURE(false, "a placement without an answer");
}

BlockParts Architecture::parts_of(int64_t block) const {
  BlockParts parts = TransformerBlock(has_experts(block));
  parts.sees_all = attention_differs() &&
                   full_layers_below(block + 1) > full_layers_below(block);
  parts.borrows_keys =
      shared_key_value_layers > 0 && block >= layers - shared_key_value_layers;
  if (!other_blocks()) return parts;
  const bool widens =
      feed_forwards_below(block + 1) > feed_forwards_below(block);
  if (!widens) parts.feed_forward = FeedForwardKind::kNone;
  if (widens && single_part_blocks) {
    parts.mixer = Mixer::kNone;
  } else if (AttentionBelow(*this, block + 1) == AttentionBelow(*this, block)) {
    parts.mixer = other_mixer();
  }
  return parts;
}

bool Architecture::has_pooler() const {
  return pooler && head != Head::kQuestionAnswering &&
         head != Head::kMaskedLanguageModel;
}

std::optional<int64_t> Architecture::max_sequence_length() const {
  if (positions == 0) return std::nullopt;
  return positions - position_offset;
}

std::optional<int64_t> Architecture::longest_of_table() const {
  if (position_kind != PositionKind::kTable) return std::nullopt;
  return max_sequence_length();
}

Architecture WithFullAttention(Architecture a) {
  if (!a.attention_differs()) return a;
  if (a.full_head_size > 0) {
    a.head_size = a.full_head_size;
    a.value_head_size = 0;
  }
  if (a.full_key_value_heads > 0) a.key_value_heads = a.full_key_value_heads;
  if (a.windowed_sinks) a.attention_sinks = false;
  a.full_head_size = a.full_key_value_heads = 0;
  a.windowed_sinks = false;
  a.windowed_layers = 0;
  return a;
}

Architecture WithParts(Architecture a, const BlockParts& parts) {
  if (parts.sees_all) a = WithFullAttention(std::move(a));
  if (parts.borrows_keys) {
    a.shared_key_value_layers = a.layers;
    if (a.upper_intermediate > 0) a.intermediate = a.upper_intermediate;
    a.upper_intermediate = 0;
  }
  return a;
}

namespace {

// Of a model whose blocks differ in attention or in what makes their keys.
std::vector<BlocksAlike> BlocksByAttention(const Architecture& a,
                                           int64_t first,
                                           int64_t end) {
  std::vector<BlocksAlike> sorts;
  for (int64_t block = first; block < end; ++block) {
    const BlockParts parts = a.parts_of(block);
    const auto same =
        std::find_if(sorts.begin(), sorts.end(), [&](const BlocksAlike& sort) {
          return sort.parts == parts;
        });
    if (same == sorts.end()) {
      sorts.push_back({parts, 1});
    } else {
      ++same->count;
    }
  }
  return sorts;
}

}  // namespace

std::vector<BlocksAlike> BlocksByParts(const Architecture& a,
                                       int64_t first,
                                       int64_t end) {
  if (a.blocks_differ()) return BlocksByAttention(a, first, end);
  std::vector<BlocksAlike> sorts;
  const auto add = [&](const BlockParts& parts, int64_t count) {
    if (count > 0) sorts.push_back({parts, count});
  };
  const int64_t experts =
      a.expert_layers_below(end) - a.expert_layers_below(first);
  if (!a.other_blocks()) {
    add(TransformerBlock(/*experts=*/false), end - first - experts);
    add(TransformerBlock(/*experts=*/true), experts);
    return sorts;
  }
  const auto add_alike = [&](int64_t from, int64_t to, FeedForwardKind widens) {
    if (from >= to) return;
    const int64_t alone = a.single_part_blocks ? a.feed_forwards_below(to) -
                                                     a.feed_forwards_below(from)
                                               : 0;
    const int64_t attention = AttentionBelow(a, to) - AttentionBelow(a, from);
    const FeedForwardKind beside =
        a.single_part_blocks ? FeedForwardKind::kNone : widens;
    add({a.other_mixer(), beside}, to - from - alone - attention);
    add({Mixer::kAttention, beside}, attention);
    add({Mixer::kNone, widens}, alone);
  };
  // Those with experts stand above those without (model/validate.cc).
  const int64_t dense =
      a.experts > 0 ? std::clamp(a.dense_layers, first, end) : end;
  add_alike(first, dense, FeedForwardKind::kDense);
  add_alike(dense, end, FeedForwardKind::kExperts);
  return sorts;
}

std::vector<ParameterTensor> ParameterTensorsOf(const Architecture& a) {
  TensorLister<TensorDetail::kTensors> list(a);
  AddAll(a, list);
  return list.Take();
}

std::vector<ParameterTensor> HeadTensorsOf(const Architecture& a) {
  TensorLister<TensorDetail::kTensors> list(a);
  list.SetLayer(a.blocks() + 1);
  AddHead(a, list);
  return list.Take();
}

int64_t ParameterTensorCount(const Architecture& a) {
  TensorLister<TensorDetail::kCounts> list(a);
  AddAll(a, list);
  return list.count();
}

int64_t HeadParameters(const Architecture& a) {
  TensorLister<TensorDetail::kCounts> list(a);
  AddHead(a, list);
  return list.elements();
}

int64_t TotalParameters(const Architecture& a) {
  TensorLister<TensorDetail::kCounts> list(a);
  AddAll(a, list);
  return list.elements();
}

int64_t LayerEmbeddingParameters(const Architecture& a) {
  TensorLister<TensorDetail::kCounts> list(a);
  AddLayerEmbeddings(a, list);
  return list.elements();
}

int64_t BlockMatrixElements(const Architecture& a) {
  TensorLister<TensorDetail::kCounts> list(a);
  AddBlocks(a, list);
  AddDecoderBlocks(a, list);
  AddNextTokenBlocks(a, list);
  return list.matrix_elements();
}

}  // namespace trainfare::model
