#pragma once

// Arithmetic on printed figures: costs, scores, facts of devices, a recursion
// over printed layers. It checks the data, and predicts nothing.

#include "calibrate/records/import/published.h"
#include "scenarios/published/published_answer.h"

namespace trainfare::scenarios {

// Each throws InputError where a figure that it needs is not printed.
using FigureCheck = PublishedAnswer(const calibrate::Published& published,
                                    const calibrate::PublishedRow& row);

FigureCheck CheckPrice;             // of the run
FigureCheck CheckBillingUnitPrice;  // price over units an hour
FigureCheck CheckBillingUnits;      // price over that of a unit
FigureCheck CheckEpochCost;         // printed time of an epoch at the price
// Epochs times the printed cost of one, else the printed time at the price.
FigureCheck CheckCost;
FigureCheck CheckScore;          // weights, of the run named by the part
FigureCheck CheckNormalised;     // over the largest of all runs that have one
FigureCheck CheckEpochTime;      // the printed time of the run over its epochs
FigureCheck CheckLatency;        // of a batch at the printed rate
FigureCheck CheckOnChipLatency;  // the same without the host
FigureCheck CheckTokenRate;      // the printed rate times the length
FigureCheck CheckSamples;        // steps times batch
FigureCheck CheckBandwidth;      // these and the following: the device file
FigureCheck CheckPeak;
FigureCheck CheckMatrixRows;
FigureCheck CheckMatrixColumns;
FigureCheck CheckCapacity;
// OverlapBackward (model/overlap.h) over the run's own printed layers.
FigureCheck CheckRecursion;
FigureCheck CheckEstimateError;  // of it against the printed backward pass

}  // namespace trainfare::scenarios
