#pragma once

// What is said of the devices a job is predicted on, whatever the job: the fit
// behind them, their links and their price.

#include <vector>

#include "scenarios/commands/prediction_target.h"
#include "scenarios/report/note.h"

namespace trainfare::scenarios {

void AddFitNotes(const PredictionTarget& target, std::vector<Note>& notes);

// But of a network that nobody named, which stands before all others.
void AddLinkNotes(const PredictionTarget& target, std::vector<Note>& notes);

// Of `jobs` there; `spot` was asked for.
void AddPriceNotes(const PredictionTarget& target,
                   const std::vector<JobEstimate>& jobs,
                   bool spot,
                   std::vector<Note>& notes);

}  // namespace trainfare::scenarios
