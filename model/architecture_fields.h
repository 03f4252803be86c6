#pragma once

// The fields of Architecture, once (model/fields.h). Where a function is longer
// than a screen it is a table, a statement a field.

#include <map>
#include <string>
#include <string_view>

#include "model/architecture.h"
#include "model/field.h"
#include "model/limits.h"

namespace trainfare::model {

// What a family has where a file does not say.
void SetFamilyDefaults(Architecture& architecture);

// How blocks of the gated delta rule mix tokens.
template <class Archive, Of<Architecture> A>
void VisitDeltaRule(Archive& archive, A& a) {
  archive(Field{.name = "delta_rule_layers",
                .about = "Blocks that mix tokens by the gated delta rule, not "
                         "by attention"},
          a.delta_rule_layers);
  archive(Field{.name = "delta_key_heads",
                .about = "Heads of queries and keys of the delta rule"},
          a.delta_key_heads);
  archive(Field{.name = "delta_value_heads",
                .about = "Heads of its values; several share one of keys"},
          a.delta_value_heads);
  archive(Field{.name = "delta_key_size", .about = "Width of a head of keys"},
          a.delta_key_size);
  archive(
      Field{.name = "delta_value_size", .about = "Width of a head of values"},
      a.delta_value_size);
  archive(Field{.name = "delta_convolution",
                .about = "Tokens that its convolution reaches over",
                .least = 1},
          a.delta_convolution);
  archive(Field{.name = "delta_chunk",
                .about = "Tokens that it multiplies at once",
                .least = 1,
                .most = kLongestSequence},
          a.delta_chunk);
  archive(Field{.name = "delta_joint_projections",
                .about = "Its first products are two, not four (Qwen3-Next)"},
          a.delta_joint_projections);
}

// How blocks of a short convolution do.
template <class Archive, Of<Architecture> A>
void VisitConvolution(Archive& archive, A& a) {
  archive(Field{.name = "convolution_layers",
                .about = "Blocks that mix tokens by a short gated convolution, "
                         "not by attention"},
          a.convolution_layers);
  archive(Field{.name = "convolution_channels",
                .about = "Channels that it takes; 0: hidden"},
          a.convolution_channels);
  archive(Field{.name = "convolution_reach",
                .about = "Tokens that its filters reach over (conv_L_cache)",
                .least = 1},
          a.convolution_reach);
}

// Blocks that share keys and values, and embeddings of each block.
template <class Archive, Of<Architecture> A>
void VisitSharing(Archive& archive, A& a) {
  archive(Field{.name = "shared_key_value_layers",
                .about = "Highest blocks, which attend by keys and values of "
                         "one below (Gemma 4 E2B)"},
          a.shared_key_value_layers);
  archive(Field{.name = "upper_intermediate",
                .about = "Width of their feed-forward; 0: intermediate"},
          a.upper_intermediate);
  archive(Field{.name = "layer_embedding_size",
                .about = "Embedding that every block has of each token "
                         "(hidden_size_per_layer_input)"},
          a.layer_embedding_size);
  archive(Field{.name = "layer_vocabulary",
                .about = "Rows of the table of these; 0: vocabulary"},
          a.layer_vocabulary);
}

// What a block is made of. Long because it is a table: a statement a field.
template <class Archive, Of<Architecture> A>
void VisitBlock(Archive& archive, A& a) {
  archive(Field{.name = "norm",
                .about = "Mean and variance, or root mean square alone"},
          a.norm);
  archive(Field{.name = "norm_bias", .about = "LayerNorm has a shift"},
          a.norm_bias);
  archive(Field{.name = "norm_scale", .about = "Norms have weights"},
          a.norm_scale);
  archive(
      Field{
          .name = "norm_placement",
          .about =
              "Where norms stand; by_family: before in a decoder, else after"},
      a.norm_placement);
  archive(Field{.name = "first_norm",
                .about = "The first block begins with a norm (ModernBERT: no)"},
          a.first_norm);
  archive(Field{.name = "query_key_norm",
                .about = "Norm of queries and keys: of each head, by weights "
                         "or none, or of "
                         "all"},
          a.query_key_norm);
  archive(Field{.name = "position_kind",
                .about = "How positions enter; without a table `positions` is "
                         "the longest sequence"},
          a.position_kind);
  archive(Field{.name = "relative_buckets",
                .about = "Buckets of distances, of relative positions"},
          a.relative_buckets);
  archive(Field{.name = "relative_bias_each_block",
                .about = "Each block has relative positions of its own (UMT5)"},
          a.relative_bias_each_block);
  archive(Field{.name = "shared_blocks",
                .about = "All blocks have one set of weights (ALBERT)"},
          a.shared_blocks);
  archive(Field{.name = "unrotated_layers",
                .about = "Blocks without positions (SmolLM3: a quarter)"},
          a.unrotated_layers);
  archive(Field{.name = "scaled_scores",
                .about = "Scores are divided by the root of a head's size"},
          a.scaled_scores);
  archive(Field{.name = "key_value_heads",
                .about = "Heads of keys and values; 0: as many as `heads`"},
          a.key_value_heads);
  archive(
      Field{.name = "head_size",
            .about = "Width of a head of queries and keys; 0: hidden / heads"},
      a.head_size);
  archive(Field{.name = "value_head_size",
                .about = "Width of a head of values; 0: head_size"},
          a.value_head_size);
  archive(Field{.name = "latent_query",
                .about = "Rank of DeepSeek's latent queries; 0: plain ones"},
          a.latent_query);
  archive(Field{.name = "latent_key_value",
                .about =
                    "Rank of DeepSeek's latent keys and values; 0: plain ones"},
          a.latent_key_value);
  archive(
      Field{.name = "rotary_head_size",
            .about = "Part of a head that carries its position; 0: all of it"},
      a.rotary_head_size);
  archive(
      Field{.name = "joint_projections",
            .about = "Query, key and value of an encoder are one matrix, too"},
      a.joint_projections);
  archive(Field{.name = "attention_bias",
                .about = "Query, key and value have biases"},
          a.attention_bias);
  archive(
      Field{.name = "output_bias", .about = "Attention's output has a bias"},
      a.output_bias);
  archive(Field{.name = "clipped_projections",
                .about = "Queries, keys and values are clipped (DBRX)"},
          a.clipped_projections);
  archive(Field{.name = "gated_attention",
                .about = "Attention's result has a gate, which comes with the "
                         "queries (Qwen3-Next)"},
          a.gated_attention);
  archive(Field{.name = "separate_attention_gate",
                .about = "That gate comes of a product of its own (AFMoE)"},
          a.separate_attention_gate);
  archive(
      Field{
          .name = "attention_sinks",
          .about = "A learned score for each head beside the others (gpt-oss)"},
      a.attention_sinks);
  archive(Field{.name = "value_norm",
                .about = "Values have a norm of each head, without weights "
                         "(Gemma 4)"},
          a.value_norm);
  archive(Field{.name = "window",
                .about = "Positions that a query sees in blocks with a window"},
          a.window);
  archive(Field{.name = "windowed_layers", .about = "Blocks with a window"},
          a.windowed_layers);
  archive(Field{.name = "full_head_size",
                .about = "Width of heads of the other blocks; 0: as with a "
                         "window"},
          a.full_head_size);
  archive(Field{.name = "full_key_value_heads",
                .about = "Heads of keys and values of these; 0: as with a "
                         "window"},
          a.full_key_value_heads);
  archive(Field{.name = "windowed_sinks",
                .about = "Sinks are of blocks with a window (MiMo-V2-Flash)"},
          a.windowed_sinks);
  archive(Field{.name = "keys_are_values",
                .about = "Without a window one product makes keys and values "
                         "(Gemma 4)"},
          a.keys_are_values);
  archive(Field{.name = "chunked_window",
                .about = "A window begins anew after so many positions (Llama "
                         "4)"},
          a.chunked_window);
  VisitSharing(archive, a);
  archive(
      Field{.name = "state_space_layers",
            .about = "Blocks that mix tokens by a state space (Mamba-2), not "
                     "by attention"},
      a.state_space_layers);
  archive(
      Field{.name = "single_part_blocks",
            .about = "A block is attention, a state space or a feed-forward "
                     "alone"},
      a.single_part_blocks);
  archive(Field{.name = "feed_forward_layers",
                .about = "Of such blocks those that are a feed-forward"},
          a.feed_forward_layers);
  archive(Field{.name = "state_heads", .about = "Heads of a state space"},
          a.state_heads);
  archive(Field{.name = "state_head_size",
                .about = "Width of a head of a state space"},
          a.state_head_size);
  archive(Field{.name = "state_size",
                .about = "States of each element of a head (ssm_state_size)"},
          a.state_size);
  archive(Field{.name = "state_groups",
                .about = "Groups of its heads that share B and C",
                .least = 1},
          a.state_groups);
  archive(Field{.name = "state_convolution",
                .about = "Tokens that its convolution reaches over",
                .least = 1},
          a.state_convolution);
  archive(Field{.name = "state_chunk",
                .about = "Tokens that its scan multiplies at once",
                .least = 1,
                .most = kLongestSequence},
          a.state_chunk);
  VisitDeltaRule(archive, a);
  VisitConvolution(archive, a);
  archive(Field{.name = "activation",
                .about = "Function in the feed-forward block"},
          a.activation);
  archive(
      Field{.name = "gated", .about = "A second product gates the activation"},
      a.gated);
  archive(Field{.name = "joint_gate", .about = "Both products are one matrix"},
          a.joint_gate);
  archive(Field{.name = "drops_activation",
                .about = "Dropout of what the activation gives, too"},
          a.drops_activation);
  archive(Field{.name = "feed_forward_bias",
                .about = "The feed-forward products have biases"},
          a.feed_forward_bias);
  archive(Field{.name = "parallel_block",
                .about = "Attention and feed-forward read the same sum"},
          a.parallel_block);
  archive(Field{.name = "shared_norm",
                .about = "They read it through the same norm"},
          a.shared_norm);
  archive(
      Field{.name = "experts", .about = "Routed experts of a block; 0: none"},
      a.experts);
  archive(Field{.name = "experts_per_token",
                .about = "Experts that a token is sent to"},
          a.experts_per_token);
  archive(
      Field{.name = "expert_intermediate", .about = "Width of a routed expert"},
      a.expert_intermediate);
  archive(Field{.name = "shared_intermediate",
                .about = "Width of the experts of every token together"},
          a.shared_intermediate);
  archive(Field{.name = "expert_latent",
                .about = "Width of the rows that routed experts take and give "
                         "(moe_latent_size); 0: hidden"},
          a.expert_latent);
  archive(
      Field{
          .name = "shared_expert_gate",
          .about = "A scalar for each token weighs the experts of every token"},
      a.shared_expert_gate);
  archive(Field{.name = "router_bias", .about = "The router has a bias"},
          a.router_bias);
  archive(Field{.name = "expert_norms",
                .about = "Experts and their router have norms of their own "
                         "(Gemma 4)"},
          a.expert_norms);
  archive(Field{.name = "expert_bias",
                .about = "The products of experts have biases"},
          a.expert_bias);
  archive(
      Field{.name = "dense_layers", .about = "First blocks without experts"},
      a.dense_layers);
  archive(Field{.name = "expert_period",
                .about = "Of so many blocks above them the last has experts "
                         "(Llama 4 Maverick: 2)"},
          a.expert_period);
  archive(Field{.name = "expert_groups",
                .about = "Groups that experts are in (n_group)",
                .least = 1,
                .most = kMostExperts},
          a.expert_groups);
  archive(Field{.name = "expert_groups_per_token",
                .about = "Of these so many have all experts of a token "
                         "(topk_group)",
                .least = 1,
                .most = kMostExperts},
          a.expert_groups_per_token);
  archive(Field{.name = "untied_output",
                .about = "The logits have a matrix of their own"},
          a.untied_output);
  archive(Field{.name = "logits_bias",
                .about = "Logits of a causal language model have biases (Phi)"},
          a.logits_bias);
  archive(Field{.name = "unit_output_rows",
                .about = "Rows of the matrix of logits are made of unit length "
                         "at each step (Baichuan 2)"},
          a.unit_output_rows);
  archive(Field{.name = "head_norm",
                .about = "A dense layer and a norm before classes and spans"},
          a.head_norm);
  archive(
      Field{.name = "head_bias",
            .about = "Dense layers before classes and vocabulary have biases"},
      a.head_bias);
  archive(Field{.name = "output_soft_cap",
                .about = "Logits go through tanh (Gemma 2)"},
          a.output_soft_cap);
  archive(Field{.name = "narrow_logits",
                .about = "The loss takes logits as they are made, and they "
                         "stay (GPTBigCode)"},
          a.narrow_logits);
  archive(Field{.name = "attention_soft_cap",
                .about = "Scores go through tanh (Gemma 2)"},
          a.attention_soft_cap);
  archive(Field{.name = "final_norm", .about = "A norm behind the last block"},
          a.final_norm);
}

// Dimensions, without the task: what `model:` of a scenario spells out. Long
// because it is a table: a statement a field.
template <class Archive, Of<Architecture> A>
void VisitDimensions(Archive& archive, A& a) {
  archive(Field{.name = "name", .about = "What answers call it"}, a.name);
  archive(
      Field{
          .name = "family",
          .about = "Attention sees both sides, what is before, or both in turn",
          .required = true},
      a.family);
  if constexpr (ReadingArchive<Archive>) SetFamilyDefaults(a);
  const bool two_sided = a.family == Family::kEncoderDecoder;
  archive(Field{.name = "layers",
                .about = "Blocks; of an encoder-decoder those of its encoder",
                .required = true,
                .least = 1,
                .most = kMostLayers},
          a.layers);
  archive(
      Field{.name = "decoder_layers",
            .about = "Blocks of the decoder; an encoder-decoder must have it",
            .required = two_sided,
            .least = two_sided ? 1 : 0,
            .most = kMostLayers},
      a.decoder_layers);
  archive(Field{.name = "hidden",
                .about = "Width of the residual stream",
                .required = true,
                .least = 1},
          a.hidden);
  archive(Field{.name = "heads",
                .about = "Heads of queries",
                .required = true,
                .least = 1},
          a.heads);
  if constexpr (ReadingArchive<Archive>) a.intermediate = 4 * a.hidden;
  archive(Field{.name = "intermediate",
                .about = "Width of the feed-forward block; 4 x hidden where it "
                         "is not given",
                .least = 1},
          a.intermediate);
  archive(Field{.name = "vocabulary",
                .about = "Rows of the table of tokens",
                .required = true,
                .least = 1},
          a.vocabulary);
  archive(Field{.name = "embedding_size",
                .about = "Width of the table of tokens, of an encoder's other "
                         "tables too; 0: hidden"},
          a.embedding_size);
  archive(
      Field{.name = "positions",
            .about = "Rows of the table of positions, a side; 0: fixed ones"},
      a.positions);
  archive(Field{.name = "position_offset",
                .about = "Rows of it before the first position (RoBERTa: 2)"},
          a.position_offset);
  archive(
      Field{.name = "token_types", .about = "Rows of the table of token types"},
      a.token_types);
  archive(
      Field{.name = "embedding_layer_norm",
            .about = "A norm behind the embeddings; false where no encoder"},
      a.embedding_layer_norm);
  archive(
      Field{.name = "pooler",
            .about =
                "Dense and tanh over the first token; false where no encoder"},
      a.pooler);
  archive(
      Field{.name = "separate_projections",
            .about = "A decoder has three matrices for query, key and value"},
      a.separate_projections);
  archive(
      Field{
          .name = "classifier_dense",
          .about =
              "One more dense layer before the classes (DistilBERT, RoBERTa)"},
      a.classifier_dense);
  VisitBlock(archive, a);
}

// What the model is trained for. `head`: the name of that field.
template <class Archive, Of<Architecture> A>
void VisitTask(Archive& archive, A& a, std::string_view head = "head") {
  archive(
      Field{.name = head, .about = "What it is trained for", .required = true},
      a.head);
  archive(Field{.name = "labels",
                .about = "Classes that the head tells apart",
                .least = 1},
          a.labels);
  archive(Field{.name = "dropout",
                .about = "Share of hidden states and probabilities; 0 of "
                         "blocks that are not plain",
                .high = 0.99},
          a.dropout);
  archive(Field{.name = "next_token_blocks",
                .about = "Blocks above the last that each predict one token "
                         "further (DeepSeek-V3's MTP)",
                .most = kMostLayers},
          a.next_token_blocks);
  archive(Field{.name = "shared_next_token",
                .about = "These blocks are one, used again for each token "
                         "further (mtp_use_repeated_layer)"},
          a.shared_next_token);
}

template <class Archive, Of<Architecture> A>
void VisitFields(Archive& archive, A& a) {
  VisitDimensions(archive, a);
  VisitTask(archive, a);
}

// The parts of a block as texts, by the field's name; and all dimensions.
std::map<std::string, std::string> BlockTexts(const Architecture& architecture);
std::map<std::string, std::string> DimensionTexts(
    const Architecture& architecture);

// Whether all parts of the blocks are those of BERT, GPT-2 and Vaswani et al.
bool HasPlainBlock(const Architecture& architecture);

}  // namespace trainfare::model
