#include "hardware/files/foreign_text.h"

#include <utf8proc.h>

#include <algorithm>

namespace trainfare::hardware {
namespace {

struct Character {
  utf8proc_int32_t point = -1;  // negative: no UTF-8
  size_t size = 1;
};

// The first of `text`, which is not empty.
Character First(std::string_view text) {
  Character first;
  const utf8proc_ssize_t size = utf8proc_iterate(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(std::min<size_t>(text.size(), 4)),
      &first.point);
  if (size <= 0) return {};
  first.size = static_cast<size_t>(size);
  return first;
}

bool Harmless(utf8proc_int32_t point) {
  // Marks that order what follows from right to left, and their ends.
  const bool turns = point == 0x61c || (point >= 0x200e && point <= 0x200f) ||
                     (point >= 0x202a && point <= 0x202e) ||
                     (point >= 0x2066 && point <= 0x2069);
  switch (utf8proc_category(point)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CS:
      return false;
    default:
      return !turns;
  }
}

size_t Columns(const Character& character) {
  if (character.point < 0) return 1;
  return static_cast<size_t>(std::max(utf8proc_charwidth(character.point), 0));
}

}  // namespace

std::string OneLine(std::string_view text, size_t most) {
  std::string line;
  while (!text.empty()) {
    const Character next = First(text);
    if (line.size() + next.size > most) return line + "...";
    if (next.point == '\n' || next.point == '\t' || next.point == '\r') {
      line += ' ';
    } else if (next.point >= 0 && Harmless(next.point)) {
      line += text.substr(0, next.size);
    } else {
      line += '?';
    }
    text.remove_prefix(next.size);
  }
  return line;
}

size_t CharacterSize(std::string_view text) {
  if (text.empty()) return 0;
  const Character first = First(text);
  return first.point < 0 ? 0 : first.size;
}

size_t DisplayWidth(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const Character next = First(text);
    columns += Columns(next);
    text.remove_prefix(next.size);
  }
  return columns;
}

std::string_view CutToWidth(std::string_view text, size_t columns) {
  size_t used = 0;
  size_t end = 0;
  while (end < text.size()) {
    const Character next = First(text.substr(end));
    used += Columns(next);
    if (used > columns) break;
    end += next.size;
  }
  return text.substr(0, end);
}

}  // namespace trainfare::hardware
