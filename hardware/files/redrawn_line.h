#pragma once

// One line of a terminal that is drawn anew in its place.

#include <cstddef>
#include <ostream>
#include <string>

namespace trainfare::hardware {

class RedrawnLine {
 public:
  explicit RedrawnLine(std::ostream& out) : out_(&out) {}
  ~RedrawnLine() { Clear(); }
  RedrawnLine(const RedrawnLine&) = delete;
  RedrawnLine& operator=(const RedrawnLine&) = delete;

  // Over what was drawn before, cut to a terminal's width.
  void Draw(const std::string& text);
  void Clear();

 private:
  std::ostream* out_;
  size_t drawn_ = 0;  // columns
};

}  // namespace trainfare::hardware
