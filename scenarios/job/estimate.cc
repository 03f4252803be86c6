#include "scenarios/job/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "calibrate/fit/engine_figures.h"
#include "calibrate/fit/power.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/statistics.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/device_models.h"
#include "model/bisection.h"
#include "model/error.h"
#include "model/limits.h"
#include "model/offload.h"
#include "model/rounding.h"
#include "model/sharding.h"
#include "model/validate.h"
#include "scenarios/job/energy.h"
#include "scenarios/job/open_times.h"
#include "scenarios/job/step_estimate.h"

namespace trainfare::scenarios {
namespace {

using hardware::Device;
using model::InputError;
using model::Seconds;

// The mean of steps with shares that add up to 1.
class MeanStep {
 public:
  void Add(const StepEstimate& step, double share) {
    mean_.forward += step.forward * share;
    mean_.backward += step.backward * share;
    mean_.optimizer += step.optimizer * share;
    mean_.other += step.other * share;
    mean_.communication += step.communication * share;
    mean_.slowed_computation += step.slowed_computation * share;
    mean_.waiting += step.waiting * share;
    mean_.host_update += step.host_update * share;
    mean_.input += step.input * share;
    AddTraffic(step.traffic, share);
    low_ += step.total() * (share * step.low_factor);
    high_ += step.total() * (share * step.high_factor);
    mean_.width_95 = step.width_95;
    mean_.log_sigma += step.log_sigma * share;
    mean_.forward_log_sigma += step.forward_log_sigma * share;
    mean_.backward_log_sigma += step.backward_log_sigma * share;
    mean_.optimizer_log_sigma += step.optimizer_log_sigma * share;
    // The weakest ground that any part stands on.
    mean_.grade = any_ ? std::max(mean_.grade, step.grade) : step.grade;
    mean_.figures = step.figures;
    mean_.ring_ranks = step.ring_ranks;
    mean_.ring = step.ring;
    mean_.source_seen = step.source_seen;
    mean_.source_sigma = step.source_sigma;
    any_ = true;
  }
  StepEstimate Get() const {
    StepEstimate step = mean_;
    step.low_factor = low_ / step.total();
    step.high_factor = high_ / step.total();
    return step;
  }

 private:
  // The same parts at every length.
  void AddTraffic(const std::vector<calibrate::ShardTraffic>& traffic,
                  double share) {
    mean_.traffic.resize(traffic.size());
    for (size_t i = 0; i < traffic.size(); ++i) {
      mean_.traffic[i].part = traffic[i].part;
      mean_.traffic[i].sent += traffic[i].sent * share;
      mean_.traffic[i].copied += traffic[i].copied * share;
      mean_.traffic[i].sending += traffic[i].sending * share;
      mean_.traffic[i].exposed += traffic[i].exposed * share;
    }
  }

