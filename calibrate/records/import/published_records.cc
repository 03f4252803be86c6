#include "calibrate/records/import/published_records.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "calibrate/records/assumed.h"
#include "hardware/catalog/device.h"
#include "model/error.h"
#include "model/kernels.h"

namespace trainfare::calibrate {
namespace {

using hardware::Device;
using hardware::DeviceCatalog;
using model::InputError;
using model::Seconds;

// Printed figures are known to their digits, and a run repeated by the same
// people differs by as much.
constexpr double kRepeatNoise = 0.01;

struct Figure {
  Quantity quantity = Quantity::kStep;
  Seconds<> time;
};

// What a row says of the time of a step, or of a phase of it.
std::optional<Figure> FigureOf(const Published& published,
                               const PublishedRow& row,
                               const model::Workload& workload,
                               const KeepRun& keep) {
  const PublishedRun& run = published.RunOf(row);
  const double value = row.value.low;
  const auto samples = static_cast<double>(
      workload.batch * workload.accumulation * run.device_count);
  const std::string& quantity = row.quantity;
  if (quantity == "run_time") {
    const model::RunPlan plan = PlanOf(published, run, keep);
    return Figure{Quantity::kStep,
                  Seconds<>(value / static_cast<double>(StepsPerEpoch(plan) *
                                                        plan.epochs))};
  }
  if (quantity == "step_time" || quantity == "latency") {
    return Figure{Quantity::kStep, Seconds<>(value)};
  }
  if (quantity == "backward_time") {
    return Figure{Quantity::kBackward, Seconds<>(value)};
  }
  if (quantity == "optimizer_time") {
    return Figure{Quantity::kOptimizer, Seconds<>(value)};
  }
  if (quantity == "throughput") {
    return Figure{Quantity::kStep, Seconds<>(samples / value)};
  }
  if (quantity == "on_chip_throughput") {
    return Figure{Quantity::kForward, Seconds<>(samples / value)};
  }
  return std::nullopt;
}

// What only a profiler shows.
bool IsOfEngines(const PublishedRow& row) {
  return row.quantity == "arithmetic_intensity" ||
         row.quantity == "spill_traffic" ||
         row.quantity == "utilisation.tensor" ||
         row.quantity == "utilisation.vector" ||
         row.quantity == "utilisation.scalar";
}

void AddToProfile(const PublishedRow& row, EngineProfile& profile) {
  const double value = row.value.low;
  const auto flops =
      static_cast<double>(model::StepModelFlops(profile.workload));
  const std::string& quantity = row.quantity;
  if (quantity == "step_time") {
    profile.step = Seconds<>(value);
  } else if (quantity == "achieved_flops") {
    profile.step = Seconds<>(flops / value);
  } else if (quantity == "arithmetic_intensity") {
    profile.traffic = model::Byte(flops / value);
  } else if (quantity == "spill_traffic") {
    profile.spill = model::Byte(value);
  } else if (quantity == "utilisation.tensor") {
    profile.tensor = value;
  } else if (quantity == "utilisation.vector") {
    profile.vector = value;
  } else if (quantity == "utilisation.scalar") {
    profile.scalar = value;
  }
}

class Records {
 public:
  Records(const Published& published,
          const KeepRun& keep,
          ObservationFiles& files)
      : published_(published), keep_(keep), files_(files) {
    for (const PublishedRow& row : published.rows) {
      if (row.use == PublishedUse::kFit && IsOfEngines(row)) {
        profiled_.insert(row.run);
      }
    }
  }

