#include "scenarios/commands/prediction_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "model/error.h"
#include "scenarios/commands/kernel_groups.h"

namespace trainfare::scenarios {
namespace {

Chart StepChart(const JobEstimate& job) {
  Chart chart;
  chart.title = "where a step goes";
  chart.x = {"time of a step", "ms"};
  chart.names.all = "time";
  double start = 0;
  for (const Term& term : TermsOf(job.step)) {
    const double end = start + 1e3 * ToSeconds(term.time);
    if (end > start)
      chart.bars.push_back({std::string(term.name), start, end, {}, false});
    start = end;
  }
  chart.caption = fmt::format("{}; each part begins where the one above ends.",
                              job.Bottleneck());
  return chart;
}

Chart MemoryChart(const JobEstimate& job) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  Chart chart;
  chart.title = "memory of one device against its capacity";
  chart.x = {"memory", "GiB"};
  chart.names.all = "memory";
  double start = 0;
  for (const model::MemoryTerm& term : job.memory.terms) {
    const double end = start + ToBytes(term.size) / kGiB;
    chart.bars.push_back({std::string(term.name), start, end, {}, false});
    start = end;
  }
  chart.limit = ToBytes(job.capacity) / kGiB;
  chart.limit_label = "capacity";
  chart.caption = fmt::format(
      "Batch {}, length {}.", job.workload.batch, job.workload.sequence_length);
  return chart;
}

// The roof over intensities of `least` to `most` FLOP a byte: memory bandwidth
// up to the ridge, the matrix engine's peak from there.
ChartLine RoofOf(double bandwidth, double peak, double least, double most) {
  ChartLine roof;
  roof.label = "roof of the datasheet";
  const double ridge = peak / bandwidth;
  const double left = std::min(least, ridge / 10);
  roof.points = {{"", left, left * bandwidth / 1e12, false},
                 {"", ridge, peak / 1e12, false},
                 {"", std::max(most, 10 * ridge), peak / 1e12, false}};
  return roof;
}

// nullopt: the device's model has no kernels by themselves.
std::optional<Chart> RooflineChart(const calibrate::Predictor& predictor,
                                   const model::Workload& workload) {
  const hardware::Device& device = predictor.device();
  const auto peak = device.MatrixPeak(workload.precision);
  if (!peak) return std::nullopt;
  const std::optional<KernelGroups> groups = GroupsOf(predictor, workload);
  if (!groups) return std::nullopt;
  Chart chart;
  double least = 1;
  double most = 1;
  double seconds = 0;
  for (const auto& [key, group] : *groups) seconds += group.seconds;
  for (const auto& [key, group] : *groups) {
    if (group.flops <= 0 || group.bytes <= 0 || group.seconds <= 0) continue;
    const double intensity = group.flops / group.bytes;
    least = std::min(least, intensity);
    most = std::max(most, intensity);
    chart.points.push_back({GroupName(key.first, key.second),
                            intensity,
                            group.flops / group.seconds / 1e12,
                            false,
                            group.seconds / seconds});
  }
  chart.lines.push_back(
      RoofOf(device.memory_bandwidth.base(), peak->base(), least, most));
  chart.title = "roofline: what each kind of kernel reaches";
  chart.x = {"arithmetic intensity", "FLOP/B", true};
  chart.y = {"rate", "TFLOP/s", true};
  chart.names.all = "kinds of kernels, as large as their time";
  chart.names.share = "share of the time";
  chart.caption = fmt::format(
      "A micro-batch of a step on one {}; each dot is predicted by itself, "
      "without what runs beside it. A dot above the slope finds its bytes in a "
      "cache.",
      device.name);
  return chart;
}

// The instance with the most of the target's devices, of its own cloud where
// one there has several: one that has a single device scales into that.
const hardware::Instance* LargestAlike(const PredictionTarget& target) {
  const hardware::Instance* largest = target.instance;
  if (largest == nullptr || largest->count > 1) return largest;
  const auto place = [&](const hardware::Instance* one) {
    return std::tuple(one->count > 1 && one->cloud == target.instance->cloud,
                      one->count);
  };
  for (const hardware::Instance* one :
       hardware::InstanceCatalog::Shipped().OfDevice(
           target.predictor.device().name)) {
    if (!one->named_only.empty() && one->cloud != target.instance->cloud) {
      continue;
    }
    if (place(one) > place(largest)) largest = one;
  }
  return largest;
}

// The job on `devices` of that instance, else of the target's device; nullopt
// where that cannot be.
std::optional<JobEstimate> OnDevices(const PredictionTarget& target,
                                     const hardware::Instance* instance,
                                     const Scenario& scenario,
                                     int64_t devices) {
  try {
    JobEstimate job = EstimateJob(
        scenario,
        target.predictor,
        instance != nullptr ? ClusterOf(*instance, devices, target.predictor)
                            : ClusterOf(target.predictor, devices));
    if (job.fits()) return job;
  } catch (const model::InputError&) {
    // No link is known, or a chip would be used in part.
  }
  return std::nullopt;
}

Chart ScalingChart(const PredictionTarget& target, const Scenario& scenario) {
  Chart chart;
  chart.title = "scaling over devices";
  chart.x = {"devices", ""};
  chart.y = {"throughput", "samples/s"};
  chart.names = {"predicted", "asked about", "", ""};
  const hardware::Instance* instance = LargestAlike(target);
  const int64_t most = instance != nullptr
                           ? DevicesOf(*instance, target.predictor.device())
                           : std::max<int64_t>(8, target.cluster.devices);
  ChartLine even{"as many times one device", {}};
  for (int64_t devices = 1; devices <= most; devices *= 2) {
    const auto job = OnDevices(target, instance, scenario, devices);
    if (!job) continue;
    const auto count = static_cast<double>(devices);
    const double rate = job->samples_per_second;
    if (devices == 1) even.points.push_back({"", 1, rate, false});
    chart.points.push_back({fmt::format("{}", devices),
                            count,
                            rate,
                            devices == target.cluster.devices});
  }
  if (chart.points.size() < 2) return {};
  if (!even.points.empty()) {
    const double last = chart.points.back().x;
    even.points.push_back({"", last, last * even.points.front().y, false});
    chart.lines.push_back(std::move(even));
  }
  chart.caption = fmt::format(
      "Data parallel at the same batch a device{}; the line is as many times "
      "one device.",
      instance != target.instance ? ", in " + instance->FullName() : "");
  return chart;
}

// What one change makes of the answer: dollars where there is a price, else
// minutes.
class Sensitivity {
 public:
  Sensitivity(const PredictionTarget& target, const JobEstimate& job)
      : target_(target), base_(ValueOf(job, job.run.total())) {
    chart_.title = "what the answer hangs on";
    chart_.x =
        target.tariff ? Axis{"cost of the run", "$"} : Axis{"run", "min"};
    chart_.names = {"with the change", "", "the answer", ""};
    chart_.caption =
        "Each bar changes one thing and leaves the others; the mark is the "
        "answer.";
  }

