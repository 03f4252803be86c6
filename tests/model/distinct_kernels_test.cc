#include "model/distinct_kernels.h"

#include <doctest/doctest.h>

#include <vector>

#include "model/kernels.h"
#include "model/presets.h"

namespace trainfare::model {
namespace {

std::vector<size_t> NumbersOf(const std::vector<Kernel>& kernels) {
  DistinctKernels distinct(kernels.size());
  std::vector<size_t> numbers;
  for (const Kernel& kernel : kernels) {
    numbers.push_back(distinct.NumberOf(kernel));
  }
  return numbers;
}

}  // namespace

TEST_CASE("kernels that ask the same have one number") {
  Kernel product;
  product.name = "key projection";
  product.kind = KernelKind::kGemm;
  product.matrix_flops = 2 * 8 * 4 * 16;
  product.bytes_read = 100;
  product.gemm = {1, 8, 4, 16};
  Kernel alike = product;  // whatever its name, and however often
  alike.name = "value projection";
  alike.launches = 3;
  Kernel turned = product;  // as many FLOPs, of other sides
  turned.gemm = {1, 4, 8, 16};
  Kernel narrow = product;
  narrow.narrow_operands = true;
  Kernel norm = product;
  norm.row_reads = RowReads::kNorm;
  CHECK(NumbersOf({product, alike, turned, narrow, product, norm, turned}) ==
        std::vector<size_t>{0, 0, 1, 2, 0, 3, 1});
}

TEST_CASE("a block that runs again adds no kernel") {
  Workload w;
  w.architecture = FindArchitecture("bert-base-uncased");
  w.batch = 4;
  w.sequence_length = 64;
  const auto distinct = [](const Workload& of) {
    const std::vector<Kernel> kernels = ExpandKernels(of).kernels;
    DistinctKernels numbers(kernels.size());
    for (const Kernel& kernel : kernels) numbers.NumberOf(kernel);
    return numbers.size();
  };
  const size_t once = distinct(w);
  // Query, key and value projections are one, and so are their gradients.
  CHECK(once < ExpandKernels(w).kernels.size() - 3);
  w.gradient_checkpointing = true;
  CHECK(distinct(w) == once);
}

}  // namespace trainfare::model
