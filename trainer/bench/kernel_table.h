#pragma once

// Which operation a kernel of a step is, and the program that runs it.

#include <cstddef>
#include <span>
#include <string_view>

#include "model/kernel_list.h"
#include "model/kernel_name.h"
#include "model/workload.h"
#include "trainer/bench/programs/program.h"

namespace trainfare::trainer {

// One operation.
struct OperationRow {
  model::KernelName kernel;     // first of an operation's kernels
  model::KernelName following;  // the kernel that the same operation also is
  std::string_view operation;
  Program (*make)(const programs::Setting&);
  // How many kernels, of both names and one after another, make an operation;
  // the first is the first given. nullptr: one of each name.
  size_t (*count)(std::span<const model::Kernel>) = nullptr;
};

// nullptr: the kernel has no program of its own.
const OperationRow* FindRow(const model::Workload& workload,
                            const model::Kernel& kernel,
                            model::Phase phase);

}  // namespace trainfare::trainer
