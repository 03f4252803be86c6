#pragma once

// What a Transformer is made of.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/words.h"

namespace trainfare::model {

enum class Family {
  kEncoder,         // BERT: bidirectional attention, LayerNorm after residual
  kDecoder,         // GPT: causal attention, LayerNorm before the block
  kEncoderDecoder,  // Transformer base/big: cross-attention in the decoder
};
template <>
inline constexpr auto kWords<Family> =
    Words<Family>("family",
                  {{Family::kEncoder, "encoder"},
                   {Family::kDecoder, "decoder"},
                   {Family::kEncoderDecoder, "encoder-decoder"}});

enum class Head {
  kSequenceClassification,  // pooled first token -> labels
  kQuestionAnswering,       // every token -> start and end logits
  kMaskedLanguageModel,     // transform + tied vocabulary projection
  kCausalLanguageModel,     // tied vocabulary projection at every position
  kPreTraining,             // masked language model + next sentence
  kNone,                    // encoder (with pooler, where it has one) alone
};
template <>
inline constexpr auto kWords<Head> =
    Words<Head>("head",
                {{Head::kSequenceClassification, "sequence-classification"},
                 {Head::kQuestionAnswering, "question-answering"},
                 {Head::kMaskedLanguageModel, "masked-language-model"},
                 {Head::kCausalLanguageModel, "causal-language-model"},
                 {Head::kPreTraining, "pre-training"},
                 {Head::kNone, "none"}});

enum class Norm {
  kLayer,  // Ba et al. 2016
  kRms,    // Zhang & Sennrich 2019: no mean, no shift
};
template <>
inline constexpr auto kWords<Norm> =
    Words<Norm>("norm", {{Norm::kLayer, "layer"}, {Norm::kRms, "rms"}});
enum class NormPlacement {
  kByFamily,  // before attention and feed-forward in a decoder, else after
  kBefore,
  kAfter,    // of the residual's sum
  kBoth,     // before, and over what each gives (Gemma 2)
  kOutputs,  // over what each gives alone (OLMo 2)
};
template <>
inline constexpr auto kWords<NormPlacement> =
    Words<NormPlacement>("place of norms",
                         {{NormPlacement::kByFamily, "by_family"},
                          {NormPlacement::kBefore, "before"},
                          {NormPlacement::kAfter, "after"},
                          {NormPlacement::kBoth, "both"},
                          {NormPlacement::kOutputs, "outputs"}});
enum class QueryKeyNorm {
  kNone,
  kHead,      // over each head (Qwen3)
  kEachHead,  // the same, with weights of each head's own (Command R+)
  kWhole,     // over all heads together (OLMo 2)
  kRotated,   // over each head that rotates, without weights (Llama 4)
};
template <>
inline constexpr auto kWords<QueryKeyNorm> =
    Words<QueryKeyNorm>("norm of queries and keys",
                        {{QueryKeyNorm::kNone, "none"},
                         {QueryKeyNorm::kHead, "head"},
                         {QueryKeyNorm::kEachHead, "each_head"},
                         {QueryKeyNorm::kWhole, "whole"},
                         {QueryKeyNorm::kRotated, "rotated"}});
enum class PositionKind {
  kTable,     // learned, or fixed sinusoids where it has no rows
  kRotary,    // Su et al. 2021
  kAlibi,     // Press et al. 2022
  kRelative,  // Raffel et al. 2020: a bias a head and bucket of distances
  kNone,
};
template <>
inline constexpr auto kWords<PositionKind> =
    Words<PositionKind>("kind of positions",
                        {{PositionKind::kTable, "table"},
                         {PositionKind::kRotary, "rotary"},
                         {PositionKind::kAlibi, "alibi"},
                         {PositionKind::kRelative, "relative"},
                         {PositionKind::kNone, "none"}});
enum class Activation {
  kGelu,
  kGeluTanh,  // GELU's approximation by tanh, in one kernel
  kGeluNew,   // the same by one operation after another, where a stack is eager
  kRelu,
  kReluSquared,  // So et al. 2021; two operations where a stack is eager
  kSilu,
  // Huang & Schlag 2024, xIELU: with two weights that it learns, one of each
  // side of 0; one operation after another where a stack is eager.
  kXielu,
};
template <>
inline constexpr auto kWords<Activation> =
    Words<Activation>("activation",
                      {{Activation::kGelu, "gelu"},
                       {Activation::kGeluTanh, "gelu_tanh"},
                       {Activation::kGeluNew, "gelu_new"},
                       {Activation::kRelu, "relu"},
                       {Activation::kReluSquared, "relu_squared"},
                       {Activation::kSilu, "silu"},
                       {Activation::kXielu, "xielu"}});

// What of a block mixes tokens, and what widens each token by itself.
enum class Mixer {
  kNone,  // of a block that is a feed-forward alone
  kAttention,
  kStateSpace,   // Dao & Gu 2024, Mamba-2
  kDeltaRule,    // Yang, Kautz & Hatamizadeh 2024, Gated DeltaNet
  kConvolution,  // Amini et al. 2025, LFM2: a short one between two gates
};
enum class FeedForwardKind {
  kNone,  // of a block that mixes tokens alone
  kDense,
  kExperts,
};
struct BlockParts {
  Mixer mixer = Mixer::kAttention;
  FeedForwardKind feed_forward = FeedForwardKind::kDense;
  // Its attention sees all, of a model where that has a shape of its own
  // (Architecture::attention_differs()).
  bool sees_all = false;
  // It attends by keys and values of a block below it
  // (Architecture::shared_key_value_layers).
  bool borrows_keys = false;