  StepEstimate mean_;
  Seconds<> low_;
  Seconds<> high_;
  bool any_ = false;
};

// What compiling takes of the host, and the batch that leaves it.
void LimitToHost(const Scenario& scenario,
                 const Device& device,
                 const Cluster& cluster,
                 JobEstimate& job) {
  const RunExtras& extras = scenario.extras;
  const model::Workload& w = job.workload;
  if (!device.compiler || !device.compiler->graph_memory ||
      !cluster.host_memory || extras.warm_cache ||
      w.work != model::Work::kTraining) {
    return;
  }
  const hardware::GraphMemory& of_graph = *device.compiler->graph_memory;
  // Cores are data parallel: one graph, of a core's share of the batch.
  const auto graph = [&](int64_t batch) {
    return hardware::models::CompilerMemory(
        of_graph,
        w.architecture,
        model::CeilDivide(batch, device.cores) * w.sequence_length);
  };
  const auto outcome = [&](int64_t batch) {
    return hardware::models::CompileOnHost(
        of_graph, graph(batch), *cluster.host_memory, extras.swap);
  };
  using hardware::models::Compilation;
  const Compilation compilation = outcome(w.batch);
  job.compilation = {.memory = graph(w.batch),
                     .host_memory = *cluster.host_memory,
                     .swap = extras.swap,
                     .swaps = compilation == Compilation::kSwaps,
                     .fails = compilation == Compilation::kFails};
  const auto compiles = [&](int64_t batch) {
    return outcome(batch) != Compilation::kFails;
  };
  if (!job.largest_batch || compiles(*job.largest_batch)) return;
  const int64_t largest = model::LargestThat(0, *job.largest_batch, compiles);
  job.largest_batch.reset();
  if (largest > 0) job.largest_batch = largest;
}

// What one host holds of what is offloaded, and the batch that it has room for.
void HoldOnHost(const Cluster& cluster, JobEstimate& job) {
  if (!model::Offloads(job.workload.parallel)) return;
  const auto holding = [&](int64_t batch) {
    model::Workload w = job.workload;
    w.batch = batch;
    return HostHolding{
        model::HostMemoryOf(w), cluster.devices_of_host(), cluster.host_memory};
  };
  job.host = holding(job.workload.batch);
  const auto fits = [&](int64_t batch) { return holding(batch).fits(); };
  if (!job.largest_batch || fits(*job.largest_batch)) return;
  const int64_t largest = model::LargestThat(0, *job.largest_batch, fits);
  job.largest_batch.reset();
  if (largest > 0) job.largest_batch = largest;
}

// The last gate before an answer leaves: what is not finite, or no time that
// anything takes, is none.
void RequireAnswer(const JobEstimate& job) {
  for (const auto& [what, time] :
       {std::pair{"a step", job.step.total()},
        std::pair{"the run", job.run.total()},
        std::pair{"the run at least", job.run_low},
        std::pair{"the run at most", job.run_high}}) {
    if (model::IsPlausible(time)) continue;
    throw InputError(fmt::format(
        "{} would take {:.3g} s, which is beyond what can be "
        "answered ({:.0g} to {:.0g} s); is a figure of the scenario "
        "or of the fit mistyped?",
        what,
        ToSeconds(time),
        model::kShortestTime,
        model::kLongestTime));
  }
}

// Lengths that a step waits for. Ranks that meet in each micro-batch wait for
// the longest of all their sequences; over several micro-batches between two
// meetings the ranks' lengths even out.
std::vector<model::PaddedLength> StepLengths(const Scenario& scenario,
                                             const JobEstimate& job) {
  const model::Workload& w = job.workload;
  // Under a pipeline they meet once a step, whatever they divide.
  const bool each = w.parallel.pipeline == 1;
  const bool sums =
      w.work == model::Work::kTraining &&
      (w.accumulation == 1 || (each && model::ShardsGradients(w.parallel)));
  const bool meet = sums || (each && model::ShardsParameters(w.parallel));
  return scenario.BatchLengths(w.batch *
                               (meet ? model::CopiesOf(w.parallel) : 1));
}

// What the job is, and whether the device can do it at all: it says why not
// before anything is counted.
JobEstimate Begin(const Scenario& scenario,
                  const Device& device,
                  const Cluster& cluster) {
  JobEstimate job;
  job.workload = scenario.workload;
  job.workload.parallel =
      model::OverDevices(scenario.workload.parallel, cluster.devices);
  model::RequireUpdateInBackward(job.workload);
  calibrate::RequireJoinable(job.workload.parallel, cluster, device);
  if (cluster.devices_per_chip > 1 &&
      model::ShardsOf(job.workload.parallel) > 1) {
    throw InputError(fmt::format(
        "parallel.shard: expected none between parts of {}, got {}; what they "
        "send each other is not known apart; hint: --device {}",
        cluster.chip,
        model::ToText(job.workload.parallel.shard),
        cluster.chip));
  }
  job.compiles_at_start = CompilesAtStart(scenario, device);
  job.devices = cluster.devices;
  job.ranks_per_device = cluster.ranks_per_device();
  job.idle_devices = cluster.idle_devices;
  job.compiles = device.static_shapes;
  job.lengths = StepLengths(scenario, job);
  job.own_lengths = scenario.BatchLengths(scenario.workload.batch);
  // A few buckets are compiled once each; a length a batch is another matter.
  hardware::ShapePlan shapes;
  if (scenario.padding.kind == PaddingKind::kDynamic) {
    shapes.distinct_lengths = static_cast<int64_t>(job.lengths.size());
  }
  const bool stated =
      scenario.extras.compile_per_shape || scenario.extras.warm_cache;
  // A range of its kind answers, too, by a wide interval.
  shapes.compile_time_known = stated || device.compiler;
  hardware::RequireSupported(device, job.workload, shapes);
  job.compile_known = !job.compiles || stated;
  if (!job.compile_known && device.compiler) {
    job.longest_compile = device.compiler->longest_compile;
  }
  job.start_up_known = scenario.extras.start_up.has_value();
  return job;
}

// What a device holds, and the largest batch that it could.
void CountMemory(DeviceMemo& memo, Detail detail, JobEstimate& job) {
  const hardware::MemoryPlan& plan =
      memo.PlanMemory(job.workload, job.devices, job.ranks_per_device);
  job.memory = plan.needed;
  job.capacity = plan.capacity;
  if (detail < Detail::kTimes) return;
  job.largest_batch =
      memo.LargestBatch(job.workload, job.devices, job.ranks_per_device);
}

// Whether the largest batch is the largest that can be counted.
bool EndsByCounting(const JobEstimate& job) {
  return job.largest_batch &&
         *job.largest_batch >= model::LargestCountableBatch(job.workload);
}

// What the scenario may leave open, besides compiling.
struct OpenTimes {
  OpenTime start_up;
  OpenTime checkpoint;
};

model::RunPlan PlanOf(const Scenario& scenario,
                      const Device& device,
                      const OpenTimes& open,
                      const JobEstimate& job) {
  const bool trains = scenario.workload.work != model::Work::kForward;
  model::RunPlan plan;
  plan.train_samples = scenario.train_samples;
  // Only what trains is evaluated.
  plan.eval_samples = trains ? scenario.eval_samples : 0;
  plan.epochs = scenario.epochs;
  plan.batch = scenario.workload.batch;
  plan.accumulation = scenario.workload.accumulation;
  if (job.workload.parallel.pipeline > 1) {
    plan.eval_micro_batches = plan.accumulation;
  }
  plan.devices = model::CopiesOf(job.workload.parallel);
  plan.lengths = job.lengths;
  plan.own_lengths = job.own_lengths;
  plan.drop_last = scenario.drop_last;
  plan.start_up = open.start_up.usual;
  plan.checkpoint = open.checkpoint.usual;
  if (scenario.extras.load_per_sample) {
    plan.load_per_sample = *scenario.extras.load_per_sample;
  } else {
    plan.load_per_token = hardware::FactsOfRuns().token_load;
  }
  if (plan.drop_last && model::StepsPerEpoch(plan) == 0) {
    throw InputError(fmt::format(
        "drop_last: expected at least the {} samples of a step in an epoch, "
        "got {}; hint: without it the step that is not full is trained",
        plan.batch * plan.accumulation * plan.devices,
        plan.train_samples));
  }
  if (job.compiles) {
    plan.compile_per_shape = CompileTime(scenario, device, job);
    plan.warm_cache = scenario.extras.warm_cache;
  }
  return plan;
}

// Steps of the job by shape: one is asked for more than once, by epochs and by
// evaluation. Of those that are not of the mean the time alone is wanted.
class Steps {
 public:
  Steps(DeviceMemo& memo,
        const model::Workload& workload,
        const Cluster& cluster,
        Detail detail)
      : memo_(memo),
        workload_(calibrate::OnDevices(workload, cluster.devices)),
        cluster_(cluster),
        detail_(detail) {}