  void Add(const PublishedRow& row) {
    const PublishedRun& run = published_.RunOf(row);
    if (!run.device) return;
    const Device& device = DeviceCatalog::Shipped().Find(*run.device);
    if (row.quantity == "allreduce_time") {
      AddAllReduce(row, run);
      return;
    }
    model::Workload workload;
    std::optional<Figure> figure;
    try {
      workload = WorkloadOf(run);
      figure = FigureOf(published_, row, workload, keep_);
    } catch (const InputError&) {
      return;  // A run that does not say enough is in no fit.
    }
    if (profiled_.contains(row.run)) {
      AddToProfile(row, ProfileOf(row.run, device, workload));
      return;
    }
    if (row.quantity == "energy") {
      AddPower(row, run, device, workload);
      return;
    }
    if (!figure) return;
    Observation observation;
    observation.label = row.id;
    observation.group = row.group;
    observation.source = run.document;
    observation.device = device.name;
    observation.workload = workload;
    observation.quantity = figure->quantity;
    observation.measured = figure->time;
    observation.relative_noise =
        std::max(kRepeatNoise, row.value.tolerance / row.value.low);
    observation.framework = run.stack.value_or("");
    observation.assumed = row.quantity == "run_time"
                              ? MakesMeanStep(run.assumed)
                              : MakesStep(run.assumed);
    // A chip's graph has the exchange between its cores in it.
    if (run.device_count == 1 || device.static_shapes) {
      observation.run_devices = run.device_count;
      files_.observations.push_back(std::move(observation));
      return;
    }
    observation.device_count = run.device_count;
    files_.ranks.observations.push_back(std::move(observation));
  }

  void Finish() {
    for (auto& [key, profile] : profiles_) {
      files_.profiles.push_back(std::move(profile));
    }
  }

 private:
  EngineProfile& ProfileOf(const std::string& run,
                           const Device& device,
                           const model::Workload& workload) {
    EngineProfile& profile = profiles_[{device.name, run}];
    profile.device = device.name;
    profile.label = run;
    const PublishedRun& as_told = published_.runs.at(run);
    profile.source = as_told.document;
    profile.workload = workload;
    profile.devices = as_told.device_count;
    profile.assumed = MakesStep(as_told.assumed);
    return profile;
  }

  // Over the run's own time: an energy alone tells no power.
  void AddPower(const PublishedRow& row,
                const PublishedRun& run,
                const Device& device,
                const model::Workload& workload) {
    const PublishedRow* time = published_.Find(row.run + "/run_time");
    if (time == nullptr || time->use != PublishedUse::kFit ||
        run.device_count != 1) {
      return;
    }
    PowerObservation power;
    power.label = row.id;
    power.device = device.name;
    power.workload = workload;
    power.measured =
        model::Joules<>(row.value.low) / Seconds<>(time->value.low);
    power.relative_noise =
        std::max(kRepeatNoise,
                 std::hypot(row.value.tolerance / row.value.low,
                            time->value.tolerance / time->value.low));
    files_.powers.push_back(std::move(power));
  }

  void AddAllReduce(const PublishedRow& row, const PublishedRun& run) {
    if (!row.size) return;
    MeasuredCollective measured;
    measured.ranks = run.device_count;
    measured.size = *row.size;
    measured.time = Seconds<>(row.value.low);
    measured.device = *run.device;
    files_.ranks.collectives.push_back(std::move(measured));
  }

  const Published& published_;
  const KeepRun& keep_;
  ObservationFiles& files_;
  std::set<std::string> profiled_;  // runs whose engines were looked at
  std::map<std::pair<std::string, std::string>, EngineProfile> profiles_;
};

}  // namespace

ObservationFiles RecordsOf(const Published& published, const KeepRun& keep) {
  ObservationFiles files;
  Records records(published, keep, files);
  std::map<std::string, std::set<std::string>> documents;
  for (const PublishedRow& row : published.rows) {
    const PublishedRun& run = published.RunOf(row);
    if (row.use != PublishedUse::kFit || (keep && !keep(run))) continue;
    records.Add(row);
    if (run.device) documents[run.document].insert(*run.device);
  }
  records.Finish();
  for (auto& [document, devices] : documents) {
    files.sources.push_back({document, std::move(devices)});
  }
  files.ranks.source = SourceNames(files);
  return files;
}

}  // namespace trainfare::calibrate
