#include "trainer/training/measure.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "hardware/files/json_text.h"
#include "model/error.h"
#include "model/sharding.h"
#include "model/trainer_rules.h"
#include "trainer/device/device.h"
#include "trainer/device/device_memory.h"
#include "trainer/device/out_of_memory.h"
#include "trainer/network/dropout.h"
#include "trainer/network/encoder.h"
#include "trainer/network/make_transformer.h"
#include "trainer/ranks/rank_records.h"
#include "trainer/runtime/failure.h"
#include "trainer/runtime/line_writer.h"
#include "trainer/runtime/signals.h"

namespace trainfare::trainer {
namespace {

using model::Architecture;
using model::InputError;

// Full-length sequences of random words.
class RandomBatches {
 public:
  RandomBatches(const model::Workload& workload,
                const TransformerOptions& options,
                at::Device device,
                uint64_t seed)
      : workload_(workload),
        options_(options),
        device_(device),
        generator_(at::detail::createCPUGenerator(seed)) {}

  Batch Next() {
    const Architecture& architecture = workload_.architecture;
    Batch batch;
    batch.input_ids = Words(workload_.sequence_length);
    if (architecture.family == model::Family::kEncoderDecoder) {
      batch.labels =
          Words(workload_.target_length > 0 ? workload_.target_length
                                            : workload_.sequence_length);
      batch.target_ids = ShiftRight(
          batch.labels, options_.decoder_start_id, options_.padding_id);
    } else if (architecture.family == model::Family::kDecoder) {
      batch.labels = NextTokens(batch.input_ids, {});
    } else if (architecture.head == model::Head::kQuestionAnswering) {
      batch.start_positions =
          Draw(0, workload_.sequence_length, {workload_.batch});
      batch.end_positions =
          Draw(0, workload_.sequence_length, {workload_.batch});
    } else {
      batch.labels = Draw(0, architecture.labels, {workload_.batch});
    }
    return batch;
  }

 private:
  at::Tensor Words(int64_t length) {
    return Draw(options_.padding_id + 1,
                workload_.architecture.vocabulary,
                {workload_.batch, length});
  }
  at::Tensor Draw(int64_t low, int64_t high, at::IntArrayRef sizes) {
    return at::randint(low, high, sizes, generator_, at::kLong).to(device_);
  }

  const model::Workload& workload_;
  const TransformerOptions& options_;
  at::Device device_;
  at::Generator generator_;
};

uint64_t SeedOf(const MeasureRequest& request) {
  return static_cast<uint64_t>(request.seed.value_or(1));
}

}  // namespace

MeasureRequest ParseMeasureRequest(const std::string& text) {
  const MeasureRequest request = ReadMeasureRequest(text);
  model::RequireTrainerRun(request.workload);
  return request;
}

Session& Measurer::SessionFor(const MeasureRequest& request) {
  const model::Workload& workload = request.workload;
  if (session_ && session_workload_->architecture == workload.architecture &&
      session_workload_->stack == workload.stack &&
      session_workload_->trainable == workload.trainable &&
      session_workload_->gradient_checkpointing ==
          workload.gradient_checkpointing &&
      session_workload_->checkpointed_blocks == workload.checkpointed_blocks &&
      session_workload_->precision == workload.precision &&
      session_workload_->optimizer == workload.optimizer &&
      session_workload_->parallel == workload.parallel) {
    session_->Reset(SeedOf(request));
    return *session_;
  }
  session_.reset();
  session_workload_.reset();
  ReleaseMemory(device_);
  TransformerOptions options = DefaultOptions(workload.architecture);
  SetStack(workload, options);
  OptimizerOptions optimizer;
  optimizer.kind = workload.optimizer;
  // Any factor but 1: its groups take the time, not the rates.
  if (workload.optimizer.by_layer) optimizer.layer_decay = 0.95;
  session_ = std::make_unique<Session>(
      MakeTransformer(workload.architecture, options, device_, SeedOf(request)),
      workload.precision,
      optimizer);
  if (ranks_.communicator != nullptr) {
    session_->Join(*ranks_.communicator, ranks_.buckets, workload.parallel);
  }
  session_workload_ = workload;
  return *session_;
}

std::optional<StepRecord> Measurer::Run(const MeasureRequest& request) {
  MeasureRequest asked = request;
  // Ranks that share nothing do the work of one alone, each its own.
  const model::Parallel over =
      model::OverDevices(request.workload.parallel, ranks_.count());
  asked.workload.parallel =
      over.shard == model::Shard::kNone ? model::Parallel() : over;
  return WithMemoryReport(
      asked.workload, Describe(device_).name, [&] { return RunSteps(asked); });
}

namespace {

// Adds a sample for each step, until the last one, a signal, or the end of the
// time that is allowed.
void TimeSteps(const MeasureRequest& request,
               Session& session,
               RandomBatches& batches,
               RunMonitor& monitor,
               StepRecord& record) {
  RankTraining* const parallel = session.ranks();
  const double start = MonotonicSeconds();
  for (int64_t step = 0; step < request.warmup + request.steps; ++step) {
    if (step == request.warmup) monitor.Begin();
    const bool late = MonotonicSeconds() - start > request.max_seconds;
    if (parallel != nullptr) {
      parallel->AskToStop(StopRequested() || (late && step > request.warmup));
    }
    try {
      record.samples.push_back({step,
                                step < request.warmup,
                                session.Step(
                                    request.workload.accumulation,
                                    [&](int64_t) { return batches.Next(); })});
    } catch (const Interrupted&) {
      break;
    }
    monitor.AfterStep();
    if (parallel != nullptr) {
      if (record.samples.back().times.stop) break;
      continue;  // all ranks stop, or none
    }
    if (StopRequested()) break;
    if (step >= request.warmup &&
        MonotonicSeconds() - start > request.max_seconds) {
      break;
    }
  }
}

}  // namespace

std::optional<StepRecord> Measurer::RunSteps(const MeasureRequest& request) {
  const model::Workload& workload = request.workload;
  Session& session = SessionFor(request);
  session.optimizer().ZeroGradients();
  ReleaseMemory(session.transformer().device());
  ResetPeakMemory(session.transformer().device());
  // Each rank draws its own part of the batch, and its own masks.
  const uint64_t own_seed =
      SeedOf(request) + static_cast<uint64_t>(ranks_.rank());
  SeedDropout(own_seed);
  RandomBatches batches(
      workload, session.transformer().options(), device_, own_seed);

  StepRecord record;
  record.device = Describe(device_);
  record.workload = workload;
  record.seed = SeedOf(request);
  record.parameters = session.transformer().parameter_count();
  record.ranks = session.DescribeRanks();
  session.set_time_parts(layers_ || request.layers.value_or(false));
  if (ranks_.several()) ranks_.communicator->Barrier();
  RunMonitor monitor(record.device.bus_id);
  TimeSteps(request, session, batches, monitor, record);
  // A run that a signal cut short of its first timed step is no measurement.
  if (StopRequested() &&
      (record.samples.empty() || record.samples.back().warmup)) {
    return std::nullopt;
  }
  if (monitor.begun()) record.conditions = monitor.End();
  session.AddOutcome(record);
  RequireDeviceTime(record);
  return record;
}

namespace {

// Whether all ranks find it: what is wrong with a request. What fails on one
// alone (memory) must end all, since the others wait in a collective.
bool FailsEverywhere(const std::exception& error) {
  return dynamic_cast<const InputError*>(&error) != nullptr &&
         dynamic_cast<const OutOfMemory*>(&error) == nullptr;
}

bool IsBlank(const std::string& line) {
  return line.find_first_not_of(" \t\r") == std::string::npos;
}

// A plan that is a file, and not what another program writes to as it reads the
// answers, is checked before its first run. Throws InputError
// "file:line:col: ..".
void CheckPlanFile(const std::string& plan) {
  if (!std::filesystem::is_regular_file(plan)) return;
  std::ifstream file(plan);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (IsBlank(line)) continue;
    const nlohmann::json value = hardware::ParseJson(line, plan, number);
    if (!value.is_object()) {
      throw InputError(plan,
                       number,
                       1,
                       fmt::format("expected a request, an object, got {}",
                                   value.type_name()));
    }
  }
}

// The lines of a plan, as its first rank reads them.
class PlanLines {
 public:
  PlanLines(const std::string& plan, const RankGroup& ranks) : ranks_(ranks) {
    if (plan == "-" || !first()) return;
    {
      const NothingToLose opening;  // a pipe may have no writer
      file_.open(plan);
    }
    if (!file_) {
      throw InputError(fmt::format("{}: cannot read this plan", plan));
    }
    CheckPlanFile(plan);
    requests_ = &file_;
  }

