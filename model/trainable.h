#pragma once

// What of a model trains: all of it, its last blocks, or low-rank adapters.
//
// Frozen weights have no gradient, no optimizer state and no update; blocks
// below the first that trains have no backward pass at all. An adapter stands
// beside a frozen matrix of k inputs and n outputs (Hu et al. 2021, LoRA):
//
//   Y = X W + (X A) B s      A (k, r), B (r, n):  r (k + n) parameters
//
// docs/models/counts.md has both; trainable_test.cc and adapters_test.cc work
// them by hand.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/architecture.h"
#include "model/workload.h"

namespace trainfare::model {

// Tensors that get a gradient, in model order.
std::vector<ParameterTensor> TrainableTensorsOf(const Workload& workload);
int64_t TrainableTensorCount(const Workload& workload);
int64_t TrainableParameters(const Workload& workload);

// The matrices of a model's blocks, all of which adapters can stand beside.
LoraMatrices LoraMatricesOf(const Architecture& architecture);
// Names for adapters that none is named for those of the paper, query and value
// (Hu et al. 2021, 7.1); of latent attention, which may have neither, what its
// keys and values come of, and its output; of other mixers alone what they begin
// with. What in_proj, out_proj and gate_proj are in this model.
void NameUsualMatrices(const Architecture& architecture, Trainable& trainable);
// Of adapters beside "all" matrices: those that the model has and that adapters
// run beside in such a stack.
void NameAllMatrices(const Architecture& architecture,
                     Fusion fusion,
                     Trainable& trainable);

// A matrix of a block that an adapter stands beside.
struct AdaptedMatrix {
  std::string_view module;
  int64_t inputs;
  int64_t outputs;
  bool of_keys;        // takes what attention has its keys from
  bool takes = false;  // not what another beside the same product takes