  bool experts() const { return feed_forward == FeedForwardKind::kExperts; }
  friend bool operator==(const BlockParts&, const BlockParts&) = default;
};
// A block of attention and a feed-forward, dense or of experts.
constexpr BlockParts TransformerBlock(bool experts) {
  return {Mixer::kAttention,
          experts ? FeedForwardKind::kExperts : FeedForwardKind::kDense};
}

// Dimensions of one model. Counts, not bytes: precision belongs to Workload.
// The block is described by its parts, not by the name of a model.
struct Architecture {
  std::string name;
  Family family = Family::kEncoder;
  // An encoder's blocks are one, whose weights each step uses `layers` times
  // (Lan et al. 2020, ALBERT).
  bool shared_blocks = false;
  int64_t layers = 0;          // encoder layers (decoder layers of a decoder)
  int64_t decoder_layers = 0;  // of an encoder-decoder only
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t intermediate = 0;
  int64_t vocabulary = 0;
  // Width of the table of tokens, in an encoder of all embeddings, which a
  // product widens to `hidden`; what predicts tokens comes down to it again
  // (Clark et al. 2020, ELECTRA; Zhang et al. 2022, OPT-350m). 0: hidden.
  int64_t embedding_size = 0;
  // Of each token every block has an embedding of this size, beside as much that
  // one product makes of what the lowest block is given: what the block gives
  // makes a gate of it, and a product widens what that lets through (Gemma 3n's
  // per-layer embeddings). Rows of the table; 0: vocabulary.
  int64_t layer_embedding_size = 0;
  int64_t layer_vocabulary = 0;
  // Blocks that it has embeddings of, in a model of some of its blocks
  // (model/sharding.cc); 0: layers. No file says it.
  int64_t embedded_layers = 0;
  // Rows of the learned position table, of each side; 0 = fixed. Without a
  // table (rotary) the longest sequence, 0 = any.
  int64_t positions = 0;
  int64_t position_offset = 0;  // rows not usable as positions (RoBERTa: 2)
  int64_t token_types = 0;      // rows of the token-type table
  bool embedding_layer_norm = true;
  bool pooler = true;  // dense + tanh over the first token
  // A decoder has three matrices for query, key and value (OPT) and not one
  // (GPT-2's c_attn).
  bool separate_projections = false;
  // DistilBERT and RoBERTa classify through one more dense layer.
  bool classifier_dense = false;
  Head head = Head::kSequenceClassification;
  int64_t labels = 2;
  double dropout = 0.1;  // of hidden states and attention probabilities

  Norm norm = Norm::kLayer;
  bool norm_bias = true;   // of LayerNorm
  bool norm_scale = true;  // norms have weights (OLMo's first have none)
  // The first block begins with a norm; ModernBERT's reads the embeddings'.
  bool first_norm = true;
  NormPlacement norm_placement = NormPlacement::kByFamily;
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;
  PositionKind position_kind = PositionKind::kTable;
  bool relative_bias_each_block = false;  // not of the first alone (UMT5)
  int64_t relative_buckets = 0;           // of kRelative, a side
  int64_t unrotated_layers = 0;           // blocks without positions (SmolLM3)

