// Several GPUs: a ring fitted to all-reduces, and backward overlapping it.

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "model/architecture.h"
#include "model/collective.h"
#include "model/error.h"
#include "model/overlap.h"
#include "scenarios/published/least_squares.h"
#include "scenarios/published/published_systems.h"

namespace trainfare::scenarios {

using model::Seconds;

namespace {

// One Transformer layer alone.
struct Layer {
  Seconds<> forward;
  Seconds<> backward;
};

Layer LayerOf(PublishedSteps& steps,
              const Described& d,
              const std::string& target) {
  const calibrate::Predictor& predictor =
      steps.PredictorOf(FindDevice(*d.run->device), target);
  const auto time = predictor.Time(d.workload);
  model::Workload fewer = d.workload;
  --fewer.architecture.layers;
  const auto without = predictor.Time(fewer);
  return {time.forward.total() - without.forward.total(), time.backward_layer};
}

}  // namespace

model::Bytes<> GradientsOf(const model::Workload& w, const std::string& part) {
  const int64_t last = w.architecture.layers + 1;
  const int64_t layer = part == "embedding" ? 0 : part == "head" ? last : 1;
  int64_t elements = 0;
  for (const auto& tensor : model::ParameterTensorsOf(w.architecture)) {
    if (tensor.layer == layer) elements += tensor.elements;
  }
  const int64_t width = w.stack.fusion == model::Fusion::kLightSeq
                            ? model::BytesPerElement(w.precision)
                            : 4;
  return model::Byte(static_cast<double>(elements * width));
}

namespace {

PublishedRing FitRing(const PublishedRuns& runs,
                      const std::vector<const PublishedRow*>& rows,
                      std::string& how) {
  struct Message {
    int64_t ranks;
    model::Bytes<> size;
    double time;
  };
  std::vector<Message> messages;
  for (const PublishedRow* row : rows) {
    const PublishedRun& run = runs.RunOf(*row);
    messages.push_back({run.device_count,
                        GradientsOf(runs.Describe(run).workload, *row->part),
                        row->value.low});
  }
  // Round figures, wide: a NCCL ring step, and half of PCIe 3.0 x16.
  const std::vector<FreeParameter> priors = {{10e-6, 2.0}, {8e9, 1.0}};
  const auto values = FitToPriors(priors, [&](const auto& p) {
    std::vector<double> residuals;
    for (const Message& m : messages) {
      const Seconds<> time = model::RingAllReduceTime<double>(
          m.ranks, m.size, Seconds<>(p[0]), model::BytesPerSecond<>(p[1]));
      residuals.push_back(std::log(ToSeconds(time) / m.time) / kTimeSigma);
    }
    return residuals;
  });
  how += fmt::format("; ring of {:.2f} ms and {:.2f} GB/s from {} all-reduces",
                     values[0] * 1e3,
                     values[1] * 1e-9,
                     messages.size());
  return {Seconds<>(values[0]), model::BytesPerSecond<>(values[1])};
}

}  // namespace

PublishedRing RingWithout(const PublishedRuns& runs,
                          const std::string& target,
                          std::string& how) {
  return FitRing(runs, runs.RowsToFit("allreduce_time", target), how);
}

PublishedRing RingOf(const PublishedRuns& runs,
                     int64_t ranks,
                     const std::string& target,
                     std::string& how) {
  std::vector<const PublishedRow*> rows;
  for (const PublishedRow& row : runs.published().rows) {
    if (row.use == PublishedUse::kFit && row.quantity == "allreduce_time" &&
        runs.RunOf(row).device_count == ranks) {
      rows.push_back(&row);
    }
  }
  return rows.empty() ? RingWithout(runs, target, how)
                      : FitRing(runs, rows, how);
}

// The test of the recursion itself.
Seconds<> MeasuredRecursion(const PublishedRuns& runs, const std::string& run) {
  const auto piece = [&](const std::string& layer) {
    return model::OverlapTask<double>{
        Seconds<>(runs.Value(run + "/layer_time/" + layer)),
        Seconds<>(runs.Value(run + "/allreduce_time/" + layer))};
  };
  std::vector<model::OverlapTask<double>> tasks = {piece("head")};
  for (int i = 0; i < 12; ++i) tasks.push_back(piece("encoder"));
  tasks.push_back(piece("embedding"));
  return model::OverlapBackward(tasks, model::Milliseconds(0.09)).end;
}

PublishedPrediction PartOfStep(PublishedSteps& steps, const PublishedRow& row) {
  const PublishedRuns& runs = steps.runs();
  const Described d = steps.Describe(runs.RunOf(row), row.run);
  PublishedPrediction p;
  const std::string part = row.part.value_or("");
  if (part == "estimated by the document") {
    p.how = "recursion over the measured layer times, gap 0.09 ms";
    p.value = ToSeconds(MeasuredRecursion(runs, row.run));
    return p;
  }
  if (part == "encoder layer") {
    const Layer layer = LayerOf(steps, d, row.run);
    p.value = ToSeconds(row.quantity == "forward_time" ? layer.forward
                                                       : layer.backward);
    p.how = steps.FittedTo(FindDevice(*d.run->device), row.run);
    return p;
  }
  const ParallelStep step = steps.StepOf(d, row.run, p.how);
  if (row.quantity == "step_time") {
    p.value = ToSeconds(step.total);
  } else if (row.quantity == "forward_time") {
    p.value = ToSeconds(step.time.forward.total());
  } else if (row.quantity == "backward_time") {
    p.value = ToSeconds(step.backward);
  } else if (row.quantity == "optimizer_time") {
    p.value = ToSeconds(step.time.optimizer.total());
  } else if (row.quantity == "layer_time") {
    p.value = ToSeconds(part == "embedding" ? step.time.backward_embeddings
                        : part == "head"    ? step.time.backward_head
                                            : step.time.backward_layer);
  } else {
    ENSURE(row.quantity == "allreduce_time", "a part of a step");
    std::string how;
    const PublishedRing ring = RingWithout(runs, row.run, how);
    p.how = how.substr(2);
    p.value = ToSeconds(
        model::RingAllReduceTime<double>(d.run->device_count,
                                         GradientsOf(d.workload, part),
                                         ring.latency,
                                         ring.link));
  }
  return p;
}

}  // namespace trainfare::scenarios
