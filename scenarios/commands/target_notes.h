#pragma once

// What is said of the devices a job is predicted on, whatever the job: the fit
// behind them, their links and their price.

#include <vector>

#include "scenarios/commands/prediction_target.h"
#include "scenarios/report/note.h"

namespace trainfare::scenarios {

void AddFitNotes(const PredictionTarget& target, std::vector<Note>& notes);

void AddLinkNotes(const PredictionTarget& target, std::vector<Note>& notes);

// `spot` was asked for.
void AddPriceNotes(const PredictionTarget& target,
                   bool spot,
                   std::vector<Note>& notes);

}  // namespace trainfare::scenarios
