#pragma once

#include <exception>
#include <string>

#include "model/error.h"
#include "model/workload.h"

namespace trainfare::trainer {

// A step that found no memory. Of several ranks one alone may meet it.
class OutOfMemory : public model::InputError {
 public:
  using InputError::InputError;
};

bool IsOutOfMemory(const std::exception& error);

// One line: what was asked for, what the memory model says it takes, and what
// the allocator said.
std::string OutOfMemoryText(const model::Workload& workload,
                            const std::string& device,
                            const std::exception& error);

// What `body` returns. Throws OutOfMemory with that line where it finds none.
template <class Body>
auto WithMemoryReport(const model::Workload& workload,
                      const std::string& device,
                      const Body& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    if (!IsOutOfMemory(error)) throw;
    throw OutOfMemory(OutOfMemoryText(workload, device, error));
  }
}

}  // namespace trainfare::trainer
