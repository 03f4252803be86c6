#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "calibrate/fit/fit.h"
#include "hardware/files/date.h"
#include "hardware/files/unit_text.h"
#include "model/trainable.h"
#include "scenarios/commands/job_notes.h"
#include "scenarios/commands/largest.h"
#include "scenarios/commands/prediction_report.h"
#include "scenarios/job/energy.h"
#include "scenarios/job/memory_range.h"
#include "scenarios/job/open_times.h"
#include "scenarios/report/column_unit.h"
#include "scenarios/report/job_units.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatBytes;
using hardware::FormatTime;

std::string Interval(model::Seconds<> low, model::Seconds<> high) {
  return fmt::format("{} .. {}", FormatTime(low), FormatTime(high));
}

// The answer about one job in a line.
std::string Answer(const PredictionTarget& target,
                   const JobEstimate& job,
                   const Scenario& scenario) {
  if (!job.fits()) {
    if (job.memory.total() <= job.capacity) {
      return fmt::format("{} {}", scenario.title, job.Obstacle());
    }
    return fmt::format("{} does not fit {}: it needs {}, {} more than there is",
                       scenario.title,
                       target.predictor.device().name,
                       FormatBytes(job.memory.total()),
                       FormatBytes(job.memory.total() - job.capacity));
  }
  std::string line = fmt::format("{} takes {} (80 % interval {}{}) on {}",
                                 scenario.title,
                                 FormatTime(job.run.total()),
                                 Interval(job.run_low, job.run_high),
                                 StartUpWords(job),
                                 TargetName(target));
  if (const auto cost = CostOf(job, target.tariff)) {
    line += fmt::format(" and costs {} (80 % interval {} .. {})",
                        hardware::FormatMoney(cost->usual),
                        hardware::FormatMoney(cost->low),
                        hardware::FormatMoney(cost->high));
  }
  if (const auto energy = EnergyRangeOf(job)) {
    const ColumnUnit unit = UnitsOf({&job}).energy;
    const auto text = [&](model::Joules<> one) {
      return unit.Text(ToJoules(one));
    };
    line += fmt::format("; {} {} ({} .. {})",
                        text(*job.energy),
                        unit.name,
                        text(energy->low),
                        text(energy->high));
  }
  const MemoryRange memory = MemoryRangeOf(job.memory, job.capacity);
  line += fmt::format("; {} a device ({} .. {})",
                      FormatBytes(job.memory.total()),
                      FormatBytes(memory.low),
                      FormatBytes(memory.high));
  return line;
}

// ", of 2026-11-28"; empty: the fit does not say when it was made.
std::string DayOf(const calibrate::Provenance& of) {
  constexpr size_t kDay = std::string_view("2026-11-28").size();
  return hardware::TimeFromText(of.date) ? ", of " + of.date.substr(0, kDay)
                                         : "";
}

// "fit l4: 12 runs, off by 3.1 % when left out, of 2026-11-28".
std::string GroundName(const PredictionTarget& target) {
  if (target.fit_name.empty()) {
    return "no fit: datasheet and priors of its kind";
  }
  const calibrate::Provenance& of = target.predictor.fit().provenance;
  const auto error = LeftOutError(target);
  return fmt::format(
      "fit {}: {}{}{}",
      target.fit_name,
      hardware::Plural(of.runs, "run"),
      error ? fmt::format(", off by {:.1f} % when left out", 100.0 * *error)
            : "",
      DayOf(of));
}

// "llama-3.1-8b (8.03 B parameters, 6.82 M trained)".
std::string ModelText(const model::Workload& workload) {
  std::string text = fmt::format(
      "{} ({} parameters",
      workload.architecture.name,
      ParametersText(model::TotalParameters(workload.architecture)));
  if (!workload.trainable.everything()) {
    text += fmt::format(", {} trained",
                        ParametersText(model::TrainableParameters(workload)));
  }
  return text + ")";
}

std::string SettingsLine(const std::vector<PredictionTarget>& targets,
                         const std::vector<Scenario>& variants) {
  const model::Workload& workload = variants.front().workload;
  std::vector<std::string_view> precisions;
  for (const Scenario& variant : variants) {
    const std::string_view name = model::ToText(variant.workload.precision);
    if (std::find(precisions.begin(), precisions.end(), name) ==
        precisions.end()) {
      precisions.push_back(name);
    }
  }
  std::string line = fmt::format("{}, {}, {}, {}, {} attention{}",
                                 ModelText(workload),
                                 fmt::join(precisions, " and "),
                                 DescribeUpdate(workload),
                                 DescribeStack(workload),
                                 model::ToText(workload.stack.attention),
                                 DropoutWords(workload));
  if (targets.size() == 1) line += "; " + GroundName(targets.front());
  return line;
}

// "fits up to batch 9, or length 65536 at batch 1"; "any batch fits, ..".
std::string RoomLine(const PredictionTarget& target,
                     const Scenario& scenario,
                     const JobEstimate& job) {
  const int64_t batch = job.largest_batch.value_or(job.workload.batch);
  std::string line =
      job.any_batch
          ? fmt::format("any batch fits, {} is the largest that can be counted",
                        batch)
          : fmt::format("fits up to batch {}", batch);
  if (scenario.padding.kind == PaddingKind::kStatic) {
    line += fmt::format("{} length {} at batch {}",
                        job.any_batch ? "; up to" : ", or",
                        LargestOf(Largest::kLength, scenario, target),
                        job.workload.batch);
  }
  return line;
}

}  // namespace

std::string ParametersText(int64_t parameters) {
  const auto number = static_cast<double>(parameters);
  return number < 1e9 ? fmt::format("{:.3g} M", number / 1e6)
                      : fmt::format("{:.3g} B", number / 1e9);
}

std::vector<std::string> HeadlineOf(
    const std::vector<PredictionTarget>& targets,
    const std::vector<Prediction>& predictions,
    const std::vector<Scenario>& variants) {
  const Scenario& first = variants.front();
  const PredictionTarget& target = *predictions.front().target;
  const JobEstimate& job = predictions.front().job;
  const bool one = predictions.size() == 1;
  std::vector<std::string> lines = {
      one ? Answer(target, job, first)
          : fmt::format("{} on {}", first.title, NamesOf(targets)),
      SettingsLine(targets, variants)};
  if (one && job.fits()) lines.push_back(RoomLine(target, first, job));
  return lines;
}

}  // namespace trainfare::scenarios
