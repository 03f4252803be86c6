#include "trainer/device/out_of_memory.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "model/memory.h"
#include "trainer/runtime/failure.h"

namespace trainfare::trainer {

bool IsOutOfMemory(const std::exception& error) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
}

std::string OutOfMemoryText(const model::Workload& w,
                            const std::string& device,
                            const std::exception& error) {
  const model::MemoryEstimate estimate = model::EstimateMemory(w, {});
  const auto gigabytes = [](model::Bytes<> size) { return size.base() / 1e9; };
  const auto largest = std::max_element(
      estimate.terms.begin(),
      estimate.terms.end(),
      [](const auto& a, const auto& b) { return a.size < b.size; });
  std::string lengths = std::to_string(w.sequence_length);
  if (w.target_length > 0) lengths += fmt::format(" + {}", w.target_length);
  return fmt::format(
      "out of memory: {}, batch {} x {}, {}, {} {}, {} and {} on {}; the "
      "memory model says {:.1f} GB of tensors at the {}, most of it {} ({:.1f} "
      "GB); the allocator: {}",
      w.architecture.name,
      w.batch,
      lengths,
      model::ToText(w.precision),
      model::ToText(w.optimizer.kind),
      model::ToText(w.optimizer.implementation),
      model::ToText(w.stack.fusion),
      model::ToText(w.stack.attention),
      device,
      gigabytes(estimate.total()),
      model::ToText(estimate.moment),
      largest->name,
      gigabytes(largest->size),
      FirstLine(error));
}

}  // namespace trainfare::trainer
