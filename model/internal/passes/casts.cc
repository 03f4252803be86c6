#include "model/internal/passes/casts.h"

#include <algorithm>

#include "model/logits.h"
#include "model/rounding.h"
#include "model/sharding.h"

namespace trainfare::model::internal {
namespace {

// fp32 weights that are narrowed in so many launches.
struct WeightCasts {
  int64_t elements = 0;
  int64_t launches = 0;
  void Add(int64_t more_elements, int64_t more_launches) {
    elements += more_elements;
    launches += more_launches;
  }
};

// A compiled graph casts a bias in passing.
int64_t CastLaunches(const Workload& w, bool bias) {
  const bool compiled = RulesOf(w).block == BlockKernels::kCompiled;
  return bias && !compiled ? 2 : 1;
}

// Of what mixes tokens in the place of attention.
void AddMixers(const Architecture& a, WeightCasts& casts) {
  const int64_t h = a.hidden;
  casts.Add(
      a.state_space_layers * h * (a.state_projection_width() + a.state_width()),
      2 * a.state_space_layers);
  casts.Add(a.delta_rule_layers * h *
                (a.delta_projection_width() + a.delta_value_width()),
            a.delta_rule_layers * (a.delta_joint_projections ? 3 : 5));
  casts.Add(a.convolution_layers * h *
                (a.convolution_projection_width() + a.convolution_width()),
            2 * a.convolution_layers);
}

// Of so many attentions of such a model, each of so many products before the
// last.
void AddAttentions(const Workload& w,
                   const Architecture& a,
                   int64_t count,
                   int64_t products,
                   WeightCasts& casts) {
  const int64_t h = a.hidden;
  if (a.latent()) {
    const int64_t query = a.latent_query > 0
                              ? a.latent_query * (h + a.query_width())
                              : h * a.query_width();
    casts.Add(count * (h * a.key_value_down_width() + query +
                       a.latent_key_value * a.key_value_up_width() +
                       a.context_width() * h),
              count * (a.latent_query > 0 ? 5 : 4));
    return;
  }
  casts.Add(count * h * (a.projections_width() + a.context_width()),
            count * (products * CastLaunches(w, a.attention_bias) +
                     CastLaunches(w, a.output_bias)));
  if (a.separate_attention_gate) {
    casts.Add(count * h * a.attention_gate_width(), count);
  }
}

// Of those of the blocks, with so many more of the usual sort.
void AddAttentionsOfBlocks(const Workload& w,
                           int64_t more,
                           WeightCasts& casts) {
  const Architecture& a = w.architecture;
  const auto add = [&](const Architecture& of, int64_t count) {
    const int keys = of.key_projection_width() > 0 ? 1 : 0;
    const int values = of.value_projection_width() > 0 ? 1 : 0;
    AddAttentions(
        w, of, count, of.joint_projection() ? 1 : 1 + keys + values, casts);
  };
  if (!a.blocks_differ()) {
    add(a, (a.shared_blocks ? 1 : a.attention_layers()) + more);
    return;
  }
  for (const BlocksAlike& sort : BlocksByParts(a, 0, a.layers)) {
    add(WithParts(a, sort.parts), sort.count);
  }
}

// What is narrowed of the blocks: a launch a matrix, and one a bias.
WeightCasts CastsOfBlocks(const Pass& pass) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  const int64_t h = a.hidden;
  const int64_t feed_forward = a.gated ? 3 : 2;
  const int64_t matrices = a.joint_gate ? 2 : feed_forward;
  WeightCasts casts;
  // Of so many elements in each product.
  const auto dense = [&](int64_t count, int64_t elements, bool bias) {
    casts.Add(count * feed_forward * elements,
              count * matrices * CastLaunches(w, bias));
  };
  const int64_t layers = a.shared_blocks ? 1 : a.attention_layers();
  const int64_t upper = a.next_token_weights();
  AddAttentionsOfBlocks(w, upper, casts);
  AddMixers(a, casts);
  AddAttentions(w, a, 2 * a.decoder_layers, 3, casts);
  casts.Add(upper * 2 * h * h, upper);
  const int64_t with_experts = a.expert_layers() + (a.experts > 0 ? upper : 0);
  dense(a.blocks_with_weights() - (a.layers - a.feed_forwards()) -
            with_experts - a.upper_layers(),
        h * a.intermediate,
        a.feed_forward_bias);
  if (a.upper_layers() > 0) {
    dense(a.upper_layers(), h * a.upper_intermediate, a.feed_forward_bias);
  }
  if (a.layer_embedding_size > 0) {
    casts.Add(2 * a.layers * h * a.layer_embedding_size, 2 * a.layers);
  }
  if (a.experts > 0) {
    casts.Add(with_experts * h * a.scored_experts(), with_experts);
    dense(with_experts * a.experts,
          a.expert_width() * a.expert_intermediate,
          a.expert_bias);
    if (a.expert_latent > 0) {
      casts.Add(with_experts * 2 * h * a.expert_latent, 2 * with_experts);
    }
    if (a.shared_intermediate > 0) {
      dense(with_experts, h * a.shared_intermediate, false);
    }
  }
  if (pass.FusedPasses()) {
    // The fused layers add the biases of outputs, and of what goes into the
    // feed-forward, in fp32.
    const int64_t widening = a.shared_blocks ? 1 : a.feed_forwards();
    casts.launches -= layers + widening + 3 * a.decoder_layers;
    casts.launches -= widening + a.decoder_layers;
  }
  return casts;
}

WeightCasts CastsOutsideBlocks(const Workload& w) {
  const Architecture& a = w.architecture;
  const int64_t h = a.hidden;
  WeightCasts casts;
  const auto matrix = [&](int64_t rows, int64_t columns, bool bias = true) {
    casts.Add(rows * columns, CastLaunches(w, bias));
  };
  if (a.has_pooler()) matrix(h, h);
  if (a.head == Head::kSequenceClassification) {
    if (a.classifier_dense) matrix(h, h, a.head_bias);
    matrix(a.labels, h);
  } else if (a.head == Head::kQuestionAnswering) {
    if (a.head_norm) matrix(h, h, a.head_bias);
    matrix(2, h);
  } else if (PredictsVocabulary(w)) {
    if (a.head == Head::kPreTraining) matrix(2, h);
    const bool causal = a.head == Head::kCausalLanguageModel;
    const int64_t words = a.word_width();
    if (!causal || words != h) matrix(words, h, !causal && a.head_bias);
    matrix(a.vocabulary, words, !causal || a.logits_bias);
  }
  if (a.projects_embeddings()) {
    matrix(h, a.word_width(), a.family == Family::kEncoder);
  }
  if (a.layer_embedding_size > 0) matrix(a.layer_table_width(), h, false);
  return casts;
}

void PushCasts(Pass& pass, const WeightCasts& casts) {
  pass.Copy("cast weights", casts.elements / casts.launches, 4, pass.element);
  Kernel& kernel = pass.last();
  kernel.launches = casts.launches;
  kernel.parameter_bytes = kernel.bytes();
  kernel.parameter_bytes_written = kernel.bytes_written;
}

// The tensor's largest value is read first. Copies that a weight gradient reads
// are of blocks that a Hadamard matrix of 16 columns has mixed, 4 additions a
// number; gradients are rounded by a random word for four numbers (PTX ISA,
// cvt.rs of e2m1x4), weights share the scales of both copies (arXiv:2509.25149,
// section 4).
void NarrowToFp4(Pass& pass,
                 KernelName name,
                 int64_t elements,
                 int64_t copies) {
  pass.Reduction("largest value", elements, elements, pass.element, 0, 1);
  pass.Copy(name, elements, pass.element, 0);
  Kernel& kernel = pass.last();
  kernel.bytes_written = copies * OperandBytes(Precision::kFp4, elements);
  if (copies > 1 && !(name == "cast weights")) {
    kernel.vector_flops = 4 * elements;
  }
  if (name == "cast gradient") kernel.random_draws = copies * elements / 4;
}

}  // namespace

