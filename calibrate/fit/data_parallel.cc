#include "calibrate/fit/data_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibrate/fit/fit_options.h"
#include "calibrate/records/statistics.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;
using model::Seconds;

// Median over the timed steps of what `get` finds in each.
template <class Get>
Seconds<> MedianOver(const MeasuredRun& run, const Get& get) {
  std::vector<double> values;
  for (const Sample& sample : run.samples) {
    if (!sample.warmup) values.push_back(model::ToSeconds(get(sample)));
  }
  return Seconds<>(Median(values));
}

// Their median over half an all-reduce of the same size by the ring, beside
// computation or without; nullopt where none was timed.
std::optional<CollectiveFactor> FactorOf(
    model::Collective collective,
    const std::vector<MeasuredCollective>& collectives,
    const RankNetwork& network) {
  std::vector<double> logs;
  for (const MeasuredCollective& one : collectives) {
    if (one.ranks != network.ranks || one.collective != collective) continue;
    const model::RingLevel<double>& ring =
        one.computation_speed ? network.beside.ring : network.alone.ring;
    logs.push_back(std::log(
        one.time /
        model::RingTime(
            collective, one.ranks, one.size, ring.step_latency, ring.link)));
  }
  if (logs.empty()) return std::nullopt;
  const double median = Median(logs);
  double squares = 0;
  for (const double log : logs) squares += (log - median) * (log - median);
  return CollectiveFactor{std::exp(median),
                          ScatterWithPrior(squares,
                                           static_cast<double>(logs.size() - 1),
                                           FitOptions().model_sigma)};
}

}  // namespace

BackwardPass MedianBackward(const MeasuredRun& run) {
  for (const Sample& sample : run.samples) {
    if (!sample.bucket_ready.empty() && sample.backward &&
        sample.backward_compute) {
      continue;
    }
    throw InputError(fmt::format(
        "run {}: expected times of gradient buckets, got none; hint: the "
        "trainer writes them where a launcher starts it, also for one rank",
        run.id));
  }
  BackwardPass pass;
  for (size_t i = 0; i < run.buckets.size(); ++i) {
    pass.bucket_ready.push_back(
        MedianOver(run, [&](const Sample& s) { return s.bucket_ready[i]; }));
    pass.communication.push_back(MedianOver(run, [&](const Sample& s) {
      return s.bucket_end[i] - s.bucket_start[i];
    }));
  }
  pass.compute_end =
      MedianOver(run, [](const Sample& s) { return *s.backward_compute; });
  pass.end = MedianOver(run, [](const Sample& s) { return *s.backward; });
  return pass;
}

std::vector<model::OverlapTask<double>> OverlapTasks(
    const BackwardPass& pass, const std::vector<Seconds<>>& communication) {
  ENSURE(communication.size() == pass.bucket_ready.size(), "one time a bucket");
  std::vector<model::OverlapTask<double>> tasks;
  Seconds<> before;
  for (size_t i = 0; i < communication.size(); ++i) {
    // Buckets leave in order: one that is ready early waits for those before.
    const Seconds<> ready = std::max(before, pass.bucket_ready[i]);
    tasks.push_back({ready - before, communication[i]});
    before = ready;
  }
  tasks.push_back({std::max(pass.compute_end, before) - before, Seconds<>()});
  return tasks;
}

Seconds<> RecursionBackward(const MeasuredRun& run) {
  MedianBackward(run);  // throws where there are no times
  return MedianOver(run, [](const Sample& sample) {
    BackwardPass pass;
    pass.bucket_ready = sample.bucket_ready;
    pass.compute_end = *sample.backward_compute;
    for (size_t i = 0; i < sample.bucket_ready.size(); ++i) {
      pass.communication.push_back(sample.bucket_end[i] -
                                   sample.bucket_start[i]);
    }
    return model::OverlapBackward(OverlapTasks(pass, pass.communication),
                                  Seconds<>())
        .end;
  });
}

RankNetwork FitNetwork(const std::vector<MeasuredCollective>& collectives,
                       int64_t ranks) {
  std::vector<TimedAllReduce> alone;
  std::vector<TimedAllReduce> beside;
  double computed_s = 0;
  double time_s = 0;
  std::vector<double> speeds;
  for (const MeasuredCollective& one : collectives) {
    if (one.ranks != ranks || one.collective != model::Collective::kAllReduce) {
      continue;
    }
    if (!one.computation_speed) {
      alone.push_back({one.ranks, one.size, one.time});
      continue;
    }
    beside.push_back({one.ranks, one.size, one.time});
    time_s += model::ToSeconds(one.time);
    speeds.push_back(*one.computation_speed);
    computed_s += *one.computation_speed * model::ToSeconds(one.time);
  }
  RankNetwork network;
  network.ranks = ranks;
  network.alone = FitRing(alone);
  network.beside = network.alone;
  if (!beside.empty()) {
    network.beside = FitRing(beside);
    network.beside_timed = true;
    network.speed = std::min(computed_s / time_s, 1.0);
    double squares = 0;
    for (const double speed : speeds) {
      squares += (speed - network.speed) * (speed - network.speed);
    }
    // The error of the mean, as if all sizes said the same of it.
    const auto count = static_cast<double>(speeds.size());
    network.speed_error = std::sqrt(squares / count / count);
  }
  network.all_gather =
      FactorOf(model::Collective::kAllGather, collectives, network);
  network.reduce_scatter =
      FactorOf(model::Collective::kReduceScatter, collectives, network);
  return network;
}

RankStep PredictRanks(const MeasuredRun& one, const RankNetwork& network) {
  const BackwardPass alone = MedianBackward(one);
  const model::RankNetwork<double> formula = network.Formula();
  std::vector<model::BackwardPiece<double>> pieces;
  RankStep step;
  for (const model::OverlapTask<double>& task :
       OverlapTasks(alone, alone.communication)) {
    model::BackwardPiece<double> piece{task.compute, {}, 0};
    // The last piece sends nothing.
    if (pieces.size() < one.buckets.size()) {
      piece.sent = one.buckets[pieces.size()];
      piece.transfers = 1;
    }
    step.communication +=
        model::SendingTime(network.ranks, piece, formula.alone);
    pieces.push_back(piece);
  }
  const model::OverlapTime<double> end =
      model::BackwardOverRanks(pieces, network.ranks, formula);
  step.compute_end = end.compute_end;
  // What one rank's backward takes after its last gradient stays.
  step.backward = end.end + alone.exposed();
  step.exposed = end.exposed();
  step.step = MedianOver(one, [](const Sample& s) { return s.step; }) -
              alone.end + step.backward;
  return step;
}

RankStep MeasuredRanks(const MeasuredRun& run) {
  const BackwardPass pass = MedianBackward(run);
  RankStep step;
  step.compute_end = pass.compute_end;
  step.backward = pass.end;
  step.exposed = pass.exposed();
  for (const Seconds<> one : pass.communication) step.communication += one;
  step.step = MedianOver(run, [](const Sample& s) { return s.step; });
  return step;
}

}  // namespace trainfare::calibrate
