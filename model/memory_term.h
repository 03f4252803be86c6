#pragma once

#include <string_view>

#include "model/units.h"

namespace trainfare::model {

// A part of what a memory holds.
struct MemoryTerm {
  std::string_view name;
  Bytes<> size;
};

}  // namespace trainfare::model
