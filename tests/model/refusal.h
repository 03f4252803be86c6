#pragma once

// What Validate() says against a workload, for tests; empty where nothing.

#include <string>

#include "model/error.h"
#include "model/validate.h"
#include "model/workload.h"

namespace trainfare::model {

inline std::string RefusalOf(const Workload& workload) {
  try {
    Validate(workload);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace trainfare::model