  int64_t key_value_heads = 0;  // 0 = heads; fewer: grouped, 1: multi-query
  int64_t head_size = 0;        // of queries and keys; 0 = hidden / heads
  int64_t value_head_size = 0;  // 0 = head_size
  // Latent attention (DeepSeek-V2): ranks of the products that queries, and
  // keys and values, come through; 0 = plain. Of a head's size so much carries
  // its position, once for all heads of the keys.
  int64_t latent_query = 0;
  int64_t latent_key_value = 0;
  int64_t rotary_head_size = 0;
  // Query, key and value of an encoder are one matrix, too (ModernBERT).
  bool joint_projections = false;
  bool attention_bias = true;        // of query, key and value
  bool output_bias = true;           // of attention's output
  bool attention_sinks = false;      // a learned score a head (gpt-oss)
  bool value_norm = false;           // over each head, no weights (Gemma 4)
  bool clipped_projections = false;  // query, key and value (DBRX)
  // What attention gives has as wide a gate (Qiu et al. 2025, "Gated Attention
  // for Large Language Models", elementwise), which comes with the queries or,
  // where it is separate, of a product of its own (AFMoE).
  bool gated_attention = false;
  bool separate_attention_gate = false;
  bool attention_soft_cap = false;
  // Scores are divided by the root of a head's size; T5's are not.
  bool scaled_scores = true;
  // Attention and feed-forward read the same sum (GPT-NeoX), or the same norm.
  bool parallel_block = false;
  bool shared_norm = false;
  // Every `window` positions a new chunk begins, and nobody sees beyond its own
  // (Llama 4).
  bool chunked_window = false;
  // Each block is attention, a state space or a feed-forward alone, behind one
  // norm (Nemotron-H).
  bool single_part_blocks = false;
  // Sinks are of blocks with a window alone (MiMo-V2-Flash); in the others what
  // makes keys makes values, too, before the norms of both (Gemma 4).
  bool windowed_sinks = false;
  bool keys_are_values = false;
  // Blocks of which so many see no further back than `window` positions.
  int64_t window = 0;
  int64_t windowed_layers = 0;
  // Attention of the others, where it has another shape: queries, keys and
  // values of this size, so many heads of keys (0: as with a window; Gemma 4).
  // Where these blocks are nobody says, and they are taken as spread evenly, each
  // the last of its share.
  int64_t full_head_size = 0;
  int64_t full_key_value_heads = 0;
  // The highest so many blocks make no keys and values: they attend by those of
  // the last block below them that sees as far (Gemma 3n). Their feed-forward is
  // so wide; 0: intermediate (Gemma 4 E2B).
  int64_t shared_key_value_layers = 0;
  int64_t upper_intermediate = 0;

  // Blocks that mix tokens by a state space instead of attention (Dao & Gu
  // 2024, "Transformers are SSMs", section 7: Mamba-2), and those of single
  // parts that are a feed-forward; where among the others nobody says, and they
  // are taken as spread evenly.
  int64_t state_space_layers = 0;
  int64_t feed_forward_layers = 0;
  int64_t state_heads = 0;
  int64_t state_head_size = 0;
  int64_t state_size = 0;         // N: of each element of a head
  int64_t state_groups = 1;       // heads of B and C
  int64_t state_convolution = 4;  // tokens that a channel's filter reaches over
  int64_t state_chunk = 128;      // tokens that are multiplied at once

  // The same of blocks that mix tokens by the gated delta rule (Yang, Kautz &
  // Hatamizadeh 2024, "Gated Delta Networks", section 3: Gated DeltaNet).
  int64_t delta_rule_layers = 0;
  int64_t delta_key_heads = 0;    // of queries and keys
  int64_t delta_value_heads = 0;  // several of which share one of these
  int64_t delta_key_size = 0;
  int64_t delta_value_size = 0;
  int64_t delta_convolution = 4;
  int64_t delta_chunk = 64;
  // Queries, keys, values and gates are one product, what decays and writes
  // another (Qwen3-Next); else each of these a product, of queries, keys and
  // values one.
  bool delta_joint_projections = false;

  // Blocks that mix tokens by a short convolution of each channel between two
  // gates (Amini et al. 2025, "LFM2 Technical Report").
  int64_t convolution_layers = 0;
  int64_t convolution_channels = 0;  // 0: hidden
  int64_t convolution_reach = 3;     // tokens that a filter reaches over

