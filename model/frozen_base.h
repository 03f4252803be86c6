#pragma once

// Bytes of a frozen base of few bits, as it is kept beside adapters.

#include <cstdint>

#include "model/workload.h"

namespace trainfare::model {

// Of so many elements: as products take them where these take few bits
// (OperandBytes), else as bitsandbytes and Quanto keep them. Of 4 bits these have
// a constant a group of 64: in fp32, or in a byte with one in fp32 for 256
// groups (Dettmers et al. 2023, section 3). Of 8 bits a row or a tensor has one,
// which counts nothing (Dettmers et al. 2022, LLM.int8()).
int64_t BaseBytes(const Workload& workload, int64_t elements);

}  // namespace trainfare::model
