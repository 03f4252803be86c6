#include "model/internal/passes/passes.h"

#include "model/internal/passes/accumulation.h"
#include "model/internal/passes/blocks.h"
#include "model/internal/passes/casts.h"
#include "model/internal/passes/embeddings.h"
#include "model/internal/passes/head.h"
#include "model/internal/passes/layer_embeddings.h"
#include "model/internal/passes/norms.h"
#include "model/internal/passes/positions.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model::internal {

namespace {

// Of word embeddings that train beside adapters.
void WordsBackward(Pass& pass) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  DropoutBackward(pass, w.tokens() * a.word_width(), pass.wide);
  TableGradient(pass, a.vocabulary, w.tokens(), a.word_width());
  AddTiedGradient(pass);
}

}  // namespace

void ForwardPass(Pass& pass) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  pass.Open(Phase::kForward, SegmentRole::kEmbeddings, 1);
  const bool biased = !a.relative_bias_each_block;
  if (a.looks_up_tokens) EmbeddingsForward(pass, w.tokens());
  LayerEmbeddingsForward(pass, w.tokens());
  if (biased) PositionBiasForward(pass, w.sequence_length);
  if (a.two_sided()) {
    EmbeddingsForward(pass, w.decoder_tokens());
    if (biased) PositionBiasForward(pass, w.decoder_length());
  }
  if (pass.casts_weights) CastWeights(pass);
  pass.Close();

  for (const LayerGroup& group : LayerGroupsOf(w, 0, a.layers)) {
    pass.Open(Phase::kForward, SegmentRole::kLayer, group.count);
    LayerForward(pass, group);
    pass.Close();
  }
  if (a.two_sided()) {
    pass.Open(Phase::kForward, SegmentRole::kDecoderLayer, a.decoder_layers);
    DecoderLayerForward(pass);
    pass.Close();
  }
  if (a.next_token_blocks > 0) {
    pass.Open(Phase::kForward, SegmentRole::kDecoderLayer, a.next_token_blocks);
    NextTokenForward(pass);
    pass.Close();
  }

  pass.Open(Phase::kForward, SegmentRole::kHead, 1);
  HeadForward(pass);
  pass.Close();
}

void BackwardPass(Pass& pass) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  pass.Open(Phase::kBackward, SegmentRole::kHead, 1);
  HeadBackward(pass);
  pass.Close();
  if (a.two_sided()) {
    pass.Open(Phase::kBackward, SegmentRole::kDecoderLayer, a.decoder_layers);
    DecoderLayerBackward(pass);
    pass.Close();
  }
  if (a.next_token_blocks > 0) {
    pass.Open(
        Phase::kBackward, SegmentRole::kDecoderLayer, a.next_token_blocks);
    NextTokenBackward(pass);
    pass.Close();
    // Each of them but the last adds to gradients of weights that it shares.
    if (a.shared_next_token && a.next_token_blocks > 1) {
      pass.Open(Phase::kBackward,
                SegmentRole::kDecoderLayer,
                a.next_token_blocks - 1);
      AddNextTokenGradients(pass);
      pass.Close();
    }
  }
  // What lies below the first weights that train has no backward pass. (A
  // first block with adapters is counted like the others: its own input
  // gradient is not needed.)
  const int64_t lowest = w.trainable.frozen_layers;
  const int64_t kept = lowest + BlocksComputedAgain(w);
  BlocksBackward(pass, kept, a.layers, /*again=*/false);
  BlocksBackward(pass, lowest, kept, /*again=*/true);
  if (w.trainable.everything()) {
    pass.Open(Phase::kBackward, SegmentRole::kEmbeddings, 1);
    const bool biased = !a.relative_bias_each_block;
    LayerEmbeddingsBackward(pass, w.tokens());
    if (a.looks_up_tokens) EmbeddingsBackward(pass, w.tokens());
    if (biased) PositionBiasBackward(pass, w.sequence_length);
    if (a.two_sided()) {
      EmbeddingsBackward(pass, w.decoder_tokens());
      if (biased) PositionBiasBackward(pass, w.decoder_length());
    }
    pass.Close();
  }
  const bool beside =
      w.trainable.embeddings_beside_adapters && a.looks_up_tokens;
  if (!w.trainable.everything() && (beside || LayerEmbeddingsTrain(w))) {
    pass.Open(Phase::kBackward, SegmentRole::kEmbeddings, 1);
    if (LayerEmbeddingsTrain(w)) LayerEmbeddingsBackward(pass, w.tokens());
    if (beside) WordsBackward(pass);
    pass.Close();
  }
  if (w.accumulation > 1 || SumsGradientsWide(w)) {
    pass.Open(Phase::kBackward, SegmentRole::kAccumulation, 1);
    AccumulateGradients(pass);
    pass.Close();
  }
}

}  // namespace trainfare::model::internal
