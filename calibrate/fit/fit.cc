#include "calibrate/fit/fit.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace trainfare::calibrate {

FittedRange RangeOver(const std::vector<const model::Workload*>& workloads) {
  FittedRange range;
  std::set<std::string> settings;
  bool first = true;
  for (const model::Workload* w : workloads) {
    const auto extend = [&](int64_t value, int64_t& low, int64_t& high) {
      low = first ? value : std::min(low, value);
      high = first ? value : std::max(high, value);
    };
    extend(w->tokens(), range.min_tokens, range.max_tokens);
    extend(w->sequence_length,
           range.min_sequence_length,
           range.max_sequence_length);
    extend(model::TotalParameters(w->architecture),
           range.min_parameters,
           range.max_parameters);
    settings.insert(SettingsOf(*w));
    first = false;
  }
  range.settings.assign(settings.begin(), settings.end());
  return range;
}

std::vector<const FittedRun*> Fit::ChiefRuns() const {
  const bool steps =
      std::any_of(runs.begin(), runs.end(), [](const FittedRun& run) {
        return run.quantity == Quantity::kStep && !run.added;
      });
  std::vector<const FittedRun*> chief;
  for (const FittedRun& run : runs) {
    if (!run.place || run.added) continue;
    if (!steps || run.quantity == Quantity::kStep) chief.push_back(&run);
  }
  return chief;
}

namespace {

Discrepancy DiscrepancyBy(const std::vector<const FittedRun*>& runs) {
  std::vector<Place> places;
  std::vector<double> residuals;
  for (const FittedRun* run : runs) {
    places.push_back(*run->place);
    residuals.push_back(std::log(run->modelled / run->measured));
  }
  return {places, std::move(residuals)};
}

}  // namespace

Discrepancy Fit::ModelDiscrepancy() const { return DiscrepancyBy(ChiefRuns()); }

std::optional<Discrepancy> Fit::DiscrepancyOfOne() const {
  std::vector<const FittedRun*> chief = ChiefRuns();
  const size_t all = chief.size();
  std::erase_if(chief, [](const FittedRun* run) { return run->ranks > 1; });
  if (chief.empty() || chief.size() == all) return std::nullopt;
  return DiscrepancyBy(chief);
}

std::optional<double> Fit::LeftOutError() const {
  return provenance.runs > 1 ? leave_one_out_error : std::nullopt;
}

std::vector<double> Fit::Values() const {
  std::vector<double> values;
  values.reserve(parameters.size());
  for (const FittedParameter& parameter : parameters) {
    values.push_back(parameter.value);
  }
  return values;
}

}  // namespace trainfare::calibrate