  const StepEstimate& At(model::Work work,
                         int64_t batch,
                         int64_t micro_batches,
                         int64_t length) {
    const Shape shape{work, batch, micro_batches, length};
    auto found = known_.find(shape);
    if (found == known_.end()) {
      const model::Workload& workload = Of(shape);
      found = known_
                  .emplace(shape,
                           detail_ == Detail::kAll
                               ? EstimateStep(memo_, workload, cluster_)
                               : EstimateStepTimes(memo_, workload, cluster_))
                  .first;
    }
    return found->second;
  }

  Seconds<> TimeAt(model::Work work,
                   int64_t batch,
                   int64_t micro_batches,
                   int64_t length) {
    const Shape shape{work, batch, micro_batches, length};
    const auto known = known_.find(shape);
    if (known != known_.end()) return known->second.total();
    auto found = times_.find(shape);
    if (found == times_.end()) {
      const StepEstimate step = EstimateStepTimes(memo_, Of(shape), cluster_);
      found = times_.emplace(shape, step.total()).first;
    }
    return found->second;
  }

 private:
  using Shape = std::tuple<model::Work, int64_t, int64_t, int64_t>;

  const model::Workload& Of(const Shape& shape) {
    std::tie(workload_.work,
             workload_.batch,
             workload_.accumulation,
             workload_.sequence_length) = shape;
    return workload_;
  }

