#pragma once

// What fused updates in kernels of our own share: how tensors reach them.

#include <ATen/record_function.h>

#include <vector>

#include "model/error.h"
#include "trainer/kernels/fused_kernels.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

inline ElementType ElementTypeOf(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return ElementType::kFloat;
    case at::kHalf:
      return ElementType::kHalf;
    case at::kBFloat16:
      return ElementType::kBfloat16;
    default:
      break;
  }
  ENSURE(false, "parameters in fp32, fp16 or bf16");
}

// One pass of ours where `gradient` is. LibTorch's profilers and our count of
// launches see it as an operator.
template <class Tensors, class Scalars>
void RunOperator(const char* name,
                 const at::Tensor& gradient,
                 const Tensors& tensors,
                 const Scalars& scalars,
                 void (*on_cpu)(const Tensors&, const Scalars&),
                 void (*on_gpu)(const Tensors&, const Scalars&)) {
  const std::vector<c10::IValue> inputs = {gradient};
  RECORD_FUNCTION(name, inputs);
  (gradient.is_cuda() ? on_gpu : on_cpu)(tensors, scalars);
}

// nullptr: no factor, as good as 1.
inline const float* FactorPointer(const at::Tensor& factor) {
  return factor.defined() ? factor.const_data_ptr<float>() : nullptr;
}

}  // namespace trainfare::trainer
