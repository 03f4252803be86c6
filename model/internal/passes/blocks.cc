#include "model/internal/passes/blocks.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/internal/passes/attention.h"
#include "model/internal/passes/attention_scores.h"
#include "model/internal/passes/casts.h"
#include "model/internal/passes/convolution.h"
#include "model/internal/passes/delta_rule.h"
#include "model/internal/passes/embeddings.h"
#include "model/internal/passes/feed_forward.h"
#include "model/internal/passes/kept_operations.h"
#include "model/internal/passes/layer_embeddings.h"
#include "model/internal/passes/loss.h"
#include "model/internal/passes/matrices.h"
#include "model/internal/passes/norms.h"
#include "model/internal/passes/positions.h"
#include "model/internal/passes/products.h"
#include "model/internal/passes/state_space.h"
#include "model/logits.h"
#include "model/product_kernel.h"
#include "model/trainable.h"

namespace trainfare::model::internal {
namespace {

LayerGroup NextTokenGroup(const Pass& pass) {
  const Architecture& a = pass.architecture;
  return {a.next_token_blocks, TransformerBlock(a.experts > 0)};
}

// Positions of a side of so many tokens, where each block has its own.
void BlockBiasForward(Pass& pass, int64_t length) {
  if (pass.architecture.relative_bias_each_block) {
    PositionBiasForward(pass, length);
  }
}
void BlockBiasBackward(Pass& pass, int64_t length) {
  if (pass.architecture.relative_bias_each_block &&
      pass.workload.trainable.everything()) {
    PositionBiasBackward(pass, length);
  }
}

// While it lives the products of a group's blocks have operands of its bits.
class OperandsOfGroup {
 public:
  OperandsOfGroup(Pass& pass, const LayerGroup& group)
      : pass_(pass), before_(pass.narrows_operands) {
    if (group.wide) pass.narrows_operands = false;
  }
  ~OperandsOfGroup() { pass_.narrows_operands = before_; }
  OperandsOfGroup(const OperandsOfGroup&) = delete;
  OperandsOfGroup& operator=(const OperandsOfGroup&) = delete;

 private:
  Pass& pass_;
  bool before_;
};

// A group's blocks by a pass of their shape, with its kernels behind those of
// `pass`.
template <class List>
void InShapeOf(Pass& pass, const LayerGroup& group, const List& list) {
  if (!group.parts.sees_all && !group.parts.borrows_keys) {
    list(pass);
    return;
  }
  const WorkloadOfParts of_parts(pass.workload, group.parts);
  Pass inner(of_parts.get());
  inner.last_use = pass.last_use;
  inner.narrows_operands = pass.narrows_operands;
  std::swap(inner.list, pass.list);
  list(inner);
  std::swap(inner.list, pass.list);
}

// A block's forward pass once more, but for what was kept of it.
void OperationsAgain(Pass& pass, const LayerGroup& group) {
  const size_t first = pass.next();
  CastWeightsAgain(pass);
  LayerForward(pass, group);
  LeaveOutKept(pass.list, first);
}

// `core_again`: after attention's core has run once more.
void LayerBackward(Pass& pass, const LayerGroup& group, bool core_again) {
  const OperandsOfGroup operands(pass, group);
  const Workload& w = pass.workload;
  const int64_t tokens = w.tokens();
  LayerInputBackward(pass, tokens);
  if (group.parts.feed_forward != FeedForwardKind::kNone) {
    InShapeOf(pass, group, [&](Pass& of) {
      FeedForwardBackward(of, tokens, group.parts.experts());
    });
  }
  if (group.parts.mixer == Mixer::kStateSpace) StateSpaceBackward(pass, tokens);
  if (group.parts.mixer == Mixer::kDeltaRule) DeltaRuleBackward(pass, tokens);
  if (group.parts.mixer == Mixer::kConvolution) {
    ConvolutionBackward(pass, tokens);
  }
  if (group.parts.mixer != Mixer::kAttention) return;
  InShapeOf(pass, group, [&](Pass& of) {
    const Architecture& a = of.architecture;
    const AttentionShape shape =
        SelfAttention(of, w.sequence_length, group.windowed, group.positions);
    if (core_again) {
      AttentionCoreForward(
          of, shape, tokens * a.query_width(), tokens * a.key_width());
    }
    AttentionBackward(of, Attends::kSelf, shape, tokens, tokens);
  });
  BlockBiasBackward(pass, w.sequence_length);
}

// What a block that predicts one token further is given: the embeddings of the
// tokens before it and the hidden states below, each normed, side by side
// through one product (DeepSeek-AI 2024, "DeepSeek-V3", equation 21).
void NextTokenInputForward(Pass& pass) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  const int64_t tokens = w.tokens();
  const int64_t h = a.hidden;
  EmbeddingsForward(pass, tokens);
  LayerNormForward(pass, tokens);
  LayerNormForward(pass, tokens);
  pass.Copy("join next tokens", 2 * tokens * h, pass.wide, pass.wide);
  CastOperand(pass, 2 * tokens * h);
  BlockGemm(pass, "next-token projection", tokens, h, 2 * h);
}

// Groups of the blocks from `first` up to `end`, whose products are all in the
// same bits.
std::vector<LayerGroup> GroupsOfParts(const Architecture& a,
                                      int64_t first,
                                      int64_t end) {
  std::vector<LayerGroup> groups;
  if (a.other_blocks() || a.blocks_differ()) {
    // Other blocks have no window (model/validate.cc).
    for (const BlocksAlike& sort : BlocksByParts(a, first, end)) {
      const bool windowed = a.attention_differs()
                                ? !sort.parts.sees_all
                                : a.windowed_layers == a.layers;
      groups.push_back({sort.count, sort.parts, windowed});
    }
    return groups;
  }
  // Which of the blocks have a window is not told: the first of each sort.
  int64_t windowed = a.windowed_layers;
  int64_t unrotated = a.unrotated_layers;
  // Of so many blocks with experts, or without, those from `from` up to `to`.
  const auto add_sorts =
      [&](int64_t count, int64_t from, int64_t to, bool experts) {
        int64_t at = 0;
        const auto add = [&](const LayerGroup& group) {
          const int64_t inside =
              std::min(at + group.count, to) - std::max(at, from);
          at += group.count;
          if (inside <= 0) return;
          groups.push_back(group);
          groups.back().count = inside;
        };
        const int64_t narrow = std::min(count, windowed);
        const int64_t bare = std::min(count - narrow, unrotated);
        windowed -= narrow;
        unrotated -= bare;
        const BlockParts parts = TransformerBlock(experts);
        add({narrow, parts, true, true});
        add({bare, parts, false, false});
        add({count - narrow - bare, parts, false, true});
      };
  const int64_t below = a.expert_layers_below(first);
  const int64_t up_to = a.expert_layers_below(end);
  add_sorts(a.layers - a.expert_layers(), first - below, end - up_to, false);
  add_sorts(a.expert_layers(), below, up_to, true);
  return groups;
}

}  // namespace

