// A table as aligned text. In a terminal it keeps to the width: columns are
// left out by their priority, cells go on below, and where even that is too
// wide every row becomes lines of its own.

#include <fmt/format.h>

#include <algorithm>

#include "hardware/files/foreign_text.h"
#include "hardware/files/terminal.h"
#include "scenarios/report/table.h"

namespace trainfare::scenarios {
namespace {

constexpr size_t kGap = 2;
// A column of words that is narrower than this reads badly: others are left out
// before it is.
constexpr size_t kReadable = 24;
// The last one takes what is left of a line; as reasons do, it may go on below.
constexpr size_t kReadableLast = 12;
// Lines of a last cell in its own column where that reads badly; a longer one
// goes on below all of them.
constexpr size_t kMostInPlace = 3;
constexpr size_t kBelowIndent = 6;
// Words are broken only where they are longer.
constexpr size_t kLongestWord = 16;

size_t Width(std::string_view text) { return hardware::DisplayWidth(text); }

size_t LongestWord(std::string_view text) {
  size_t longest = 0;
  for (const std::string& word : hardware::LinesOf(text, 1)) {
    longest = std::max(longest, Width(word));
  }
  return std::min(longest, kLongestWord);
}

// Columns in front of the decimal point of the first number in `text`.
size_t BeforePoint(std::string_view text) {
  const size_t point = text.find('.');
  if (point != std::string_view::npos) return Width(text.substr(0, point));
  const size_t unit = text.find(' ');
  return Width(text.substr(0, unit));
}

std::string Padded(const std::string& text, size_t before, size_t width) {
  const size_t used = before + Width(text);
  return std::string(before, ' ') + text +
         std::string(width > used ? width - used : 0, ' ');
}

std::string TrimRight(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// A column that is shown.
struct ColumnPlace {
  const Column* column = nullptr;
  size_t index = 0;     // of it in the table
  size_t before = 0;    // columns in front of the decimal point
  size_t least = 0;     // without breaking a number or a usual word
  size_t readable = 0;  // that it is narrowed to before others are left out
  size_t width = 0;
};

ColumnPlace PlaceOf(const Table& table, size_t index) {
  const Column& column = table.columns[index];
  ColumnPlace place{&column, index};
  const bool words = column.align == Align::kLeft;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (table.elided.contains(r)) continue;
    place.before =
        std::max(place.before, BeforePoint(table.rows[r][index].text));
  }
  place.width = Width(column.title);
  place.least = LongestWord(column.title);
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (table.elided.contains(r)) continue;
    const std::string& text = table.rows[r][index].text;
    const size_t shift =
        column.align == Align::kDecimal ? place.before - BeforePoint(text) : 0;
    place.width = std::max(place.width, shift + Width(text));
    place.least =
        std::max(place.least, words ? LongestWord(text) : shift + Width(text));
  }
  place.readable = words
                       ? std::min(place.width, std::max(place.least, kReadable))
                       : place.width;
  return place;
}

class TextLayout {
 public:
  TextLayout(const Table& table, std::optional<size_t> width) : width_(width) {
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (table.columns[c].audience == Audience::kMachines) continue;
      places_.push_back(PlaceOf(table, c));
    }
    if (!width || places_.empty()) return;
    ColumnPlace& last = places_.back();
    last.readable =
        std::min(last.readable, std::max(last.least, kReadableLast));
    while (Taken(&ColumnPlace::readable) > *width && DropOne()) {
    }
    if (Taken(&ColumnPlace::readable) > *width) BreakTitles();
    NarrowTo(&ColumnPlace::readable);
    NarrowTo(&ColumnPlace::least);
  }

  // Whether a line holds all that stays of a row.
  bool Fits() const { return !width_ || Taken(&ColumnPlace::width) <= *width_; }
  size_t RuleWidth() const { return Taken(&ColumnPlace::width); }

  std::string Titles() const {
    std::vector<std::vector<std::string>> parts;
    for (const ColumnPlace& place : places_) {
      parts.push_back(Parts(place.column->title, place));
    }
    std::string out;
    for (const std::string& line : Joined(parts, /*titles=*/true)) out += line;
    return out;
  }

  // The lines of a row, each with its line feed.
  std::vector<std::string> RowLines(const std::vector<Cell>& row) const {
    if (!Fits()) return Stacked(row);
    std::vector<std::vector<std::string>> parts;
    for (const ColumnPlace& place : places_) {
      const std::string& text = row[place.index].text;
      parts.push_back(place.column->align == Align::kLeft
                          ? Parts(text, place)
                          : std::vector<std::string>{text});
    }
    std::vector<std::string> below;
    if (!parts.empty() && parts.back().size() > kMostInPlace &&
        places_.back().width < kReadable) {
      below = Below(row[places_.back().index].text, parts.back());
    }
    std::vector<std::string> lines = Joined(parts, /*titles=*/false);
    lines.insert(lines.end(), below.begin(), below.end());
    return lines;
  }

 private:
  size_t Taken(size_t ColumnPlace::*width) const {
    size_t taken = 0;
    for (const ColumnPlace& place : places_) {
      taken +=
          place.*width + (taken == 0 && &place == &places_.front() ? 0 : kGap);
    }
    return taken;
  }

