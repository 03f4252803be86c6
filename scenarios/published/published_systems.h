#pragma once

// The models behind published figures that are more than a step's time, a file
// for each system. Each predicts a row from runs other than its own, and throws
// InputError where it cannot. Internal to scenarios/.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/profile_fit.h"
#include "model/units.h"
#include "scenarios/published/published_runs.h"
#include "scenarios/published/published_steps.h"

namespace trainfare::scenarios {

// --- Data parallel (published_data_parallel.cc) ---

struct PublishedRing {
  model::Seconds<> latency;
  model::BytesPerSecond<> link;
};

// Bytes of gradients that a part of the model (embedding, encoder, head) sends.
model::Bytes<> GradientsOf(const model::Workload& w, const std::string& part);
// Of all-reduces in runs other than `target`.
PublishedRing RingWithout(const PublishedRuns& runs,
                          const std::string& target,
                          std::string& how);
// Of so many GPUs, calibrated by all-reduces timed on that many, those beside
// the run `target` among them: they say what a link does, not how long a step
// takes. Where there are none, those of other runs.
PublishedRing RingOf(const PublishedRuns& runs,
                     int64_t ranks,
                     const std::string& target,
                     std::string& how);
// The documents' recursion over their own layer times.
model::Seconds<> MeasuredRecursion(const PublishedRuns& runs,
                                   const std::string& run);
// A phase, a layer or an all-reduce of a step.
PublishedPrediction PartOfStep(PublishedSteps& steps, const PublishedRow& row);

// --- One GPU (published_gpu.cc) ---

PublishedPrediction KernelOfStep(PublishedSteps& steps,
                                 const PublishedRow& row);
// Utilisation of the SMs by batch.
PublishedPrediction SmUtilisation(const PublishedRuns& runs,
                                  const PublishedRow& row);

// --- Adan (published_adan.cc) ---

class AdanSteps {
 public:
  // Keeps a reference to `runs`.
  explicit AdanSteps(const PublishedRuns& runs) : runs_(runs) {}
  // One update under a profiler.
  PublishedPrediction Predict(const PublishedRow& row);

 private:
  const std::vector<double>& Parameters(const std::string& target,
                                        size_t& figures);

  const PublishedRuns& runs_;
  std::map<std::string, std::vector<double>> fitted_;
};

// Share of bandwidth and SMs that an update's kernel reaches, by its grid.
PublishedPrediction KernelByGrid(const PublishedRuns& runs,
                                 const PublishedRow& row);

// --- Trainium (published_trainium.cc) ---

bool IsProfile(const PublishedRow& row);

class TrainiumProfiles {
 public:
  // Keeps a reference to `runs`.
  explicit TrainiumProfiles(const PublishedRuns& runs) : runs_(runs) {}
  PublishedPrediction Predict(const PublishedRow& row);
  // A run whose batches each have their own length, compiled as often as they
  // are new, or as often as they change.
  PublishedPrediction Dynamic();

 private:
  const calibrate::ProfileFit& Profiles();
  void AllReduceBandwidth(const PublishedRow& row, PublishedPrediction& p);

  const PublishedRuns& runs_;
  std::optional<calibrate::ProfileFit> profiles_;
};

// Whether the host's compiler manages the graph: its factor rests on these
// very outcomes, so that they are no test of it.
PublishedPrediction CompilesOnHost(const PublishedRuns& runs,
                                   const PublishedRow& row);

// --- Dataflow chips (published_chips.cc) ---

PublishedPrediction Cerebras(const PublishedRuns& runs,
                             const PublishedRow& row);
PublishedPrediction SambaNova(const PublishedRuns& runs,
                              const PublishedRow& row);
PublishedPrediction Groq(const PublishedRuns& runs, const PublishedRow& row);

// --- Energy of runs (published_energy.cc) ---

PublishedPrediction RunEnergy(PublishedSteps& steps, const PublishedRow& row);

// --- Memory (published_memory.cc) ---

PublishedPrediction MemoryOf(const PublishedRuns& runs,
                             const PublishedRow& row);
PublishedPrediction FitsInMemory(const PublishedRuns& runs,
                                 const PublishedRow& row);

// --- Stacks against each other (published_stacks.cc) ---

PublishedPrediction SpeedUp(PublishedSteps& steps, const PublishedRow& row);
PublishedPrediction ProfileRatio(const PublishedRuns& runs,
                                 const PublishedRow& row);

// --- Arithmetic of the documents (published_arithmetic.cc) ---

PublishedPrediction Exactly(double value, std::string how);
PublishedPrediction CostOf(const PublishedRuns& runs, const PublishedRow& row);
PublishedPrediction ScoreOf(const PublishedRuns& runs, const PublishedRow& row);
PublishedPrediction FactOf(const PublishedRuns& runs, const PublishedRow& row);

}  // namespace trainfare::scenarios