std::vector<LayerGroup> LayerGroupsOf(const Workload& w,
                                      int64_t first,
                                      int64_t end) {
  const Architecture& a = w.architecture;
  const int64_t from = std::clamp(a.layers - w.wide_blocks, first, end);
  std::vector<LayerGroup> groups;
  if (first < from) groups = GroupsOfParts(a, first, from);
  if (from < end) {
    for (LayerGroup& group : GroupsOfParts(a, from, end)) {
      group.wide = true;
      groups.push_back(group);
    }
  }
  return groups;
}

void LayerForward(Pass& pass, const LayerGroup& group) {
  const OperandsOfGroup operands(pass, group);
  const Workload& w = pass.workload;
  const int64_t tokens = w.tokens();
  if (group.parts.mixer == Mixer::kAttention) {
    BlockBiasForward(pass, w.sequence_length);
    InShapeOf(pass, group, [&](Pass& of) {
      AttentionForward(
          of,
          Attends::kSelf,
          SelfAttention(of, w.sequence_length, group.windowed, group.positions),
          tokens,
          tokens);
    });
  } else if (group.parts.mixer == Mixer::kStateSpace) {
    StateSpaceForward(pass, tokens);
  } else if (group.parts.mixer == Mixer::kDeltaRule) {
    DeltaRuleForward(pass, tokens);
  } else if (group.parts.mixer == Mixer::kConvolution) {
    ConvolutionForward(pass, tokens);
  }
  if (group.parts.feed_forward != FeedForwardKind::kNone) {
    InShapeOf(pass, group, [&](Pass& of) {
      FeedForwardForward(of, tokens, group.parts.experts());
    });
  }
  LayerInputForward(pass, tokens);
}

int64_t KeptProductBytes(const Workload& workload, const BlockParts& parts) {
  Pass pass(workload);
  LayerForward(pass, {.count = 1, .parts = parts});
  return KeptResultBytes(pass.list, pass.element);
}

namespace {

// The gradients of a block's tensors are added to those that the blocks above
// gave: by autograd, as wide as they are made, before they are widened.
void AddSharedGradients(Pass& pass) {
  int64_t narrow = 0;
  int64_t wide = 0;
  int64_t narrow_tensors = 0;
  int64_t wide_tensors = 0;
  for (const ParameterTensor& tensor : ParameterTensorsOf(pass.architecture)) {
    if (tensor.layer != 1) continue;
    const bool of_norm =
        tensor.module.find("LayerNorm") != std::string_view::npos;
    (of_norm ? wide : narrow) += tensor.elements;
    ++(of_norm ? wide_tensors : narrow_tensors);
  }
  const int64_t width = ParameterWidth(pass.workload);
  const auto add = [&](int64_t elements, int64_t tensors, int64_t bytes) {
    if (tensors == 0) return;
    pass.Elementwise(
        "tied gradient add", elements / tensors, 2 * bytes, bytes, 1);
    Kernel& kernel = pass.last();
    kernel.launches = tensors;
    kernel.parameter_bytes = kernel.bytes();
    kernel.parameter_bytes_written = kernel.bytes_written;
  };
  add(narrow, narrow_tensors, pass.casts_weights ? pass.element : width);
  add(wide, wide_tensors, width);
}

// Of blocks that share their weights the highest makes gradients, the others
// add to them, and the lowest makes them whole.
void SharedBlocksBackward(Pass& pass) {
  const int64_t layers = pass.architecture.layers;
  const LayerGroup block{.count = 1};
  const auto blocks = [&](int64_t count, bool adds, bool last) {
    if (count == 0) return;
    pass.Open(Phase::kBackward, SegmentRole::kLayer, count);
    pass.last_use = last;
    LayerBackward(pass, block, /*core_again=*/false);
    if (adds) AddSharedGradients(pass);
    pass.last_use = true;
    pass.Close();
  };
  blocks(layers > 1 ? 1 : 0, /*adds=*/false, /*last=*/false);
  blocks(std::max<int64_t>(0, layers - 2), /*adds=*/true, /*last=*/false);
  blocks(1, /*adds=*/layers > 1, /*last=*/true);
}

}  // namespace

