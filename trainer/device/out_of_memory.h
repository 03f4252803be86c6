#pragma once

#include <exception>
#include <string>

#include "model/error.h"
#include "model/workload.h"

namespace trainfare::trainer {

bool IsOutOfMemory(const std::exception& error);

// One line: what was asked for, what the memory model says it takes, and what
// the allocator said.
std::string OutOfMemoryText(const model::Workload& workload,
                            const std::string& device,
                            const std::exception& error);

// What `body` returns. Throws InputError with that line where it finds no
// memory.
template <class Body>
auto WithMemoryReport(const model::Workload& workload,
                      const std::string& device,
                      const Body& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    if (!IsOutOfMemory(error)) throw;
    throw model::InputError(OutOfMemoryText(workload, device, error));
  }
}

}  // namespace trainfare::trainer
