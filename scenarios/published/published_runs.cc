#include "scenarios/published/published_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/error.h"

namespace trainfare::scenarios {

using hardware::Device;
using hardware::DeviceKind;
using model::InputError;

const Device& FindDevice(std::string_view name) {
  return hardware::DeviceCatalog::Shipped().Find(name);
}

bool IsOneStep(const std::string& run) { return run.starts_with("onestep_"); }

PublishedRuns::PublishedRuns(const Published& published,
                             PublishedProtocol protocol)
    : published_(published), protocol_(protocol) {
  for (const auto& entry : published_.runs) Join(entry.second);
  for (const PublishedRow& row : published_.rows) {
    // Records are "s003_t4_2_...": the document first.
    if (!row.records.empty()) {
      documents_.emplace(row.run, row.records.front().substr(0, 4));
    }
  }
}

void PublishedRuns::Join(const PublishedRun& run) {
  if (!run.same_as) return;
  const std::string a = Root(run.name);
  const std::string b = Root(*run.same_as);
  if (a != b) parent_[a] = b;
}
std::string PublishedRuns::Root(const std::string& run) const {
  std::string at = run;
  for (auto up = parent_.find(at); up != parent_.end(); up = parent_.find(at)) {
    at = up->second;
  }
  return at;
}
bool PublishedRuns::LeftOut(const std::string& run,
                            const std::string& target) const {
  return leaves_out() && Root(run) == Root(target);
}
std::string PublishedRuns::Without(const std::string& target) const {
  return leaves_out() ? Root(target) : std::string();
}

std::string PublishedRuns::DocumentOf(const std::string& run) const {
  const auto found = documents_.find(run);
  return found == documents_.end() ? std::string() : found->second;
}

std::vector<const PublishedRow*> PublishedRuns::RowsToFit(
    std::string_view quantity, const std::string& target) const {
  std::vector<const PublishedRow*> rows;
  for (const PublishedRow& row : published_.rows) {
    if (row.use == PublishedUse::kFit && row.quantity == quantity &&
        !LeftOut(row.run, target)) {
      rows.push_back(&row);
    }
  }
  return rows;
}

const PublishedRow& PublishedRuns::Printed(const std::string& id) const {
  const PublishedRow* row = published_.Find(id);
  if (row == nullptr) {
    throw InputError(fmt::format("{} is not printed", id));
  }
  return *row;
}

Described PublishedRuns::Describe(const PublishedRun& run) const {
  Described d;
  d.run = &run;
  if (!run.architecture) throw InputError("the model is not stated");
  if (!run.device) throw InputError("the device is not stated");
  const PublishedRun* same =
      run.same_as ? &published_.runs.at(*run.same_as) : nullptr;
  std::vector<std::string> assumed;
  model::Workload& w = d.workload;
  w.architecture = *run.architecture;
  w.work = run.work;
  const bool imdb = run.train_samples && run.train_samples->least == 20000;
  if (run.batch) {
    w.batch = *run.batch;
  } else if (same != nullptr && same->batch) {
    w.batch = *same->batch;
  } else if (imdb && run.stack == "lightseq") {
    // All other runs of table 4.16 have it.
    w.batch = 16;
    assumed.emplace_back("batch 16");
  } else {
    throw InputError("the batch is not stated");
  }
  if (!run.sequence_length) {
    throw InputError("the sequence length is not stated");
  }
  w.sequence_length = *run.sequence_length;
  const Device& device = FindDevice(*run.device);
  if (run.precision) {
    w.precision = *run.precision;
  } else if (same != nullptr && same->precision) {
    w.precision = *same->precision;
  } else if (device.peak.tf32) {
    // 1.35 TFLOP in the 52 ms of the optimised A100 step are more than its
    // fp32 peak: the matrix engines ran.
    w.precision = model::Precision::kTf32;
    assumed.emplace_back("tf32");
  } else if (device.peak.fp32) {
    w.precision = model::Precision::kFp32;
    assumed.emplace_back("fp32");
  } else {
    w.precision =
        device.peak.bf16 ? model::Precision::kBf16 : model::Precision::kFp16;
    assumed.emplace_back(std::string(model::ToText(w.precision)));
  }
  const std::optional<PublishedOptimizer>& optimizer =
      run.optimizer || same == nullptr ? run.optimizer : same->optimizer;
  if (optimizer) {
    w.optimizer.kind = optimizer->kind;
    w.optimizer.implementation = optimizer->implementation.value_or(
        model::OptimizerImplementation::kMultiTensor);
    d.implementation_open = !optimizer->implementation;
  } else if (imdb && device.kind == DeviceKind::kGpu) {
    // That of the equal run on the V100.
    w.optimizer = {model::OptimizerKind::kAdan,
                   model::OptimizerImplementation::kFused};
    assumed.emplace_back("fused Adan");
  }
  if (run.fusion) w.stack.fusion = *run.fusion;
  // PyTorch/XLA traces operation by operation (hardware/models/systolic.h).
  if (run.stack == "pytorch-xla") w.stack.fusion = model::Fusion::kEager;
  if (!assumed.empty()) {
    d.assumed = fmt::format("; {} assumed", fmt::join(assumed, ", "));
  }
  return d;
}

// Samples of one epoch. Where only a range is known, what other runs on the
// same data took: their time over that of a step; else the middle.
double PublishedRuns::EpochSamples(const PublishedRun& run,
                                   const std::string& target,
                                   std::string& how) const {
  if (!run.train_samples) throw InputError("the samples are not stated");
  const CountRange range = *run.train_samples;
  if (range.least == range.most) return static_cast<double>(range.least);
  std::vector<double> seen;
  for (const PublishedRow* row : RowsToFit("step_time", target)) {
    const PublishedRun& other = published_.RunOf(*row);
    if (!other.train_samples || !other.batch || !other.epochs ||
        other.train_samples->least != range.least ||
        other.train_samples->most != range.most) {
      continue;
    }
    const PublishedRow* whole = published_.Find(other.name + "/run_time");
    if (whole == nullptr) continue;
    seen.push_back(whole->value.low / row->value.low *
                   static_cast<double>(*other.batch * other.device_count) /
                   static_cast<double>(*other.epochs));
  }
  if (seen.empty()) {
    how += fmt::format("; middle of {} .. {} samples", range.least, range.most);
    return 0.5 * static_cast<double>(range.least + range.most);
  }
  double mean = 0;
  for (const double samples : seen) {
    mean += samples / static_cast<double>(seen.size());
  }
  mean = std::clamp(
      mean, static_cast<double>(range.least), static_cast<double>(range.most));
  how += fmt::format(
      "; {:.0f} samples from run and step times of {} runs", mean, seen.size());
  return mean;
}

model::RunPlan PublishedRuns::PlanOf(const Described& d,
                                     const std::string& target,
                                     std::string& how) const {
  if (!d.run->epochs) throw InputError("the epochs are not stated");
  model::RunPlan plan;
  plan.train_samples =
      static_cast<int64_t>(std::llround(EpochSamples(*d.run, target, how)));
  plan.epochs = *d.run->epochs;
  plan.batch = d.workload.batch;
  plan.devices = d.run->device_count;
  plan.lengths = {{d.workload.sequence_length, 1.0}};
  return plan;
}

}  // namespace trainfare::scenarios
