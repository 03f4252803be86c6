#include "scenarios/validation/power_validation.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/records/statistics.h"
#include "hardware/files/unit_text.h"
#include "model/units.h"
#include "scenarios/validation/error_summary.h"
#include "scenarios/validation/summary_json.h"

namespace trainfare::scenarios {
namespace {

// The error of an answer whose interval is as many standard deviations wide as
// that of a normal one.
RowError ErrorOf(double predicted, double measured, double log_sigma) {
  const double off = std::log(predicted / measured);
  return {100.0 * (predicted / measured - 1.0),
          std::abs(off) <= calibrate::kNormalQuantile90 * log_sigma,
          std::abs(off) <= calibrate::kNormalQuantile975 * log_sigma};
}

struct PowerTally {
  ErrorGroups groups;  // power and energy
  std::vector<RowError> powers;
  std::vector<RowError> energies;
  int64_t skipped = 0;  // rows whose power is not predicted
  Json rows = Json::array();
};

void Add(const StepRow& row, const std::string& group, PowerTally& tally) {
  const calibrate::Observation& o = *row.observation;
  const double measured = ToWatts(row.power->measured);
  const double predicted = ToWatts(row.predicted_power->mean);
  const double sigma = row.predicted_power->log_sigma;
  const RowError power = ErrorOf(predicted, measured, sigma);
  const double energy = predicted * ToSeconds(*row.predicted);
  const double measured_energy = measured * ToSeconds(o.measured);
  const RowError of_energy =
      ErrorOf(energy, measured_energy, std::hypot(sigma, row.log_sigma));
  tally.powers.push_back(power);
  tally.energies.push_back(of_energy);
  tally.groups[group + ", power"].push_back(power);
  tally.groups[group + ", energy"].push_back(of_energy);
  tally.rows.push_back({{"label", o.name()},
                        {"group", group},
                        {"batch", o.workload.batch},
                        {"power_limit_w", ToWatts(o.workload.power_limit)},
                        {"measured_w", measured},
                        {"predicted_w", predicted},
                        {"measured_j", measured_energy},
                        {"predicted_j", energy},
                        {"power_error_percent", power.error},
                        {"energy_error_percent", of_energy.error},
                        {"time_error_percent", row.Error().error}});
}

PowerTally TallyOf(const StepValidation& validation,
                   const ValidateOptions& options) {
  PowerTally tally;
  const bool drawn = options.protocol == Protocol::kRunsPerDevice;
  for (const StepRow& row : validation.rows) {
    if (row.power == nullptr || !row.asked || (row.fitted && drawn)) continue;
    if (!row.predicted || !row.predicted_power) {
      ++tally.skipped;
      continue;
    }
    Add(row,
        GroupOf(
            *row.observation, validation.DeviceOf(row)->name, options.group_by),
        tally);
  }
  return tally;
}

}  // namespace

void AppendPower(const StepValidation& validation,
                 const ValidateOptions& options,
                 Report& report,
                 Json& json) {
  PowerTally tally = TallyOf(validation, options);
  if (tally.skipped > 0) {
    report.notes.emplace_back(
        fmt::format("{} of power skipped: what the device draws is not known, "
                    "or its time is not predicted",
                    hardware::Plural(tally.skipped, "row")),
        Caution::kRowsSkipped);
  }
  if (tally.powers.empty()) return;
  const ErrorSummary power = Summarise(tally.powers);
  const ErrorSummary energy = Summarise(tally.energies);
  report.tables.push_back(
      SummaryTable("of a device",
                   tally.groups,
                   {{"all, power", power}, {"all, energy", energy}}));
  Json result;
  result["power"] = ToJson(power);
  result["energy"] = ToJson(energy);
  result["groups"] = GroupList(tally.groups);
  result["rows"] = std::move(tally.rows);
  json["power"] = std::move(result);
}

}  // namespace trainfare::scenarios
