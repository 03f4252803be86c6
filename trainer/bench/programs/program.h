#pragma once

// What the programs of programs.h are made of and made with.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "model/kernel_list.h"
#include "model/workload.h"
#include "trainer/record/operation.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// Runs an operation once and returns what it made; `call` counts up.
using Program = std::function<at::Tensor(int64_t call)>;

// Weights and results change places from call to call through this much memory,
// as those of a step do, so that they do not come from a cache by repetition.
inline constexpr int64_t kRotatedBytes = 256 << 20;
// How many tensors like this one that is; 1 to 128, 1 of none.
size_t RotationCount(const at::Tensor& tensor);

}  // namespace trainfare::trainer

namespace trainfare::trainer::programs {

// The operation that a program is of, and how wide its operands are. Operation
// and workload must outlive it.
struct Setting {
  // Throws InputError where operands of the workload have no type here.
  Setting(const Operation& of, const model::Workload& in, at::Device on);

  const Operation& operation;
  const model::Workload& workload;
  at::Device device;
  at::ScalarType narrow;  // of operands of products
  at::ScalarType wide;    // of weights, and of what LayerNorm and softmax make

  const model::Kernel& kernel() const { return operation.kernels.front(); }
  const model::Architecture& architecture() const {
    return workload.architecture;
  }
  at::Tensor Random(at::IntArrayRef sizes, at::ScalarType type) const {
    return at::randn(sizes, at::TensorOptions(at::kFloat).device(device))
        .to(type);
  }
  at::Tensor Narrow(at::IntArrayRef sizes) const {
    return Random(sizes, narrow);
  }
  at::Tensor Wide(at::IntArrayRef sizes) const { return Random(sizes, wide); }
  // As wide as the bytes that the kernel reads of an element, or writes.
  at::ScalarType WidthOf(int64_t bytes, int64_t elements) const {
    return bytes < 4 * elements ? narrow : at::kFloat;
  }
};

// Several tensors alike that calls take in turn.
class Rotation {
 public:
  template <class Make>
  explicit Rotation(const Make& make) {
    tensors_.push_back(make());
    const size_t count = RotationCount(tensors_.front());
    while (tensors_.size() < count) tensors_.push_back(make());
  }
  const at::Tensor& operator[](int64_t call) const {
    return tensors_[static_cast<size_t>(call) % tensors_.size()];
  }

 private:
  std::vector<at::Tensor> tensors_;
};

// The backward pass alone of what `make` computed once from `inputs`.
Program Backward(std::vector<at::Tensor> inputs,
                 const std::function<at::Tensor()>& make);
Program BackwardOfAll(std::vector<at::Tensor> inputs,
                      const std::function<std::vector<at::Tensor>()>& make);

}  // namespace trainfare::trainer::programs
