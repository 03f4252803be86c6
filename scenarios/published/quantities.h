#pragma once

// What a printed quantity is of an estimate: one table, the only place that
// knows. What it is of other printed figures, or why nothing answers it, its
// document says (`checks`, `quantities`).

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "calibrate/fit/predictor.h"
#include "calibrate/records/import/published.h"
#include "scenarios/job/job_estimate.h"
#include "scenarios/published/published_answer.h"
#include "scenarios/published/published_job.h"

namespace trainfare::scenarios {

// What an answer may look at.
struct AskedJob {
  const calibrate::PublishedRow& row;
  const calibrate::PublishedRun& run;
  const calibrate::Predictor& predictor;
  const PublishedJob& job;
  const JobEstimate& estimate;
  // The estimate of another run, answered the same way.
  std::function<const JobEstimate&(const std::string& run)> other;
};

// How a job answers a quantity.
struct QuantityAnswer {
  std::string_view name;  // calibrate/records/import/published_quantity.h
  // The answer by an estimate that fits; times of one that does not are
  // refused.
  PublishedAnswer (*of_job)(const AskedJob& asked) = nullptr;
  // Whether the estimate says it of a job that does not fit, too.
  bool though_it_does_not_fit = false;
  // By which arithmetic it follows from figures of `predict`; empty: it is one.
  std::string_view derived = {};
};

// The answer of a quantity; without `of_job` where no job answers it.
const QuantityAnswer& AnswerOf(std::string_view quantity);

// As a person reads a figure of the row's quantity in base units.
std::string FigureText(const calibrate::PublishedRow& row, double value);

}  // namespace trainfare::scenarios
