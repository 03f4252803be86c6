#include "trainer/training/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "model/error.h"
#include "trainer/device/device.h"
#include "trainer/device/device_memory.h"
#include "trainer/network/dropout.h"
#include "trainer/network/pretrained.h"
#include "trainer/ranks/rank_records.h"
#include "trainer/record/record.h"
#include "trainer/runtime/line_writer.h"
#include "trainer/runtime/signals.h"
#include "trainer/training/checkpoint_file.h"
#include "trainer/training/feed.h"
#include "trainer/training/model_files.h"
#include "trainer/training/resolved_options.h"
#include "trainer/training/session.h"
#include "trainer/training/train_steps.h"
#include "trainer/training/training_data.h"

namespace trainfare::trainer {
namespace {

using model::InputError;

double Accuracy(const Session& session,
                const Transformer& transformer,
                const std::vector<Example>& examples,
                const TrainOptions& options,
                Communicator* ranks) {
  const std::vector<size_t> order = InOrder(examples.size());
  int64_t right = 0;
  auto [first, end] = Share(ranks).Of(0, examples.size());
  while (first < end) {
    const size_t last =
        std::min(first + static_cast<size_t>(options.workload.batch), end);
    const Batch data =
        MakeBatch(examples,
                  order,
                  first,
                  last,
                  PaddedLengths(examples, order, first, last, options),
                  transformer);
    right +=
        session.Predict(data).argmax(-1).eq(data.labels).sum().item<int64_t>();
    first = last;
  }
  if (ranks != nullptr && ranks->world_size() > 1) {
    const at::Tensor sum = at::full(
        {1}, right, at::TensorOptions(transformer.device()).dtype(at::kLong));
    ranks->AllReduce(sum)->Wait();
    right = sum.item<int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(examples.size());
}

// What a record says before the first step.
StepRecord RecordOf(const TrainOptions& options,
                    const model::Workload& workload,
                    at::Device device,
                    Session& session) {
  StepRecord record;
  record.device = Describe(device);
  record.workload = workload;
  record.seed = options.seed;
  record.parameters = session.transformer().parameter_count();
  record.ranks = session.DescribeRanks();
  return record;
}

void PrintResult(const StepRecord& record) {
  std::cout << fmt::format("steps {}  loss {:.6f}",
                           record.samples.size(),
                           record.samples.back().times.loss);
  if (record.evaluation_accuracy) {
    std::cout << fmt::format("  accuracy {:.4f}", *record.evaluation_accuracy);
  }
  std::cout << '\n';
}

InputError LostWeights(Ending ending, const Sample& last) {
  return InputError(
      fmt::format("step {}: {}; nothing is saved from here on; hint: a lower "
                  "--learning-rate, or --clip-norm",
                  last.step + 1,
                  ending == Ending::kDiverged
                      ? fmt::format("the loss is {}", last.times.loss)
                      : "its update left parameters that are not finite"));
}

}  // namespace

int Train(const TrainOptions& given,
          at::Device device,
          Communicator* ranks,
          const BucketOptions& buckets) {
  const Share share(ranks);
  const TrainOptions options = Resolved(given);
  const PretrainedConfig config = Configure(options.model, options.labels);
  const model::Workload workload =
      WorkloadOf(options, config.architecture, share);
  const TrainingData data = ReadData(options, config, share);
  // Opened before training, so that a wrong path fails in the first second.
  std::unique_ptr<LineWriter> records;
  if (!options.out.empty()) records = OpenRecords(options.out, ranks);

  Session session(OpenModel(options, config, workload, device, share),
                  options.workload.precision,
                  OptimizerOf(options));
  if (ranks != nullptr) session.Join(*ranks, buckets, workload.parallel);
  SeedDropout(DropoutSeed(options, share));
  Feed feed(data.examples, options, share);
  const int64_t steps = StepsOf(options, feed);
  StepRecord record = RecordOf(options, workload, device, session);

  CheckpointFile checkpoint(
      options,
      RunIdentity(options, workload, steps, share.world_size, data.examples),
      share);
  checkpoint.Resume(steps, session, feed);
  if (ranks != nullptr) {
    CheckSameStep(*ranks, checkpoint.step(), options, device);
  }

  session.set_time_parts(options.layers);
  ResetPeakMemory(session.transformer().device());
  const Ending ending =
      TrainSteps(options, steps, share, feed, session, checkpoint, record);
  session.AddOutcome(record);
  if (session.ranks() != nullptr && !WeightsAreLost(ending)) {
    session.ranks()->GatherParameters();
  }
  if (!data.evaluation.empty() && ending == Ending::kDone) {
    record.evaluation_accuracy = Accuracy(
        session, session.transformer(), data.evaluation, options, ranks);
  }
  if (records && !record.samples.empty()) records->Write(ToJsonLine(record));
  if (WeightsAreLost(ending)) {
    throw LostWeights(ending, record.samples.back());
  }
  if (!options.save.empty() && share.first()) {
    SaveModel(options, session.transformer());
  }
  if (!record.samples.empty() && options.out != "-" && share.first()) {
    PrintResult(record);
  }
  return ending == Ending::kStopped ? kInterruptedExit : 0;
}

}  // namespace trainfare::trainer
