// One estimate of a job as `recommend` asks for it, and a catalog of them: how
// the time grows with the candidates is what to read.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "calibrate/fit/predictor.h"
#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "scenarios/commands/candidates.h"
#include "scenarios/commands/choice_odds.h"
#include "scenarios/commands/recommend.h"
#include "scenarios/job/cluster.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {
namespace {

// With memory, the largest batch and the interval, on all devices of one host.
void EstimateOneJob(benchmark::State& state, const char* name) {
  const Scenario scenario = LoadScenario(name);
  const hardware::Instance& host =
      hardware::InstanceCatalog::Shipped().Find("aws/p5.48xlarge");
  const calibrate::Predictor predictor(
      hardware::DeviceCatalog::Shipped().Find(host.device));
  const Cluster cluster = ClusterOf(host, host.count, predictor);
  for (auto _ : state) {
    benchmark::DoNotOptimize(EstimateJob(scenario, predictor, cluster));
  }
}
BENCHMARK_CAPTURE(EstimateOneJob, 8b_fsdp, "llama_8b_fsdp")
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(EstimateOneJob, 8b_lora, "llama_8b_lora")
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(EstimateOneJob, bert_base, "emotion_bert_base")
    ->Unit(benchmark::kMicrosecond);

// Every instance with one device, all of them and those of several hosts, at
// every batch and precision: so many candidates, or a few more.
void RankCandidates(benchmark::State& state) {
  constexpr int64_t kPlaces = 350;  // about what the catalog has
  RecommendOptions options;
  options.hosts = 4;
  const Scenario scenario = LoadScenario("emotion_bert_base");
  std::vector<Scenario> jobs;
  for (const auto precision : {model::Precision::kFp32,
                               model::Precision::kBf16,
                               model::Precision::kFp16}) {
    for (int64_t batch = 1; batch <= state.range(0) / kPlaces / 3 + 1;
         ++batch) {
      jobs.push_back(scenario);
      jobs.back().workload.precision = precision;
      jobs.back().workload.batch = batch;
    }
  }
  size_t places = 0;
  for (auto _ : state) {
    std::vector<std::string> left_out_fits;
    std::vector<Candidate> candidates =
        EstimateCandidates(jobs, options, left_out_fits);
    places = candidates.size();
    Rank(candidates, options.objective);
    benchmark::DoNotOptimize(SetOdds(options, candidates));
  }
  const auto count = static_cast<double>(jobs.size() * places);
  state.counters["candidates"] = count;
  state.counters["each"] =
      benchmark::Counter(count,
                         benchmark::Counter::kIsIterationInvariantRate |
                             benchmark::Counter::kInvert);
}
BENCHMARK(RankCandidates)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainfare::scenarios