  Activation activation = Activation::kGelu;
  bool gated = false;             // (act(x G) * x W) V: Shazeer 2020
  bool joint_gate = false;        // G and W are one matrix
  bool drops_activation = false;  // dropout of what the activation gives, too
  bool feed_forward_bias = true;

  // Blocks above the last one, each of which predicts one token further
  // (DeepSeek-AI 2024, "DeepSeek-V3", section 2.2): multi-token prediction.
  int64_t next_token_blocks = 0;
  // They are one, whose weights are used again for each token further
  // (mtp_use_repeated_layer of Megatron-LM).
  bool shared_next_token = false;

  int64_t experts = 0;  // routed; 0 = none
  int64_t experts_per_token = 0;
  int64_t expert_intermediate = 0;
  int64_t shared_intermediate = 0;  // of the shared experts together
  // Routed experts take and give rows of so many elements: one product makes
  // them of each token, another widens what comes back (NVIDIA 2025, "Nemotron
  // 3", section 2.2: LatentMoE). 0: hidden.
  int64_t expert_latent = 0;
  int64_t dense_layers = 0;  // first blocks, without experts
  // Of so many blocks above those one has experts, the last (Llama 4 Maverick).
  int64_t expert_period = 1;
  // Blocks since the last with experts that a stage of a pipeline has below its
  // first (model/split.h). No file says it.
  int64_t expert_phase = 0;
  // Experts are in so many groups, of which a token goes to those of so many
  // (DeepSeek-AI 2024, "DeepSeek-V3", section 2.1.2: node-limited routing).
  int64_t expert_groups = 1;
  int64_t expert_groups_per_token = 1;
  bool shared_expert_gate = false;  // a scalar a token
  bool router_bias = false;
  // The experts of every token have a norm behind them, those routed to before
  // and behind, and the router one without weights and a scale of each column
  // before, and of each expert behind (Gemma 4).
  bool expert_norms = false;
  bool expert_bias = false;

  bool untied_output = false;  // the logits have a matrix of their own
  bool logits_bias = false;    // of a causal language model's
  // Logits are by rows of unit length, which each pass makes of that matrix
  // (Baichuan 2).
  bool unit_output_rows = false;
  // ModernBERT has a norm behind the dense layer before classes, and both
  // before spans, too.
  bool head_norm = false;
  bool head_bias = true;  // of the dense layers before classes and vocabulary
  bool output_soft_cap = false;
  // The loss takes logits as the product made them, and they stay behind it
  // (GPTBigCode of Transformers); others are widened to fp32 and let go.
  bool narrow_logits = false;
  bool final_norm = true;  // where blocks begin with a norm
  // Tokens are looked up here; the stages of a pipeline behind its first take
  // what the one before gives (model/split.h). No file says it.
  bool looks_up_tokens = true;
  // Ranks that have as many experts each as these, all of which the router
  // scores (model/split.h). No file says it.
  int64_t expert_ranks = 1;

