#pragma once

// A line beside an answer: what it rests on, or what is wrong with it.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainfare::scenarios {

// What a reader of the machine formats can act on. The words of a line may
// change, these may not: scenarios/report/schema/common.1.schema.json has them.
enum class Caution {
  kNone,
  kBatchBeyondEpoch,
  kCannotRun,
  kCheckpointAssumed,
  kCloudUnknown,
  kCompileTimeUnknown,
  kCompilerSwaps,
  kDeadlineInInterval,
  kEnergyIsBound,
  kFileCutOff,
  kFitOfFewFigures,
  kFitUnreadable,
  kLengthBeyondPositions,
  kMemoryInInterval,
  kNetworkUnnamed,
  kPriceDoubtful,
  kPriceOld,
  kPriceUnknown,
  kRowsDropped,
  kRowsMissed,
  kRowsOfTheFit,
  kRowsSkipped,
  kSourceUnseen,
  kStartUpAssumed,
};
// "start_up_assumed"; of kNone nothing is written.
std::string_view ToText(Caution caution);

struct Note {
  // NOLINTNEXTLINE(google-explicit-constructor): a line is its own note.
  Note(std::string words) : text(std::move(words)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Note(const char* words) : text(words) {}
  Note(std::string_view words, Caution what) : text(words), caution(what) {}

  bool operator==(const Note&) const = default;

  std::string text;
  Caution caution = Caution::kNone;  // kNone: a fact, nothing to act on
};

// The same caution for each.
std::vector<Note> NotesOf(const std::vector<std::string>& lines,
                          Caution caution);

}  // namespace trainfare::scenarios