bool NarrowWeightGradients(const Workload& w) {
  return w.precision != Precision::kFp8 || w.fp8.weight_gradients;
}

void CastOperand(Pass& pass, int64_t elements) {
  if (pass.autocast) pass.Copy("cast activation", elements, 4, pass.element);
}

void WidenGradient(Pass& pass, int64_t elements) {
  if (pass.autocast) pass.Copy("cast gradient", elements, pass.element, 4);
}

void NarrowGradient(Pass& pass, int64_t elements) {
  if (pass.autocast) pass.Copy("cast gradient", elements, 4, pass.element);
}

void WidenParameterGradient(Pass& pass, int64_t elements) {
  if (!pass.casts_weights || !pass.last_use) return;
  pass.Copy("cast weight gradient", elements, pass.element, 4);
  pass.last().parameter_bytes = pass.last().bytes();
  pass.last().parameter_bytes_written = pass.last().bytes_written;
}

void CastWeights(Pass& pass) {
  WeightCasts casts = CastsOfBlocks(pass);
  const WeightCasts outside = CastsOutsideBlocks(pass.workload);
  casts.Add(outside.elements, outside.launches);
  PushCasts(pass, casts);
}

int64_t MatrixElementsOutsideBlocks(const Workload& w) {
  return CastsOutsideBlocks(w).elements;
}

