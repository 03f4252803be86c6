#pragma once

// Models in the folder layout of Hugging Face: config.json, model.safetensors.

#include <map>
#include <string>
#include <vector>

#include "model/architecture.h"
#include "trainer/data/safetensors.h"
#include "trainer/network/transformer.h"

namespace trainfare::trainer {

struct PretrainedConfig {
  model::Architecture architecture;
  TransformerOptions options;
};

// Reads config.json of a BERT, RoBERTa, DistilBERT, GPT-2, Marian, or a decoder
// like Llama's (network/llama_decoder.h). Throws InputError.
PretrainedConfig ReadConfig(const std::string& folder);

// Copies model.safetensors of `folder`, or the files that
// model.safetensors.index.json names, into the transformer. Every tensor of it
// must be there with the right shape, but for adapters, which then start
// anew, and a task head, which then keeps its random start. Returns what was
// missing but adapters, comma-separated.
std::string LoadWeights(const std::string& folder,
                        const Transformer& transformer);

// Writes tensors by their names, as fp32, or fp64 where they are.
void SaveTensors(const std::string& path,
                 const std::vector<Parameter>& tensors,
                 const std::map<std::string, std::string>& metadata = {
                     {"format", "pt"}});

// Copies file data into a tensor of the same shape.
void CopyTensor(const TensorBytes& source, const at::Tensor& target);

}  // namespace trainfare::trainer