  // Leaves out the columns that are to go next; false: none is.
  bool DropOne() {
    int most = 0;
    for (const ColumnPlace& place : places_) {
      most = std::max(most, place.column->drop);
    }
    if (most == 0) return false;
    std::erase_if(places_,
                  [&](const ColumnPlace& p) { return p.column->drop == most; });
    return true;
  }

  // Titles over numbers take several lines, so that there is more for words.
  void BreakTitles() {
    for (ColumnPlace& place : places_) {
      if (place.column->align == Align::kLeft) continue;
      place.width = place.readable = place.least;
    }
  }

  // Takes from the column that has most above its bound, until a line holds
  // all or nothing is left to take.
  void NarrowTo(size_t ColumnPlace::*bound) {
    const auto spare = [&](const ColumnPlace& place) {
      return place.width - std::min(place.width, place.*bound);
    };
    while (Taken(&ColumnPlace::width) > *width_) {
      const auto most =
          std::max_element(places_.begin(),
                           places_.end(),
                           [&](const ColumnPlace& a, const ColumnPlace& b) {
                             return spare(a) < spare(b);
                           });
      if (most == places_.end() || spare(*most) == 0) return;
      --most->width;
    }
  }

  static std::vector<std::string> Parts(const std::string& text,
                                        const ColumnPlace& place) {
    if (Width(text) <= place.width) return {text};
    return hardware::LinesOf(
        text, place.width, "", hardware::LongWords::kBreak);
  }

  // What of the last cell is behind its first part, which alone stays in
  // `parts`: lines as wide as there is room.
  std::vector<std::string> Below(const std::string& text,
                                 std::vector<std::string>& parts) const {
    parts.resize(1);
    std::string rest = text.substr(parts.front().size());
    rest.erase(0, rest.find_first_not_of(' '));
    std::vector<std::string> lines;
    const std::string indent(kBelowIndent, ' ');
    for (const std::string& line : hardware::LinesOf(
             indent + rest, *width_, indent, hardware::LongWords::kBreak)) {
      lines.push_back(line + "\n");
    }
    return lines;
  }

  // The parts of cells beside each other; a cell that has no more is blank.
  std::vector<std::string> Joined(
      const std::vector<std::vector<std::string>>& parts, bool titles) const {
    size_t height = 1;
    for (const auto& cell : parts) height = std::max(height, cell.size());
    std::vector<std::string> lines;
    for (size_t l = 0; l < height; ++l) {
      std::string line;
      for (size_t p = 0; p < places_.size(); ++p) {
        if (p > 0) line += std::string(kGap, ' ');
        line += l < parts[p].size() ? InPlace(parts[p][l], places_[p], titles)
                                    : std::string(places_[p].width, ' ');
      }
      lines.push_back(TrimRight(line) + "\n");
    }
    return lines;
  }

  static std::string InPlace(const std::string& text,
                             const ColumnPlace& place,
                             bool is_title) {
    switch (place.column->align) {
      case Align::kLeft:
        break;
      case Align::kRight:
        return Padded(text,
                      place.width > Width(text) ? place.width - Width(text) : 0,
                      place.width);
      case Align::kDecimal:
        if (!is_title) {
          return Padded(text, place.before - BeforePoint(text), place.width);
        }
        break;
    }
    return Padded(text, 0, place.width);
  }

  // A line for each cell, behind its title.
  std::vector<std::string> Stacked(const std::vector<Cell>& row) const {
    std::vector<std::string> lines;
    for (const ColumnPlace& place : places_) {
      const std::string& text = row[place.index].text;
      if (text.empty()) continue;
      const std::string& title = place.column->title;
      std::string line = lines.empty() ? "" : "  ";
      if (!title.empty()) line += title + ": ";
      line += text;
      for (const std::string& part : hardware::LinesOf(
               line, *width_, "    ", hardware::LongWords::kBreak)) {
        lines.push_back(part + "\n");
      }
    }
    return lines;
  }

  std::optional<size_t> width_;
  std::vector<ColumnPlace> places_;
};

}  // namespace

std::string TextTable(const Table& given,
                      std::optional<size_t> width,
                      bool colour) {
  Table table = given;
  for (auto& row : table.rows) {
    for (Cell& cell : row) {
      cell.text = hardware::OneLine(cell.text, std::string::npos);
    }
  }
  const TextLayout layout(table, width);
  std::string out;
  if (!table.title.empty()) out += hardware::Wrapped(table.title, width, "  ");
  if (layout.Fits()) {
    out += layout.Titles();
    out += std::string(layout.RuleWidth(), '-') + "\n";
  }
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (table.elided.contains(r)) continue;
    for (std::string line : layout.RowLines(table.rows[r])) {
      if (table.marked == r && colour) {
        line.pop_back();
        line = fmt::format("\x1b[1m{}\x1b[0m\n", line);
      }
      out += line;
    }
  }
  if (!table.rest.empty()) out += hardware::Wrapped(table.rest, width, "");
  return out;
}

}  // namespace trainfare::scenarios
