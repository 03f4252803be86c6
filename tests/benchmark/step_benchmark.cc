// One predicted step: expansion into kernels, and their time on a device.

#include <benchmark/benchmark.h>

#include <vector>

#include "calibrate/fit/predictor.h"
#include "hardware/models/device_models.h"
#include "model/kernels.h"
#include "model/presets.h"

namespace trainfare {
namespace {

model::Workload BertBase() {
  model::Workload w;
  w.architecture = model::FindArchitecture("bert-base-uncased");
  w.batch = 32;
  w.sequence_length = 128;
  return w;
}

void ExpandStep(benchmark::State& state) {
  const model::Workload workload = BertBase();
  for (auto _ : state) {
    benchmark::DoNotOptimize(model::ExpandKernels(workload));
  }
}
BENCHMARK(ExpandStep);

void ExpandAndTimeStep(benchmark::State& state, const char* name) {
  const hardware::Device device =
      name == std::string_view("cpu")
          ? hardware::HostCpu()
          : hardware::DeviceCatalog::Shipped().Find(name);
  std::vector<double> values;
  for (const auto& info : hardware::ParametersOf(device.kind)) {
    values.push_back(info.prior);
  }
  const model::Workload workload = BertBase();
  for (auto _ : state) {
    benchmark::DoNotOptimize(hardware::EstimateStep<double>(
        device, workload, model::ExpandKernels(workload), values));
  }
}
BENCHMARK_CAPTURE(ExpandAndTimeStep, cpu, "cpu");
BENCHMARK_CAPTURE(ExpandAndTimeStep, a100, "a100_sxm4_80gb");

void PredictWithInterval(benchmark::State& state) {
  const calibrate::Predictor predictor(hardware::HostCpu());
  const model::Workload workload = BertBase();
  for (auto _ : state) {
    benchmark::DoNotOptimize(predictor.Predict(workload));
  }
}
BENCHMARK(PredictWithInterval);

}  // namespace
}  // namespace trainfare