void BlocksBackward(Pass& pass, int64_t first, int64_t end, bool again) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  if (a.shared_blocks) {
    // None of them runs again (model/validate.cc).
    if (!again) SharedBlocksBackward(pass);
    return;
  }
  const auto groups = LayerGroupsOf(w, first, end);
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    pass.Open(Phase::kBackward, SegmentRole::kLayer, group->count);
    if (again) {
      CastWeightsAgain(pass);
      LayerForward(pass, *group);
    }
    if (!again && w.operation_checkpointing) OperationsAgain(pass, *group);
    LayerBackward(
        pass, *group, /*core_again=*/!again && w.attention_checkpointing);
    pass.Close();
  }
}

void DecoderLayerForward(Pass& pass) {
  const Workload& w = pass.workload;
  const int64_t tokens = w.decoder_tokens();
  BlockBiasForward(pass, w.decoder_length());
  AttentionForward(pass,
                   Attends::kSelf,
                   SelfAttention(pass, w.decoder_length()),
                   tokens,
                   tokens);
  AttentionForward(
      pass, Attends::kCross, CrossAttention(pass), tokens, w.tokens());
  FeedForwardForward(pass, tokens);
}

void DecoderLayerBackward(Pass& pass) {
  const Workload& w = pass.workload;
  if (w.gradient_checkpointing) {
    CastWeightsAgain(pass);
    DecoderLayerForward(pass);
  }
  const int64_t tokens = w.decoder_tokens();
  FeedForwardBackward(pass, tokens);
  AttentionBackward(
      pass, Attends::kCross, CrossAttention(pass), tokens, w.tokens());
  AttentionBackward(pass,
                    Attends::kSelf,
                    SelfAttention(pass, w.decoder_length()),
                    tokens,
                    tokens);
  BlockBiasBackward(pass, w.decoder_length());
}

void AddNextTokenGradients(Pass& pass) {
  const Architecture& a = pass.architecture;
  Architecture without = a;
  without.next_token_blocks = 0;
  const int64_t tensors =
      ParameterTensorCount(a) - ParameterTensorCount(without);
  const int64_t elements = TotalParameters(a) - TotalParameters(without);
  AddWeightGradient(pass,
                    "tied gradient add",
                    elements / tensors,
                    ParameterWidth(pass.workload));
  pass.last().launches = tensors;
  if (pass.rules.adds_in_products) pass.last() = AddedByProduct(pass.last());
}

void NextTokenForward(Pass& pass) {
  const Workload& w = pass.workload;
  NextTokenInputForward(pass);
  LayerForward(pass, NextTokenGroup(pass));
  LayerNormForward(pass, w.tokens());
  VocabularyForward(pass, LogitsOf(w).rows);
}

// The block that predicts one token further, last first. Its gradients of the
// tables that it shares with the model are added to the model's own.
void NextTokenBackward(Pass& pass) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  const int64_t tokens = w.tokens();
  const int64_t h = a.hidden;
  VocabularyBackward(pass, LogitsOf(w).rows);
  if (!ChunksLoss(w) && Trains(w, Matrix::kVocabulary)) {
    AddWeightGradient(pass,
                      "tied gradient add",
                      a.vocabulary * h,
                      ParameterWidth(pass.workload));
  }
  LayerNormBackward(pass, tokens);
  const bool again = w.gradient_checkpointing && w.checkpointed_blocks == 0;
  if (again) {
    CastWeightsAgain(pass);
    LayerForward(pass, NextTokenGroup(pass));
  }
  LayerBackward(
      pass, NextTokenGroup(pass), !again && w.attention_checkpointing);
  LinearBackward(
      pass, Matrix::kNextToken, tokens, h, 2 * h, false, Input::kNarrowed);
  LayerNormBackward(pass, tokens);
  LayerNormBackward(pass, tokens);
  ResidualGradientAdd(pass, tokens);
  if (!w.trainable.everything()) return;
  TableGradient(pass, a.vocabulary, tokens, h);
  AddWeightGradient(pass,
                    "tied gradient add",
                    a.vocabulary * h,
                    ParameterWidth(pass.workload));
}

}  // namespace trainfare::model::internal
