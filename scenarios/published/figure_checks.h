#pragma once

// What a row's document computes its figure by (its `check`), worked out of the
// figures that are printed. It checks the data, and predicts nothing.

#include "calibrate/records/import/published.h"
#include "scenarios/published/published_answer.h"

namespace trainfare::scenarios {

// Whether all figures that the row's check needs are printed.
bool FiguresArePrinted(const calibrate::Published& published,
                       const calibrate::PublishedRow& row);

// In base units. Throws InputError where a figure is not printed or not stated.
PublishedAnswer CheckFigure(const calibrate::Published& published,
                            const calibrate::PublishedRow& row);

}  // namespace trainfare::scenarios