  bool two_sided() const { return family == Family::kEncoderDecoder; }
  // Self-attention's query, key and value come of one matrix.
  bool joint_projection() const;
  bool norm_before() const;  // a block begins with a norm
  bool latent() const { return latent_key_value > 0; }
  // Width of the table of tokens; of those of positions and types, and of the
  // norm behind them.
  int64_t word_width() const {
    return embedding_size > 0 ? embedding_size : hidden;
  }
  int64_t embedding_width() const {
    return family == Family::kEncoder ? word_width() : hidden;
  }
  bool projects_embeddings() const { return word_width() != hidden; }
  // Tables of so many columns, in a model whose `hidden` is known.
  void SetWordWidth(int64_t columns) {
    embedding_size = columns == hidden ? 0 : columns;
  }
  // Position table of so many rows; 0 = none to learn.
  int64_t table_rows() const {
    return position_kind == PositionKind::kTable ? positions : 0;
  }
  int64_t key_heads() const {
    return key_value_heads > 0 ? key_value_heads : heads;
  }
  int64_t query_head_size() const {
    return head_size > 0 ? head_size : hidden / heads;
  }
  int64_t context_head_size() const {
    return value_head_size > 0 ? value_head_size : query_head_size();
  }
  int64_t query_width() const { return heads * query_head_size(); }
  // With the gates that come with them; and those that come apart.
  int64_t query_projection_width() const {
    const bool with_gates = gated_attention && !separate_attention_gate;
    return (with_gates ? 2 : 1) * query_width();
  }
  int64_t attention_gate_width() const {
    return separate_attention_gate ? context_width() : 0;
  }
  int64_t key_width() const { return key_heads() * query_head_size(); }
  int64_t value_width() const { return key_heads() * context_head_size(); }
  // What makes keys makes values in each block of attention.
  bool shares_keys() const { return keys_are_values && windowed_layers == 0; }
  // Each block attends by keys and values of another (WithParts()).
  bool borrows_keys() const {
    return shared_key_value_layers > 0 && shared_key_value_layers == layers;
  }
  int64_t key_projection_width() const {
    return borrows_keys() ? 0 : key_width();
  }
  int64_t value_projection_width() const {
    return shares_keys() || borrows_keys() ? 0 : value_width();
  }
  // Blocks that see all have attention of another shape than the others, which
  // is that of the fields without `full_`.
  bool attention_differs() const {
    return windowed_layers > 0 && windowed_layers < layers &&
           (full_head_size > 0 || full_key_value_heads > 0 || windowed_sinks ||
            keys_are_values || shared_key_value_layers > 0);
  }
  // Some blocks have other attention, or another feed-forward, than others.
  bool blocks_differ() const {
    return attention_differs() || shared_key_value_layers > 0;
  }
  // Blocks with a feed-forward of another width.
  int64_t upper_layers() const {
    return upper_intermediate > 0 ? shared_key_value_layers : 0;
  }
  // The table of embeddings of blocks: rows and columns.
  int64_t layer_table_rows() const {
    return layer_vocabulary > 0 ? layer_vocabulary : vocabulary;
  }
  int64_t layer_table_width() const {
    return (embedded_layers > 0 ? embedded_layers : layers) *
           layer_embedding_size;
  }
  // Among the first so many blocks, where these differ.
  int64_t full_layers_below(int64_t block) const {
    return block * (layers - windowed_layers) / layers;
  }
  // Of the products of queries, keys and values together.
  int64_t projections_width() const {
    return query_projection_width() + key_projection_width() +
           value_projection_width();
  }
  int64_t context_width() const { return heads * context_head_size(); }
  // Outputs of the products that keys and values of latent attention come of.
  int64_t key_value_down_width() const {
    return latent_key_value + rotary_head_size;
  }
  int64_t key_value_up_width() const {
    return heads * (query_head_size() - rotary_head_size + context_head_size());
  }
  // Inside a state space: x, which its heads hold; that with B and C, which the
  // convolution takes; and all that its first product makes, a gate and the
  // steps of time (dt) beside these.
  int64_t state_width() const { return state_heads * state_head_size; }
  int64_t state_channels() const {
    return state_width() + 2 * state_groups * state_size;
  }
  int64_t state_projection_width() const {
    return state_width() + state_channels() + state_heads;
  }
  // Of the delta rule: queries, and keys; values, and their gates; what the
  // convolution takes; and all that its first products make, how each head of
  // values decays and writes beside these.
  int64_t delta_key_width() const { return delta_key_heads * delta_key_size; }
  int64_t delta_value_width() const {
    return delta_value_heads * delta_value_size;
  }
  int64_t delta_channels() const {
    return 2 * delta_key_width() + delta_value_width();
  }
  int64_t delta_projection_width() const {
    return delta_channels() + delta_value_width() + 2 * delta_value_heads;
  }
  // Of a short convolution: what it takes, and that with both gates.
  int64_t convolution_width() const {
    return convolution_channels > 0 ? convolution_channels : hidden;
  }
  int64_t convolution_projection_width() const {
    return 3 * convolution_width();
  }
  // Blocks that mix tokens by no attention, all of one sort
  // (model/validate.cc).
  int64_t other_mixers() const {
    return state_space_layers + delta_rule_layers + convolution_layers;
  }
  Mixer other_mixer() const {
    if (convolution_layers > 0) return Mixer::kConvolution;
    return delta_rule_layers > 0 ? Mixer::kDeltaRule : Mixer::kStateSpace;
  }
  // Blocks have other parts than attention and a feed-forward.
  bool other_blocks() const { return other_mixers() > 0 || single_part_blocks; }
  // What asks for these, for messages.
  std::string_view other_blocks_key() const {
    if (convolution_layers > 0) return "convolution_layers";
    return delta_rule_layers > 0 ? "delta_rule_layers"
                                 : "state_space_layers or single_part_blocks";
  }
  // Blocks with a feed-forward, and those that mix tokens by attention.
  int64_t feed_forwards() const { return feed_forwards_below(layers); }
  int64_t feed_forwards_below(int64_t block) const {
    return single_part_blocks ? block * feed_forward_layers / layers : block;
  }
  int64_t attention_layers() const { return mixers() - other_mixers(); }
  int64_t mixers() const {
    return single_part_blocks ? layers - feed_forward_layers : layers;
  }
  BlockParts parts_of(int64_t block) const;
  int64_t scored_experts() const { return experts * expert_ranks; }
  // Width of the rows that routed experts take and give.
  int64_t expert_width() const {
    return expert_latent > 0 ? expert_latent : hidden;
  }
  int64_t expert_layers() const { return expert_layers_below(layers); }
  // Of the first so many blocks.
  int64_t expert_layers_below(int64_t block) const {
    const int64_t inner = feed_forwards_below(block);
    if (experts == 0 || inner <= dense_layers) return 0;
    return (inner - dense_layers + expert_phase) / expert_period;
  }
  bool has_experts(int64_t block) const {
    return expert_layers_below(block + 1) > expert_layers_below(block);
  }
  // All blocks of the model; those that have weights of their own.
  int64_t blocks() const { return layers + decoder_layers + next_token_blocks; }
  int64_t next_token_weights() const {
    return shared_next_token ? std::min<int64_t>(1, next_token_blocks)
                             : next_token_blocks;
  }
  int64_t blocks_with_weights() const {
    return shared_blocks ? 1 : layers + decoder_layers + next_token_weights();
  }
  // Parameters of a norm, one row or two.
  int64_t norm_rows() const {
    return (norm_scale ? 1 : 0) + (norm == Norm::kLayer && norm_bias ? 1 : 0);
  }
  // A norm closes the model, beside those of its blocks.
  bool closing_norm() const { return norm_before() && final_norm; }
  // The pooler is built only for heads that read it.
  bool has_pooler() const;
  // Longest sequence that it was trained for; nullopt when unlimited.
  std::optional<int64_t> max_sequence_length() const;
  // The longest that runs at all, where positions are rows of a table; others
  // are computed for any length (scaled rotary positions, ALiBi).
  std::optional<int64_t> longest_of_table() const;

