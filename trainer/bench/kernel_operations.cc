#include "trainer/bench/kernel_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "model/error.h"
#include "trainer/bench/kernel_table.h"
#include "trainer/bench/programs/programs.h"

namespace trainfare::trainer {
namespace {

using model::Kernel;
using model::KernelKind;

// Operations are alike when the device cannot tell them apart.
std::string Likeness(const Operation& operation) {
  std::string key =
      fmt::format("{}/{}", operation.name, static_cast<int>(operation.phase));
  for (const Kernel& k : operation.kernels) {
    key += fmt::format("/{},{},{},{},{},{},{}",
                       k.gemm.batch,
                       k.gemm.m,
                       k.gemm.n,
                       k.gemm.k,
                       k.work_items,
                       k.bytes_read,
                       k.bytes_written);
  }
  return key;
}

// The kernels of the operation that begins with the first of `kernels`.
std::vector<Kernel> KernelsOf(const OperationRow& row,
                              std::span<const Kernel> kernels) {
  if (row.count == nullptr) {
    std::vector<Kernel> own = {kernels.front()};
    if (row.following != model::KernelName()) {
      ENSURE(kernels.size() > 1 && kernels[1].name == row.following,
             "the kernels of one operation follow each other");
      own.push_back(kernels[1]);
    }
    return own;
  }
  const size_t count = row.count(kernels);
  ENSURE(count <= kernels.size(), "an operation ends with its segment");
  for (const Kernel& kernel : kernels.first(count)) {
    ENSURE(kernel.name == row.kernel || kernel.name == row.following,
           "the kernels of one operation follow each other");
  }
  return {kernels.begin(), kernels.begin() + static_cast<ptrdiff_t>(count)};
}

// How often an operation of these kernels runs: as often as each of them is
// launched. Those of unequal launches are sums over experts, which the trainer
// has at once.
int64_t TakeRuns(std::vector<Kernel>& kernels) {
  const int64_t launches = kernels.front().launches;
  const bool alike =
      std::all_of(kernels.begin(), kernels.end(), [&](const Kernel& kernel) {
        return kernel.launches == launches;
      });
  if (!alike) return 1;
  for (Kernel& kernel : kernels) kernel.launches = 1;
  return launches;
}

class OperationList {
 public:
  void Add(Operation operation) {
    const auto [place, is_new] =
        index_.emplace(Likeness(operation), operations_.size());
    if (is_new) {
      operations_.push_back(std::move(operation));
    } else {
      operations_[place->second].per_step += operation.per_step;
    }
  }
  std::vector<Operation> Take() { return std::move(operations_); }

 private:
  std::vector<Operation> operations_;
  std::map<std::string, size_t> index_;
};

Operation OptimizerOperation(const model::Workload& workload,
                             model::FusedAccess access) {
  Operation operation;
  operation.name = access == model::FusedAccess::kOneTensor
                       ? "optimizer, a launch a tensor"
                       : "optimizer";
  operation.phase = model::Phase::kOptimizer;
  operation.kind = KernelKind::kOptimizer;
  model::AppendOptimizerKernels(workload, operation.kernels, access);
  operation.per_step = 1;
  return operation;
}

}  // namespace

std::vector<Operation> OperationsOf(const model::Workload& workload,
                                    std::vector<std::string>* left_out,
                                    model::FusedAccess access) {
  const model::KernelList list = model::ExpandKernels(workload);
  OperationList operations;
  for (const model::Segment& segment : list.segments) {
    if (segment.phase == model::Phase::kOptimizer) {
      operations.Add(OptimizerOperation(workload, access));
      continue;
    }
    const std::span<const Kernel> all = list.Of(segment);
    for (size_t i = 0; i < all.size();) {
      const Kernel& kernel = all[i];
      const OperationRow* row = FindRow(workload, kernel, segment.phase);
      if (row == nullptr) {
        const std::string name(kernel.name.text());
        if (std::find(left_out->begin(), left_out->end(), name) ==
            left_out->end()) {
          left_out->push_back(name);
        }
        ++i;
        continue;
      }
      Operation operation;
      operation.name = row->operation;
      operation.phase = segment.phase;
      operation.kernels = KernelsOf(*row, all.subspan(i));
      i += operation.kernels.size();
      operation.per_step = segment.repeat *
                           model::PassesInStep(workload, segment) *
                           TakeRuns(operation.kernels);
      operation.kind = operation.kernels.back().kind;
      operations.Add(std::move(operation));
    }
  }
  return operations.Take();
}

Program ProgramOf(const Operation& operation,
                  const model::Workload& workload,
                  at::Device device,
                  model::FusedAccess access) {
  const at::NoGradGuard no_grad;
  const programs::Setting setting(operation, workload, device);
  if (operation.phase == model::Phase::kOptimizer) {
    return programs::OptimizerStep(setting, access);
  }
  const OperationRow* row =
      FindRow(workload, operation.kernels.front(), operation.phase);
  ENSURE(row != nullptr, "an operation that has a program");
  return row->make(setting);
}

}  // namespace trainfare::trainer
