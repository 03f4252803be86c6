#pragma once

// What the parts of one block keep for the backward pass, in bytes.

#include <cstdint>

#include "model/workload.h"

namespace trainfare::model::internal {

inline constexpr int64_t kStatistics = 8;  // mean and deviation of a row, fp32

// Whether the input of a matrix is needed: for the gradient of its weights, or
// of the adapter beside it. A frozen matrix needs only itself. It is kept but
// for an adapter that keeps a copy of its own.
bool NeedsInput(const Workload& workload, bool LoraMatrices::*matrix);
bool KeepsInput(const Workload& workload, bool LoraMatrices::*matrix);

// What a norm keeps of each element that it takes: that, of `width` bytes, by
// default those of the results of norms. An RMSNorm of single operations keeps
// it in fp32, in place of one that is narrow, and for the gradient of its
// weights its scaled form, which is as narrow as the input again (LlamaRMSNorm
// of Transformers). T5's scales the narrow input, which stays beside
// (T5LayerNorm); those behind parts of a block narrow after the weights, if at
// all (Gemma2RMSNorm, Olmo2RMSNorm).
int64_t NormElementBytes(const Workload& workload, int64_t width);
int64_t NormElementBytes(const Workload& workload);

// Of keys and values of grouped attention that single operations repeat, so that
// every head of the queries has its own (Transformers' repeat_kv): what that
// takes beside those that there are.
int64_t RepeatedHeadBytes(const Workload& workload, int64_t tokens);

// What is kept of scores: statistics of a row of flash attention; else
// probabilities, the mask, and what dropout or the cast made of them, with the
// keys and values that are repeated for their products.
int64_t ScoreBytes(const Workload& workload,
                   int64_t query_length,
                   int64_t key_length);

// One attention block and the residual and LayerNorm behind it.
int64_t AttentionBytes(const Workload& workload,
                       int64_t query_length,
                       int64_t key_length,
                       bool cross);

// What a block keeps of its embeddings besides these: what it gave before, where
// a gate is made of it, the gate, what it lets through, and the norm's input.
int64_t LayerInputBytes(const Workload& workload, int64_t tokens);

// One state space and the residual and norm behind it: its norm's result, what
// the first product made of it and what the scan did, from which the fused
// kernels of mamba_ssm make all else anew in the pass backward
// (MambaSplitConv1dScanCombinedFn of ssd_combined.py).
int64_t StateSpaceBytes(const Workload& workload, int64_t tokens);

// The same of the gated delta rule: inputs of the first products, what the
// convolution took, and queries, keys and values that it gave; of each head how
// it decays and writes, and the inverse of its chunk; the result, its gate, and
// what the gated norm made of both (ChunkGatedDeltaRuleFunction of
// flash-linear-attention's ops/gated_delta_rule/chunk.py).
int64_t DeltaRuleBytes(const Workload& workload, int64_t tokens);

// The same of a short convolution: its input, the product of that, what each
// gate and the convolution between them made.
int64_t ConvolutionBytes(const Workload& workload, int64_t tokens);

// Bytes kept of a feed-forward over so many rows, without its input: what the
// activation took and gave; with a gate both products and theirs, and,
// operation by operation, the activation of the gate.
int64_t HiddenBytes(const Workload& workload,
                    int64_t rows,
                    int64_t intermediate);

// The feed-forward with its input, and the residual and norm behind it.
int64_t FeedForwardBytes(const Workload& workload,
                         int64_t tokens,
                         bool experts);

}  // namespace trainfare::model::internal