  friend bool operator==(const Architecture&, const Architecture&) = default;
};

// The same model with attention as that of its blocks that see all in each of
// them.
Architecture WithFullAttention(Architecture architecture);

// The same with all blocks as those of such parts are, where these differ.
Architecture WithParts(Architecture architecture, const BlockParts& parts);

// The blocks from `first` up to `end` by their parts.
struct BlocksAlike {
  BlockParts parts;
  int64_t count = 0;
};
std::vector<BlocksAlike> BlocksByParts(const Architecture& architecture,
                                       int64_t first,
                                       int64_t end);

// Trainable parameters, exact; of the head those behind the pooler. Derivation
// by hand: docs/models/counts.md; asserted in tests/model.
int64_t HeadParameters(const Architecture& architecture);
int64_t TotalParameters(const Architecture& architecture);

// Those in the matrices of the blocks: neither tables nor norms nor biases.
int64_t BlockMatrixElements(const Architecture& architecture);

// Those of the table of embeddings of blocks, and of what stands beside it
// outside of them.
int64_t LayerEmbeddingParameters(const Architecture& architecture);

// Every parameter tensor of one model, in model order: how many optimizer
// launches a for-loop needs and how gradients fall into buckets.
struct ParameterTensor {
  std::string_view module;  // as Hugging Face calls it in BERT's block
  int64_t elements;
  int64_t layer;        // 0 embeddings, 1..n blocks, n + 1 head
  int64_t columns = 1;  // of a matrix; 1: a vector
  bool of_routed_expert = false;
};
std::vector<ParameterTensor> ParameterTensorsOf(
    const Architecture& architecture);

// The last of them, those of the task's own layers.
std::vector<ParameterTensor> HeadTensorsOf(const Architecture& architecture);

int64_t ParameterTensorCount(const Architecture& architecture);

}  // namespace trainfare::model
