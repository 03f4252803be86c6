#pragma once

// What trainfare-trainer runs: rules on the workload alone, which it refuses
// others by, and by which `calibrate` asks it for no others. What it has on a
// processor or a GPU only is the trainer's own.

#include "model/architecture.h"
#include "model/workload.h"

namespace trainfare::model {

// The three published layouts of encoders, told apart by their dimensions:
// DistilBERT has no token types, RoBERTa's positions start behind the padding
// id.
enum class EncoderLayout { kBert, kRoberta, kDistilBert };
EncoderLayout LayoutOf(const Architecture& architecture);

// Each throws InputError that names what is asked for and is not there.
//
// The network: the blocks of BERT, RoBERTa, DistilBERT, GPT-2, Transformer base
// and big and of decoders like Llama's, their heads and dimensions.
void RequireTrainerNetwork(const Architecture& architecture);
// What of it trains, and whether blocks are computed again.
void RequireTrainerParts(const Architecture& architecture,
                         const Trainable& trainable,
                         bool recompute);
void RequireTrainerOptimizer(const Optimizer& optimizer);
void RequireTrainerStack(Fusion stack);
void RequireTrainerPrecision(Precision precision);
// Weights as narrow as the workload has them.
void RequireTrainerWeights(const Workload& workload);
// All of these, and what else a run of the measuring mode may ask for.
void RequireTrainerRun(const Workload& workload);

}  // namespace trainfare::model