  // What the rank of an adapter beside it is no larger than.
  int64_t smaller_side() const { return std::min(inputs, outputs); }
};
// Those of one attention, and of one feed-forward of such a width inside: a
// dense one, an expert, or the shared experts together.
std::vector<AdaptedMatrix> AdaptedOfAttention(const Workload& workload);
std::vector<AdaptedMatrix> AdaptedOfFeedForward(const Workload& workload,
                                                int64_t width);
// Those of a routed expert; of what narrows tokens for all of them, and widens
// their sum; and of a state space.
std::vector<AdaptedMatrix> AdaptedOfExpert(const Workload& workload);
std::vector<AdaptedMatrix> AdaptedOfLatent(const Workload& workload);
std::vector<AdaptedMatrix> AdaptedOfStateSpace(const Workload& workload);
// Layers of a library have one product of all first ones of the delta rule, with
// one adapter.
std::vector<AdaptedMatrix> AdaptedOfDeltaRule(const Workload& workload);
// Those of a short convolution.
std::vector<AdaptedMatrix> AdaptedOfConvolution(const Workload& workload);
// Those around a block's embeddings, and that of the part of all blocks that a
// product makes.
std::vector<AdaptedMatrix> AdaptedOfLayerInput(const Workload& workload);
std::vector<AdaptedMatrix> AdaptedOfLayerEmbeddings(const Workload& workload);

// Whether a state space's last product is a module of its own, as in layers of a
// library (MambaMixer of Megatron-LM), that an adapter may stand beside and that
// may be kept in few bits. Transformers gives its weight to the kernel of the
// scan (mamba_split_conv1d_scan_combined), which knows of no adapter and makes
// the weight's gradient, frozen or not.
bool StateSpaceOutIsModule(Fusion fusion);

// Whether the first products of the delta rule are one (Megatron-LM); and of
// some matrices those alone that are modules of a stack, beside which adapters
// run.
bool OneFirstProduct(Fusion fusion);
LoraMatrices Modules(Fusion fusion, LoraMatrices matrices);

// Whether one adapter stands beside all that a joint matrix makes, where each
// part of it is named: of queries, keys and values (GPT-2's c_attn), of a gate
// and what it gates (Phi-3's gate_up_proj), under the name of the first. Beside
// some of its parts each has its own, as loralib's MergedLinear does.
bool OneAdapterOfProjections(const Workload& workload);
bool OneAdapterOfGate(const Workload& workload);

// Whether the adapter beside this matrix takes an input for itself, which it
// widens and drops out: each does, but of those beside one product (GPT-2's
// c_attn, Phi-3's gate_up_proj) the first for all. Whether adapters take what
// dropout makes of their inputs; and whether they widen these, which a compiler,
// that narrows them again for the product, has no kernel for. Source: Mangrulkar
// et al., PEFT, tuners/lora/layer.py, Linear.forward, _cast_input_dtype().
bool TakesInput(const Workload& workload, bool LoraMatrices::*matrix);
bool DropsAdapterInputs(const Workload& workload);
bool WidensAdapterInputs(const Workload& workload);

// Whether word embeddings may train beside adapters: a causal language model's,
// which no norm or projection follows.
bool EmbeddingsMayTrainBesideAdapters(const Architecture& architecture);
// Whether embeddings have a gradient: where all trains, or they beside adapters.
bool EmbeddingsTrain(const Workload& workload);

// Whether embeddings of blocks have a gradient: where all trains, where word
// embeddings do beside adapters, of which a product makes a part of these, or
// where an adapter stands beside that product.
bool LayerEmbeddingsTrain(const Workload& workload);

// Word embeddings and output layer that train beside adapters, each in a copy
// of what stays: parameters; none where they are frozen, or all trains. Of these
// the ones whose gradient comes with that of the logits: the output layer's, or
// all of a table that is both.
int64_t EmbeddingCopies(const Workload& workload);
int64_t OutputCopies(const Workload& workload);

// Parameters of the model, of its adapters and of what trains in a copy.
int64_t ParametersInAll(const Workload& workload);

// Of these those of routed experts, their adapters among them; and of those
// that train.
int64_t ExpertParametersInAll(const Workload& workload);
int64_t TrainableExpertParameters(const Workload& workload);

// Of the adapters alone, which come on top of the model: parameters, tensors,
// and the first of their matrices with the smallest side; nullopt: no adapters.
int64_t AdapterParameters(const Workload& workload);
int64_t AdapterTensorCount(const Workload& workload);
std::optional<AdaptedMatrix> SmallestAdapted(const Workload& workload);

// Blocks of the (encoder's) stack that have a backward pass: frozen ones that
// stand at the bottom do not.
int64_t LayersWithBackward(const Workload& workload);

// The lowest of these, which are computed again in the backward pass.
int64_t BlocksComputedAgain(const Workload& workload);
bool AllBlocksComputedAgain(const Workload& workload);

// Whether a frozen base is in the bits that products take, so that none of it is
// widened or cast (fp8_params of NVIDIA's NeMo).
bool BaseAsProducts(const Workload& workload);

// Whether there is a frozen base of few bits that products take widened, and
// whether operations may widen such a model's one by one: without experts or
// state spaces, which no product takes so yet, and of one side.
bool WidensBase(const Workload& workload);
bool OperationsMayWidenBase(const Architecture& architecture);

// Elements of the frozen matrices of blocks that are kept in few bits; none
// where nothing is.
int64_t QuantisedElements(const Workload& workload);

// Whether the activation has weights, and they train.
bool ActivationTrains(const Workload& workload);

// Bytes of the largest of these matrices as a product takes it, widened for its
// gradient once more; none where the forward pass kept it.
int64_t WidenedMatrixBytes(const Workload& workload);
// Bytes of a block's matrices that its backward pass has of the forward one:
// those that operations widened (Trainable::base_by_operations).
int64_t WidenedBlockBytes(const Workload& workload);

}  // namespace trainfare::model
