#pragma once

namespace trainfare::hardware {

// Where something stands in a text; both count from 1.
struct JsonPlace {
  int line = 0;
  int column = 0;
};

}  // namespace trainfare::hardware
