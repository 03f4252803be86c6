#pragma once

// The activation inside a feed-forward, alone or with its gate, bias and
// dropout.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// The translation models that Fairseq and LightSeq2 are compared with drop out
// the activation, too (`transformer_wmt_en_de_big_t2t`: activation_dropout
// 0.1).
bool DropsActivation(const Pass& pass);

// Its dropout: a kernel of its own, or within the one before it.
void DropActivation(Pass& pass, int64_t elements);

// An activation that no neighbour takes in.
void ActivationAlone(Pass& pass, KernelName name, int64_t elements);
void ActivationAloneBackward(Pass& pass, KernelName name, int64_t elements);

// (act(x G) * x W): one pass, or the activation and the product apart.
void GatedActivation(Pass& pass, int64_t elements);
void GatedActivationBackward(Pass& pass, int64_t elements);

// That of a feed-forward without a gate; in fused stacks with its bias.
void ActivationForward(Pass& pass, int64_t elements);
void ActivationBackward(Pass& pass, int64_t elements);

}  // namespace trainfare::model::internal
