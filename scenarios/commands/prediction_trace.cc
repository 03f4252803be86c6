#include "scenarios/commands/prediction_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "model/kernels.h"
#include "model/parallel.h"
#include "scenarios/commands/kernel_groups.h"
#include "scenarios/job/exchange.h"

namespace trainfare::scenarios {
namespace {

// The format counts whole nanoseconds.
constexpr double kShortest = 0.5e-9;

// A part of a phase by its share of it.
struct TracePart {
  std::string name;
  double weight_s = 0;
  std::vector<std::pair<std::string, double>> figures;
};

// Kernels of a phase by kind. Predicted one by one they do not see what
// overlaps, so that they share the time of the phase by what each takes alone.
std::vector<TracePart> KernelParts(const KernelGroups& groups,
                                   const model::Workload& workload,
                                   model::Phase phase) {
  std::vector<TracePart> parts;
  const auto passes = static_cast<double>(model::PassesInStep(workload, phase));
  for (const auto& [key, group] : groups) {
    if (key.first != phase || group.seconds <= 0) continue;
    const double alone = passes * group.seconds;
    parts.push_back({std::string(model::ToText(key.second)),
                     alone,
                     {{"alone_s", alone},
                      {"work_flops", passes * group.flops},
                      {"traffic_bytes", passes * group.bytes}}});
  }
  return parts;
}

std::vector<TracePart> CauseParts(const hardware::PhaseTime<double>& phase) {
  return {{"matrix products", ToSeconds(phase.matrix), {}},
          {"vector arithmetic", ToSeconds(phase.vector), {}},
          {"memory traffic", ToSeconds(phase.memory), {}},
          {"spilling on-chip memory", ToSeconds(phase.spill), {}},
          {"launching kernels", ToSeconds(phase.overhead), {}}};
}

// One lane, filled from left to right.
class Lane {
 public:
  explicit Lane(std::string name) { lane_.name = std::move(name); }

  double end_s() const { return end_s_; }
  void WaitUntil(double time_s) { end_s_ = std::max(end_s_, time_s); }

  void Add(const std::string& name,
           double time_s,
           std::vector<std::pair<std::string, double>> figures = {}) {
    if (time_s < kShortest) return;
    lane_.spans.push_back({name, end_s_, end_s_ + time_s, std::move(figures)});
    end_s_ += time_s;
  }

  // A span of `time_s` that its parts fill.
  void AddPhase(const std::string& name,
                double time_s,
                const std::vector<TracePart>& parts) {
    if (time_s < kShortest) return;
    const double start = end_s_;
    Add(name, time_s);
    double sum = 0;
    for (const TracePart& part : parts) sum += part.weight_s;
    double filled = 0;
    for (const TracePart& part : parts) {
      if (part.weight_s <= 0) continue;
      const double from = start + time_s * (filled / sum);
      filled += part.weight_s;
      lane_.spans.push_back(
          {part.name, from, start + time_s * (filled / sum), part.figures});
    }
  }

  const TraceLane& Get() const { return lane_; }

 private:
  TraceLane lane_;
  double end_s_ = 0;
};

// What is sent in a part of the step that computation ends at `end_s`, and of
// it what the ranks wait for behind that.
void AddExchange(const std::string& name,
                 double end_s,
                 double sent_bytes,
                 double sending_s,
                 double exposed_s,
                 Lane& lane) {
  const double hidden_s =
      std::min(std::max(0.0, sending_s - exposed_s), end_s - lane.end_s());
  lane.WaitUntil(end_s - hidden_s);
  const std::vector<std::pair<std::string, double>> figures = {
      {"sent_bytes", sent_bytes},
      {"alone_s", sending_s},
      {"exposed_s", exposed_s}};
  lane.Add(name + ", hidden", hidden_s, figures);
  lane.WaitUntil(end_s);
  lane.Add(name + ", exposed", exposed_s, figures);
}

// The parts of a step in their order; `exchange` is filled beside it.
class StepTrace {
 public:
  explicit StepTrace(const Prediction& prediction)
      : prediction_(prediction),
        step_(prediction.job.step),
        groups_(
            GroupsOf(prediction.target->predictor, prediction.job.workload)) {}

