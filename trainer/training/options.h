#pragma once

// What training is asked for.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/workload.h"

namespace trainfare::trainer {

// To which length the sequences of a micro-batch are padded.
enum class Padding {
  kStatic,    // all to the longest that is allowed
  kDynamic,   // to the longest of the micro-batch
  kBucketed,  // dynamic, with micro-batches of sequences of similar length
};
std::string_view ToText(Padding padding);
Padding PaddingFromText(std::string_view text);  // throws InputError

// A step, where the command line says nothing of it.
model::Workload UsualStep();

struct TrainOptions {
  std::string model;              // a preset's name or a model folder
  std::optional<int64_t> labels;  // of the classifier
  std::string tokenizer;          // folder; empty: the model's own
  std::string data;               // JSON Lines; or else
  std::string lengths;            // histogram for random examples
  std::string evaluation;         // JSON Lines; empty: none
  std::string out;                // measurement record; empty: none
  std::string save;               // folder for the weights; empty: none
  int64_t epochs = 3;
  std::optional<int64_t> steps;  // instead of epochs
  // What is asked of a step; its model is `model`, the longest sequence is
  // `sequence_length`, and ranks share `parallel.shard`.
  model::Workload workload = UsualStep();
  // The tokens of a micro-batch, padding included (of the longer side); 0:
  // `batch` sequences instead.
  int64_t batch_tokens = 0;
  Padding padding = Padding::kStatic;
  double learning_rate = 5e-5;
  double weight_decay = 0.01;
  double warmup_fraction = 0.0;  // of the steps, linear, then linear decay
  double layer_decay = 1.0;      // of the learning rate, from layer to layer
  double largest_gradient_norm = 0.0;  // 0: gradients are not clipped
  std::string checkpoint;  // file to go on from and to save to; empty: none
  int64_t checkpoint_every = 0;  // steps; 0: at the end alone
  uint64_t seed = 1;
  bool layers = false;  // time each part of the model
};

}  // namespace trainfare::trainer