  double ValueOf(const JobEstimate& job, model::Seconds<> time) const {
    if (!target_.tariff) return ToSeconds(time) / 60.0;
    JobEstimate changed = job;
    changed.run.start_up += time - job.run.total();
    return ToDollars(CostOf(changed, target_.tariff)->usual);
  }

  double base() const { return base_; }

  void Add(const std::string& label, double one, double other) {
    const double low = std::min({one, other, base_});
    const double high = std::max({one, other, base_});
    chart_.bars.push_back({label, low, high, base_, false});
  }

  Chart Take() { return std::move(chart_); }

 private:
  const PredictionTarget& target_;
  double base_;
  Chart chart_;
};

Chart SensitivityChart(const PredictionTarget& target,
                       const Scenario& scenario,
                       const JobEstimate& job) {
  constexpr double kPriceChange = 0.2;
  const model::Seconds<> start_up = model::Second(300.0);
  Sensitivity out(target, job);
  out.Add("time, its 80 % interval",
          out.ValueOf(job, job.run_low),
          out.ValueOf(job, job.run_high));
  if (target.tariff) {
    out.Add("price, 20 % less to 20 % more",
            (1 - kPriceChange) * out.base(),
            (1 + kPriceChange) * out.base());
  }
  const int64_t batch = scenario.workload.batch;
  for (const int64_t other : {batch / 2, 2 * batch}) {
    if (other < 1) continue;
    Scenario changed = scenario;
    changed.workload.batch = other;
    if (const auto made = OnDevices(
            target, target.instance, changed, target.cluster.devices)) {
      const double value = out.ValueOf(*made, made->run.total());
      out.Add(
          fmt::format("batch {} instead of {}", other, batch), value, value);
    }
  }
  const double later = out.ValueOf(job, job.run.total() + start_up);
  out.Add("5 min more of start-up", later, later);
  return out.Take();
}

}  // namespace

std::vector<Chart> PredictionCharts(const PredictionTarget& target,
                                    const Scenario& scenario,
                                    const JobEstimate& job) {
  std::vector<Chart> charts;
  if (job.fits()) {
    charts.push_back(StepChart(job));
    if (auto roofline = RooflineChart(target.predictor, job.workload)) {
      charts.push_back(std::move(*roofline));
    }
  }
  charts.push_back(MemoryChart(job));
  if (job.fits()) {
    charts.push_back(ScalingChart(target, scenario));
    charts.push_back(SensitivityChart(target, scenario, job));
  }
  std::erase_if(charts, [](const Chart& chart) { return chart.empty(); });
  return charts;
}

}  // namespace trainfare::scenarios