  DeviceMemo& memo_;
  model::Workload workload_;
  const Cluster& cluster_;
  Detail detail_;
  std::map<Shape, StepEstimate> known_;
  std::map<Shape, Seconds<>> times_;
};

// The mean step over the lengths, and the rates that it comes to.
void AverageSteps(const model::RunPlan& plan, Steps& steps, JobEstimate& job) {
  MeanStep mean;
  const double step_samples = static_cast<double>(plan.batch) *
                              static_cast<double>(plan.accumulation) *
                              static_cast<double>(plan.devices);
  for (const model::PaddedLength& length : job.lengths) {
    StepEstimate step = steps.At(
        job.workload.work, plan.batch, plan.accumulation, length.length);
    const Seconds<> load = plan.Loading(
        step_samples,
        static_cast<double>(plan.batch * plan.accumulation * length.length));
    step.input = std::max(Seconds<>(), load - step.total());
    mean.Add(step, length.share);
  }
  job.step = mean.Get();
  job.samples_per_second = step_samples / ToSeconds(job.step.total());
  job.tokens_per_second =
      job.samples_per_second * model::MeanLength(job.own_lengths);
}

// What of the device's peak the mean step makes use of, of all pairs and in
// `detail` of those that causal attention and windows leave.
void CountFlops(DeviceMemo& memo,
                const model::RunPlan& plan,
                Detail detail,
                JobEstimate& job) {
  model::Workload rank = job.workload;
  double all = 0;
  double seen = 0;
  for (const model::PaddedLength& length : job.own_lengths) {
    rank.sequence_length = length.length;
    const model::ModelFlops& flops = memo.ModelFlops(rank);
    all += length.share * static_cast<double>(flops.all);
    seen += length.share * static_cast<double>(flops.seen);
  }
  job.model_flops = model::OfEachRank(
      all * static_cast<double>(plan.accumulation), job.workload.parallel);
  const auto peak =
      memo.predictor().device().MatrixPeak(job.workload.precision);
  ENSURE(peak.has_value(), "the predictor refused the precision");
  // Ranks on one processor have its peak between them.
  job.mfu = job.model_flops * static_cast<double>(job.ranks_per_device) /
            ToSeconds(job.step.total()) / peak->base();
  // Without windows or causal attention all are seen.
  const bool causal =
      job.workload.architecture.family == model::Family::kDecoder;
  if (detail == Detail::kAll && (causal || seen < all)) {
    job.mfu_causal = job.mfu * seen / all;
  }
}

// The intervals of the run: its steps are one error, each time that the
// scenario leaves open another, and none hangs on the others.
void BoundRun(const Scenario& scenario,
              const Device& device,
              const OpenTimes& open,
              JobEstimate& job) {
  const Seconds<> stepping = job.run.stepping();
  const OpenTime compiling = CompilingTime(scenario, device, job);
  const Seconds<> total = job.run.total();
  const auto add = [&job](const OpenTime& one, double times) {
    const auto both = [times](Seconds<> a, Seconds<> b) {
      return Seconds<>(std::hypot(a.base(), times * b.base()));
    };
    job.open_below = both(job.open_below, one.usual - one.low);
    job.open_above = both(job.open_above, one.high - one.usual);
  };
  add(open.start_up, 1.0);
  add(compiling, 1.0);
  add(open.checkpoint, static_cast<double>(scenario.epochs));
  // Of the steps by these factors; what is open reaches so many times as far
  // as in an 80 % interval.
  const auto bounds = [&](double low, double high, double times_open) {
    const Seconds<> below(std::hypot((stepping * (1.0 - low)).base(),
                                     times_open * job.open_below.base()));
    const Seconds<> above(std::hypot((stepping * (high - 1.0)).base(),
                                     times_open * job.open_above.base()));
    // Nothing takes less than no time.
    return std::pair{std::max(Seconds<>(), total - below), total + above};
  };
  const StepEstimate& step = job.step;
  std::tie(job.run_low, job.run_high) =
      bounds(step.low_factor, step.high_factor, 1.0);
  std::tie(job.run_low_95, job.run_high_95) =
      bounds(step.LowFactor95(step.log_sigma),
             step.HighFactor95(step.log_sigma),
             calibrate::kNormalQuantile975 / calibrate::kNormalQuantile90);
}

// Steps of such work, and forward passes alone to evaluate.
model::RunTimes RunOf(const model::RunPlan& plan,
                      model::Work work,
                      Steps& steps) {
  return model::EstimateRun(
      plan,
      [&](int64_t batch, int64_t micro_batches, int64_t length) {
        return steps.TimeAt(work, batch, micro_batches, length);
      },
      [&](int64_t batch, int64_t micro_batches, int64_t length) {
        return steps.TimeAt(
            model::Work::kForward, batch, micro_batches, length);
      });
}

}  // namespace

JobEstimate EstimateJob(const Scenario& scenario,
                        const calibrate::Predictor& predictor,
                        const Cluster& cluster) {
  DeviceMemo memo(predictor, scenario.source);
  return EstimateJob(scenario, memo, cluster);
}

JobEstimate EstimateJob(const Scenario& scenario,
                        DeviceMemo& memo,
                        const Cluster& cluster,
                        Detail detail) {
  ENSURE(cluster.chips() == cluster.racks || cluster.link || cluster.ranks,
         "several devices of a rack have a link");
  ENSURE(cluster.racks == 1 || cluster.network, "several racks have a network");
  const calibrate::Predictor& predictor = memo.predictor();
  const Device& device = predictor.device();
  const model::Fusion stack =
      hardware::StackOn(device, scenario.workload.stack.fusion);
  if (stack != scenario.workload.stack.fusion) {
    Scenario here = scenario;
    here.workload.stack.fusion = stack;
    return EstimateJob(here, memo, cluster, detail);
  }
  JobEstimate job = Begin(scenario, device, cluster);
  CountMemory(memo, detail, job);
  LimitToHost(scenario, device, cluster, job);
  HoldOnHost(cluster, job);
  job.any_batch = EndsByCounting(job);
  if (!job.fits()) return job;

  const OpenTimes open{StartUpTime(scenario, device, cluster),
                       CheckpointTime(scenario, cluster)};
  const model::RunPlan plan = PlanOf(scenario, device, open, job);
  if (detail == Detail::kMemory) return job;
  Steps steps(memo, scenario.workload, cluster, detail);
  AverageSteps(plan, steps, job);
  if (detail == Detail::kStep) return job;
  CountFlops(memo, plan, detail, job);
  job.run = RunOf(plan, job.workload.work, steps);
  // Nobody has run it with that input pipeline.
  if (job.run.input_wait > Seconds<>()) {
    job.step.grade = std::max(job.step.grade, calibrate::Grade::kInterpolated);
  }
  job.run_low = job.run_high = job.run.total();
  job.run_low_95 = job.run_high_95 = job.run.total();
  if (detail == Detail::kAll) {
    BoundRun(scenario, device, open, job);
    job.engines =
        calibrate::EnginesOf(device, job.workload, predictor.values());
  }
  RequireAnswer(job);
  EstimateEnergy(predictor, job);
  return job;
}

}  // namespace trainfare::scenarios