void CastWeightsAgain(Pass& pass) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  if (!pass.autocast || ShardsParameters(w.parallel)) return;
  const int64_t blocks = a.blocks();
  WeightCasts casts = CastsOfBlocks(pass);
  casts.elements /= blocks;
  casts.launches = std::max<int64_t>(1, casts.launches / blocks);
  PushCasts(pass, casts);
}

void NarrowOperand(Pass& pass, KernelName name, int64_t elements) {
  const Workload& w = pass.workload;
  const Fp8& fp8 = w.fp8;
  const bool weights = name == "cast weights";
  const bool twice =
      w.work != Work::kForward && (weights || NarrowWeightGradients(w));
  const int64_t copies = twice ? 2 : 1;
  const size_t first = pass.next();
  if (w.precision == Precision::kFp4) {
    NarrowToFp4(pass, name, elements, copies);
  } else if (weights && fp8.gathered) {
    // They come in 8 bits; what is left is the transposed copy.
    if (twice) pass.Copy(name, elements, kBytesOfFp8, kBytesOfFp8);
  } else if (fp8.scaling == Fp8Scaling::kRows) {
    for (int64_t i = 0; i < copies; ++i) {
      pass.Copy(name, elements, pass.element, kBytesOfFp8);
    }
  } else {
    if (fp8.scaling == Fp8Scaling::kTensor) {
      pass.Reduction("largest value", elements, elements, pass.element, 0, 1);
    }
    pass.Copy(name, elements, pass.element, copies * kBytesOfFp8);
    if (fp8.scaling == Fp8Scaling::kBlocks) {
      pass.last().bytes_written +=
          copies * CeilDivide(elements, kNumbersOfFp8Scale);
    }
  }
  if (!weights) return;
  for (size_t i = first; i < pass.next(); ++i) {
    pass.list.kernels[i].parameter_bytes = pass.list.kernels[i].bytes();
  }
}

void ReadNarrowed(Pass& pass, Reads second) {
  Kernel& kernel = pass.last();
  const GemmExtents& g = kernel.gemm;
  kernel.narrow_operands = true;
  const auto bytes = [&](int64_t numbers) {
    return OperandBytes(pass.workload.precision, numbers);
  };
  kernel.bytes_read = bytes(g.batch * g.m * g.k) + bytes(g.batch * g.k * g.n);
  if (second == Reads::kWeights) {
    kernel.parameter_bytes = bytes(g.batch * g.k * g.n);
  }
}

}  // namespace trainfare::model::internal