  TraceProcess Make(const std::string& name) {
    compute_.Add("waiting for input", ToSeconds(step_.input));
    AddPhase("forward", model::Phase::kForward, step_.forward);
    Exchange("forward", "gathering parameters");
    AddPhase("backward", model::Phase::kBackward, step_.backward);
    compute_.Add("computation slowed by communication",
                 ToSeconds(step_.slowed_computation));
    Exchange("backward", "gathering and summing");
    SumGradients();
    SumWithinModel();
    compute_.Add("waiting for other stages", ToSeconds(step_.waiting));
    AddPhase("update", model::Phase::kOptimizer, step_.optimizer);
    compute_.Add("the update on the host", ToSeconds(step_.host_update));
    Exchange("update", "gathering parameters");
    compute_.Add("the host between phases", ToSeconds(step_.other));
    TraceProcess process{name, {compute_.Get()}};
    if (!exchange_.Get().spans.empty())
      process.lanes.push_back(exchange_.Get());
    return process;
  }

 private:
  void AddPhase(const std::string& name,
                model::Phase phase,
                const hardware::PhaseTime<double>& time) {
    std::vector<TracePart> parts;
    if (groups_) {
      parts = KernelParts(*groups_, prediction_.job.workload, phase);
    }
    if (parts.empty()) parts = CauseParts(time);
    compute_.AddPhase(name, ToSeconds(time.total()), parts);
  }

  // Ranks that share state, by part of the step.
  void Exchange(std::string_view part, const std::string& name) {
    for (const calibrate::ShardTraffic& traffic : step_.traffic) {
      if (traffic.part != part) continue;
      Send(name,
           ToBytes(traffic.sent),
           ToSeconds(traffic.sending),
           ToSeconds(traffic.exposed));
    }
  }

  void SumGradients() {
    const auto exchange = GradientExchangeOf(prediction_.target->predictor,
                                             prediction_.job.workload,
                                             prediction_.target->cluster);
    if (!exchange) return;
    Send("all-reduce of gradients",
         ToBytes(exchange->sent),
         ToSeconds(exchange->sending),
         ToSeconds(step_.communication));
  }

  // What ranks that divide a model wait for within its layers, sequences and
  // experts, and where they share no state for sums of copies: in all passes, not
  // behind them.
  void SumWithinModel() {
    if (!model::DividesModel(prediction_.job.workload.parallel)) return;
    model::Seconds<> within = step_.communication;
    for (const calibrate::ShardTraffic& traffic : step_.traffic) {
      within -= traffic.exposed;
    }
    exchange_.WaitUntil(compute_.end_s());
    exchange_.Add("sums and exchanges of a divided model, exposed",
                  ToSeconds(within),
                  {{"exposed_s", ToSeconds(within)}});
    compute_.WaitUntil(exchange_.end_s());
  }

  void Send(const std::string& name,
            double sent_bytes,
            double sending_s,
            double exposed_s) {
    AddExchange(
        name, compute_.end_s(), sent_bytes, sending_s, exposed_s, exchange_);
    compute_.WaitUntil(exchange_.end_s());
  }

  const Prediction& prediction_;
  const StepEstimate& step_;
  std::optional<KernelGroups> groups_;
  Lane compute_{"computation"};
  Lane exchange_{"exchange between ranks"};
};

}  // namespace

std::vector<TraceProcess> PredictionTrace(
    const std::vector<Prediction>& predictions) {
  std::vector<TraceProcess> processes;
  for (const Prediction& prediction : predictions) {
    const JobEstimate& job = prediction.job;
    if (!job.fits()) continue;
    processes.push_back(
        StepTrace(prediction)
            .Make(fmt::format("{}{}, batch {}, length {}, {}",
                              job.devices > 1 ? "rank of " : "",
                              TargetName(*prediction.target),
                              job.workload.batch,
                              job.workload.sequence_length,
                              model::ToText(job.workload.precision))));
  }
  return processes;
}

}  // namespace trainfare::scenarios
