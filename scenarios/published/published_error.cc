#include "scenarios/published/published_error.h"

#include "calibrate/records/import/published_quantity.h"
#include "model/error.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Published;
using calibrate::PublishedRow;
using calibrate::PublishedValue;

// Between the largest that ran and the next that was tried; twice the largest
// where that is not printed.
bool BatchIsRight(const Published& published,
                  const PublishedRow& row,
                  double value) {
  const double printed = row.value.low;
  if (row.quantity != "largest_batch") return value < printed;
  const std::string part = row.part ? "/" + *row.part : "";
  const PublishedRow* failing =
      published.Find(row.run + "/failing_batch" + part);
  const double next = failing != nullptr ? failing->value.low : 2 * printed;
  return value >= printed && value < next;
}

// Whether an answer from `low` to `high` is within what the figure is known to.
bool WithinDigits(const PublishedRow& row, double low, double high) {
  const PublishedValue& printed = row.value;
  // Printed digits are decimal: the last of them is not lost to rounding.
  const double known = printed.tolerance * (1 + 1e-9);
  switch (printed.kind) {
    case PublishedValue::Kind::kAtLeast:
      return high >= printed.low - known;
    case PublishedValue::Kind::kAtMost:
      return low <= printed.high + known;
    default:
      return low <= printed.high + known && high >= printed.low - known;
  }
}

}  // namespace

std::string_view ToText(PublishedMeasure measure) {
  switch (measure) {
    case PublishedMeasure::kPercent:
      return "percent";
    case PublishedMeasure::kPoints:
      return "points";
    case PublishedMeasure::kExact:
      return "exact";
    case PublishedMeasure::kOutcome:
      return "outcome";
    case PublishedMeasure::kBound:
      return "bound";
  }
  ENSURE(false, "a measure without a name");
}

PublishedMeasure MeasureOf(const PublishedRow& row,
                           const PublishedPrediction& prediction) {
  if (prediction.checks_data || row.quantity == "launches") {
    return PublishedMeasure::kExact;
  }
  switch (row.value.kind) {
    case PublishedValue::Kind::kOutcome:
      return PublishedMeasure::kOutcome;
    case PublishedValue::Kind::kAtLeast:
    case PublishedValue::Kind::kAtMost:
    case PublishedValue::Kind::kRange:
      return PublishedMeasure::kBound;
    case PublishedValue::Kind::kNumber:
      break;
  }
  if (row.quantity == "largest_batch" || row.quantity == "failing_batch") {
    return PublishedMeasure::kOutcome;
  }
  return row.measure->share ? PublishedMeasure::kPoints
                            : PublishedMeasure::kPercent;
}

std::optional<PublishedError> ErrorOf(const Published& published,
                                      const PublishedRow& row,
                                      const PublishedPrediction& prediction) {
  PublishedError error;
  error.measure = MeasureOf(row, prediction);
  const PublishedValue& printed = row.value;
  if (printed.kind == PublishedValue::Kind::kOutcome) {
    if (!prediction.answer.fits) return std::nullopt;
    error.right = *prediction.answer.fits == (printed.text == "fits");
    return error;
  }
  if (!prediction.answer.value) return std::nullopt;
  const double value = *prediction.answer.value;
  const double low = prediction.answer.low.value_or(value);
  const double high = prediction.answer.high.value_or(value);
  if (error.measure == PublishedMeasure::kOutcome) {
    error.right = BatchIsRight(published, row, value);
    error.error = 100.0 * (value / printed.low - 1.0);
    return error;
  }
  if (prediction.answer.low) error.covered = WithinDigits(row, low, high);
  if (error.measure == PublishedMeasure::kExact) {
    error.right = WithinDigits(row, low, high);
    // Some figures are cut at their last digit instead of rounded.
    if (value > printed.low) {
      error.right = error.right || value < printed.low + 2 * printed.tolerance;
    }
  } else {
    error.right = WithinDigits(row, value, value);
  }
  const bool bound = error.measure == PublishedMeasure::kBound;
  if (bound && error.right) return error;
  // How far past a bound, or from the figure.
  const double against =
      bound && value > printed.high ? printed.high : printed.low;
  error.error = error.measure == PublishedMeasure::kPoints
                    ? 100.0 * (value - against)
                    : 100.0 * (value / against - 1.0);
  return error;
}

}  // namespace trainfare::scenarios