  bool Next(std::string& line) {
    if (!first()) {
      const std::optional<std::string> published =
          ranks_.communicator->NextPublished();
      line = published.value_or("");
      return published.has_value();
    }
    bool got = false;
    {
      const NothingToLose waiting;
      got = static_cast<bool>(std::getline(*requests_, line));
    }
    if (ranks_.several()) {
      ranks_.communicator->Publish(got ? std::optional(line) : std::nullopt);
    }
    return got;
  }

  // Lets the other ranks go.
  void End() {
    if (ranks_.several() && first()) {
      ranks_.communicator->Publish(std::nullopt);
    }
  }

 private:
  bool first() const { return ranks_.rank() == 0; }

  const RankGroup& ranks_;
  std::ifstream file_;
  std::istream* requests_ = &std::cin;
};

}  // namespace

int AnswerPlan(
    const std::string& plan,
    const std::string& out,
    const std::function<std::vector<std::string>(const MeasureRequest&)>&
        answer,
    const RankGroup& ranks) {
  PlanLines lines(plan, ranks);
  const std::unique_ptr<LineWriter> records =
      OpenRecords(out, ranks.communicator);
  for (std::string line; lines.Next(line);) {
    if (IsBlank(line)) continue;
    std::vector<std::string> answers;
    try {
      answers = answer(ParseMeasureRequest(line));
    } catch (const std::exception& error) {
      if (!IsBadRequest(error)) throw;
      if (ranks.several() && !FailsEverywhere(error)) throw;
      answers = {ErrorJsonLine(line, FirstLine(error))};
    }
    if (records) {
      for (std::string& text : answers) records->Write(std::move(text));
    }
    if (StopRequested()) {
      lines.End();
      return kInterruptedExit;
    }
  }
  return 0;
}

int RunMeasurePlan(const std::string& plan,
                   const std::string& out,
                   at::Device device,
                   bool layers,
                   const RankGroup& ranks) {
  Measurer measurer(device, layers, ranks);
  const auto answer = [&](const MeasureRequest& request) {
    std::vector<std::string> answers;
    if (const auto record = measurer.Run(request)) {
      answers.push_back(ToJsonLine(*record));
    }
    return answers;
  };
  return AnswerPlan(plan, out, answer, ranks);
}

}  // namespace trainfare::trainer
