#include "scenarios/published/published_prediction.h"

#include "model/error.h"
#include "scenarios/published/published_runs.h"
#include "scenarios/published/published_steps.h"
#include "scenarios/published/published_systems.h"

namespace trainfare::scenarios {
namespace {

using model::InputError;

// Which model answers for a row.
class PublishedPredictor {
 public:
  PublishedPredictor(const Published& published, PublishedProtocol protocol)
      : runs_(published, protocol),
        steps_(runs_),
        adan_(runs_),
        trainium_(runs_) {}

  PublishedPrediction Predict(const PublishedRow& row) {
    PublishedPrediction prediction;
    try {
      prediction = Answer(row);
    } catch (const InputError& error) {
      prediction = {};
      prediction.reason = error.what();
    }
    return prediction;
  }

 private:
  PublishedPrediction Answer(const PublishedRow& row) {
    const PublishedRun& run = runs_.RunOf(row);
    if (row.use == PublishedUse::kShow) {
      throw InputError(
          "kept as data: accuracy, loss and occupancy are never "
          "predicted");
    }
    if (row.use == PublishedUse::kNone) {
      throw InputError("set aside: wrong or contradicted in its source");
    }
    if (row.group == "cost") return CostOf(runs_, row);
    if (row.group == "score") return ScoreOf(runs_, row);
    if (row.group == "facts") return FactOf(runs_, row);
    if (row.group == "fits") return FitsInMemory(runs_, row);
    if (row.group == "memory") return MemoryOf(runs_, row);
    if (IsOneStep(row.run) && row.group == "energy") return adan_.Predict(row);
    if (row.group == "energy") return RunEnergy(steps_, row);
    if (row.group == "cerebras") return Cerebras(runs_, row);
    if (row.group == "sambanova") return SambaNova(runs_, row);
    if (row.group == "groq") return Groq(runs_, row);
    if (row.group == "adan_kernels") return KernelByGrid(runs_, row);
    if (IsOneStep(row.run)) return adan_.Predict(row);
    if (row.group == "profile_ratios") return ProfileRatio(runs_, row);
    if (row.group == "speedups") return SpeedUp(steps_, row);
    if (row.quantity == "utilisation.sm") return SmUtilisation(runs_, row);
    if (IsProfile(row)) return trainium_.Predict(row);
    if (row.quantity == "estimate_error") {
      return Exactly(ToSeconds(MeasuredRecursion(runs_, row.run)) /
                             runs_.Value(row.run + "/backward_time/measured") -
                         1.0,
                     "recursion over measured layers against measured");
    }
    if (row.quantity == "run_time") {
      if (run.setting == "padding=dynamic") return trainium_.Dynamic();
      return steps_.RunTime(row);
    }
    if (row.quantity == "epoch_time") {
      PublishedPrediction p = steps_.RunTime(row);
      p.value = *p.value / static_cast<double>(*run.epochs);
      return p;
    }
    if (row.group == "kernel_times" && row.part != "encoder layer") {
      return KernelOfStep(steps_, row);
    }
    return PartOfStep(steps_, row);
  }

  PublishedRuns runs_;
  PublishedSteps steps_;
  AdanSteps adan_;
  TrainiumProfiles trainium_;
};

}  // namespace

std::vector<PublishedPrediction> PredictPublished(const Published& published,
                                                  PublishedProtocol protocol) {
  PublishedPredictor predictor(published, protocol);
  std::vector<PublishedPrediction> predictions;
  predictions.reserve(published.rows.size());
  for (const PublishedRow& row : published.rows) {
    predictions.push_back(predictor.Predict(row));
  }
  return predictions;
}

}  // namespace trainfare::scenarios
