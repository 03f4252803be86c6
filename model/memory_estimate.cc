#include "model/memory_estimate.h"

namespace trainfare::model {

Bytes<> MemoryEstimate::total() const {
  Bytes<> sum;
  for (const MemoryTerm& term : terms) sum += term.size;
  return sum;
}

Bytes<> MemoryEstimate::Of(std::string_view name) const {
  Bytes<> sum;
  for (const MemoryTerm& term : terms) {
    if (term.name == name) sum += term.size;
  }
  return sum;
}

}  // namespace trainfare::model
