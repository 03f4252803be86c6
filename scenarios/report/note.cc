#include "scenarios/report/note.h"

#include "model/error.h"

namespace trainfare::scenarios {

std::string_view ToText(Caution caution) {
  switch (caution) {
    case Caution::kNone:
      break;
    case Caution::kBatchBeyondEpoch:
      return "batch_beyond_epoch";
    case Caution::kCannotRun:
      return "cannot_run";
    case Caution::kCheckpointAssumed:
      return "checkpoint_assumed";
    case Caution::kCloudUnknown:
      return "cloud_unknown";
    case Caution::kCompileTimeUnknown:
      return "compile_time_unknown";
    case Caution::kCompilerSwaps:
      return "compiler_swaps";
    case Caution::kDeadlineInInterval:
      return "deadline_in_interval";
    case Caution::kEnergyIsBound:
      return "energy_is_bound";
    case Caution::kFileCutOff:
      return "file_cut_off";
    case Caution::kFitOfFewFigures:
      return "fit_of_few_figures";
    case Caution::kFitUnreadable:
      return "fit_unreadable";
    case Caution::kLengthBeyondPositions:
      return "length_beyond_positions";
    case Caution::kMemoryInInterval:
      return "memory_in_interval";
    case Caution::kNetworkUnnamed:
      return "network_unnamed";
    case Caution::kPriceDoubtful:
      return "price_doubtful";
    case Caution::kPriceOld:
      return "price_old";
    case Caution::kPriceUnknown:
      return "price_unknown";
    case Caution::kRowsDropped:
      return "rows_dropped";
    case Caution::kRowsMissed:
      return "rows_missed";
    case Caution::kRowsOfTheFit:
      return "rows_of_the_fit";
    case Caution::kRowsSkipped:
      return "rows_skipped";
    case Caution::kSourceUnseen:
      return "source_unseen";
    case Caution::kStartUpAssumed:
      return "start_up_assumed";
  }
  ENSURE(false, "a caution without a code");
}

std::vector<Note> NotesOf(const std::vector<std::string>& lines,
                          Caution caution) {
  std::vector<Note> notes;
  for (const std::string& line : lines) notes.emplace_back(line, caution);
  return notes;
}

}  // namespace trainfare::scenarios
