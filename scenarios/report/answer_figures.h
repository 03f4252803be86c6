#pragma once

// The figures of an answer, once: the keys of JSON, the columns of tables and
// the descriptions of the JSON Schema are rows of one list, so that a new
// figure is a function and a row.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "scenarios/job/estimate.h"
#include "scenarios/job/pricing.h"
#include "scenarios/report/job_units.h"
#include "scenarios/report/table.h"

namespace trainfare::scenarios {

// What a figure is of.
struct Answered {
  const JobEstimate& job;
  std::optional<RunCost> cost = std::nullopt;  // absent: no price is known
  int64_t epochs = 1;
  // Of the device; absent where no figure that is asked for rests on it.
  std::optional<model::BytesPerSecond<>> memory_bandwidth = std::nullopt;
};

// Figures that stand beside each other, in JSON and in a table.
enum class FigurePart {
  kMemory,
  kStep,
  kEpoch,
  kRun,
  kSpeed,
  kWork,  // what a step is made of, which a single prediction has
  kEnergy,
  kCost
};

// The column of a figure in a table.
struct FigureColumn {
  std::string_view title = "";  // for people
  int drop = 0;                 // as of a Column
  Audience audience = Audience::kAll;
  Align align = Align::kDecimal;
  bool names_unit = true;  // its title does
};

struct AnswerFigure {
  FigurePart part;
  std::string_view key;    // in JSON and CSV, with its base unit
  std::string_view about;  // in the schema
  // In base units; nullopt: not known. Of a job that fits, but for kMemory.
  std::optional<double> (*of)(const Answered&);
  // What a person reads: in the unit of its column, or by itself.
  ColumnUnit JobUnits::*unit = nullptr;
  std::string (*text)(double) = nullptr;
  // Its column of predict's table; absent: JSON alone has it.
  std::optional<FigureColumn> column = std::nullopt;
};

// All of them, those of a part in order.
std::span<const AnswerFigure> AnswerFigures();
// Its key is one of theirs.
const AnswerFigure& FigureOf(std::string_view key);

// The heading of `column`, which is of `figure`.
Column ColumnOf(const AnswerFigure& figure,
                const FigureColumn& column,
                const JobUnits& units);
// nullopt: not known, or the job does not fit.
std::optional<double> ValueOf(const AnswerFigure& figure,
                              const Answered& answered);
// "-" for people, nothing for machines, where there is no value.
Cell CellOf(const AnswerFigure& figure,
            const Answered& answered,
            const JobUnits& units);

}  // namespace trainfare::scenarios
