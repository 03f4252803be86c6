#include "calibrate/session/several_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/records/measurement.h"
#include "calibrate/session/plan.h"
#include "calibrate/session/rank_plan.h"
#include "calibrate/session/requests.h"
#include "calibrate/session/trainer_process.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/workload.h"

namespace trainfare::calibrate::internal {
namespace {

using model::InputError;

// What ranks share in runs over them: nothing, then what is asked for.
std::vector<model::Shard> AskedShards(
    const std::vector<model::Workload>& towards) {
  std::vector<model::Shard> shards = {model::Shard::kNone};
  for (const model::Workload& asked : towards) {
    const model::Shard shard = asked.parallel.shard;
    if (std::find(shards.begin(), shards.end(), shard) == shards.end()) {
      shards.push_back(shard);
    }
  }
  return shards;
}

// One number of ranks, until so many seconds of the session are spent.
class RanksTogether {
 public:
  RanksTogether(int64_t ranks,
                bool on_host,
                double until_s,
                SessionTrainer& trainer,
                SessionRuns& runs,
                RecordFile& records,
                ProgressLog& progress)
      : ranks_(ranks),
        on_host_(on_host),
        until_s_(until_s),
        trainer_(trainer),
        runs_(runs),
        records_(records),
        progress_(progress) {}

  void TimeCollectives(bool of_shards) {
    std::vector<model::Collective> collectives = {
        model::Collective::kAllReduce};
    if (of_shards) {
      collectives.push_back(model::Collective::kAllGather);
      collectives.push_back(model::Collective::kReduceScatter);
    }
    const std::vector<int64_t> sizes =
        SizesToTime(ranks_, runs_.collectives(), collectives, on_host_);
    if (sizes.empty() || trainer_.SpentSeconds() >= until_s_) return;
    trainer_.TakeAll(trainer_.CollectivesCommand(collectives, sizes, ranks_),
                     fmt::format("collectives over {} ranks", ranks_),
                     until_s_,
                     [this](const std::string& line) { TakeCollective(line); });
  }

  // Workloads that one rank ran, so that what differs is the ranks.
  void Run(model::Shard shard) {
    std::optional<TrainerProcess> process;
    const int64_t slower = on_host_ ? ranks_ : 1;
    for (const PlannedRun& run :
         RunsOverRanks(runs_.kept().runs, ranks_, slower, shard)) {
      const double left_s = until_s_ - trainer_.SpentSeconds();
      if (trainer_.interrupted() || left_s <= 0.0) return;
      if (model::ToSeconds(run.expected_duration) > left_s) continue;
      if (!process) process.emplace(trainer_.MeasureCommand(ranks_));
      const std::optional<std::string> line =
          trainer_.Ask(*process, run, runs_.new_runs() + 1, left_s);
      if (line) TakeRun(*line, run);
    }
  }

 private:
  void TakeCollective(const std::string& line) {
    MeasurementLine answer =
        ParseMeasurementLine(line, "answer of the trainer", 1);
    if (!answer.collective || answer.collective->ranks != ranks_) {
      throw InputError(
          "the trainer answers with something else than collectives over these "
          "ranks");
    }
    records_.Append(line);
    runs_.Add(std::move(*answer.collective));
  }

  void TakeRun(const std::string& line, const PlannedRun& asked) {
    MeasurementLine answer =
        ParseMeasurementLine(line,
                             "answer of the trainer",
                             static_cast<int>(runs_.all().size()) + 1);
    const std::string words =
        fmt::format("{} ranks, {}", ranks_, RunWords(asked.workload));
    if (answer.refused) {
      progress_.Warn(fmt::format(
          "{}: the trainer refuses: {}", words, answer.refused->message));
      return;
    }
    if (!answer.run || answer.run->device_count != ranks_) {
      throw InputError(
          "the trainer answers with something else than a run over these "
          "ranks");
    }
    records_.Append(line);
    runs_.Add(std::move(*answer.run));
    trainer_.Report(runs_.new_runs(), words, runs_.all().back());
  }

  int64_t ranks_;
  bool on_host_;
  double until_s_;
  SessionTrainer& trainer_;
  SessionRuns& runs_;
  RecordFile& records_;
  ProgressLog& progress_;
};

}  // namespace

void MeasureRanks(const CalibrationTarget& target,
                  const CalibrateOptions& options,
                  SessionTrainer& trainer,
                  SessionRuns& runs,
                  RecordFile& records,
                  ProgressLog& progress) {
  const std::vector<model::Shard> shards = AskedShards(options.towards);
  const double start_s = trainer.SpentSeconds();
  // Their share is theirs, also where a calibration that goes on has used up
  // the rest.
  const double each_s =
      std::max(trainer.budget_s() - start_s, kRankShare * trainer.budget_s()) /
      static_cast<double>(std::max<size_t>(target.ranks.size(), 1));
  double until_s = start_s;
  for (const int64_t ranks : target.ranks) {
    if (trainer.interrupted()) return;
    until_s += each_s;
    RanksTogether together(ranks,
                           hardware::KindOf(target.device).is_host,
                           until_s,
                           trainer,
                           runs,
                           records,
                           progress);
    try {
      together.TimeCollectives(/*of_shards=*/shards.size() > 1);
      for (const model::Shard shard : shards) {
        if (trainer.interrupted()) break;
        together.Run(shard);
      }
    } catch (const InputError& error) {
      progress.Warn(
          fmt::format("{} ranks are not measured: {}", ranks, error.what()));
    }
  }
}

}  // namespace trainfare::calibrate::internal
