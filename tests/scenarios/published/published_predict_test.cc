// What the table of published figures has is what `predict` answers for the
// run, of every quantity and of every run.

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "calibrate/records/assumed.h"
#include "model/error.h"
#include "scenarios/commands/predict.h"
#include "scenarios/published/quantities.h"
#include "tests/scenarios/published/shipped.h"

namespace trainfare::scenarios {
namespace {

using calibrate::PublishedRow;
using calibrate::PublishedRun;
using nlohmann::json;

// `predict FILE.yaml#RUN`, once a run; null: it is refused.
const json& PredictionOf(const std::string& run) {
  static std::map<std::string, json> answers;
  const auto found = answers.find(run);
  if (found != answers.end()) return found->second;
  PredictOptions options;
  const std::string& position = AllPublished().runs.at(run).position;
  options.scenario = position.substr(0, position.find(".yaml") + 5) + "#" + run;
  json answer;
  try {
    answer = json::parse(Predict(options).json)["predictions"][0];
  } catch (const model::InputError&) {
    // What the device does not do at all has no prediction.
  }
  return answers.emplace(run, std::move(answer)).first->second;
}

// A figure of the answer, with the ends of its interval where it has them.
struct SaidFigure {
  double value = 0;
  std::optional<double> low = {};
  std::optional<double> high = {};
};

SaidFigure Plain(const json& of, const std::string& key) {
  return {of.at(key).get<double>()};
}

// "run_time" and "_s": run_time_s, run_time_low_s, run_time_high_s.
SaidFigure WithEnds(const json& p,
                    const std::string& stem,
                    const std::string& unit) {
  return {p.at(stem + unit).get<double>(),
          p.at(stem + "_low" + unit).get<double>(),
          p.at(stem + "_high" + unit).get<double>()};
}

// A time of a phase, and the interval of all of that phase around it.
SaidFigure OfPhase(const json& p, const std::string& phase, double time) {
  const json& ends = p.at("phase_intervals").at(phase);
  return {
      time, ends.at("low_s").get<double>(), ends.at("high_s").get<double>()};
}

// A rate over a time, whose longer end is its lower one.
SaidFigure OverTime(double rate, const SaidFigure& time) {
  return {rate, rate * time.value / *time.high, rate * time.value / *time.low};
}

using FigureOfJson =
    std::function<SaidFigure(const json& p, const PublishedRun& run)>;

FigureOfJson Key(const std::string& key) {
  return [key](const json& p, const PublishedRun&) { return Plain(p, key); };
}
FigureOfJson KeyWithEnds(const std::string& stem, const std::string& unit) {
  return [stem, unit](const json& p, const PublishedRun&) {
    return WithEnds(p, stem, unit);
  };
}
FigureOfJson RateKey(const std::string& key) {
  return [key](const json& p, const PublishedRun&) {
    return OverTime(p.at(key).get<double>(), WithEnds(p, "step_time", "_s"));
  };
}
FigureOfJson Engine(const std::string& key) {
  return [key](const json& p, const PublishedRun&) {
    return Plain(p.at("engines"), key);
  };
}

SaidFigure SaidForward(const json& p) {
  return OfPhase(p, "forward", p.at("phases").at("forward_s").get<double>());
}

SaidFigure SaidBackward(const json& p, const PublishedRun&) {
  const json& phases = p.at("phases");
  return OfPhase(p,
                 "backward",
                 phases.at("backward_s").get<double>() +
                     phases.at("communication_s").get<double>() +
                     phases.at("slowed_computation_s").get<double>());
}

SaidFigure SaidOptimizer(const json& p, const PublishedRun&) {
  return OfPhase(
      p, "optimizer", p.at("phases").at("optimizer_s").get<double>());
}

// As sure as the update that it is a part of.
SaidFigure SaidActiveTime(const json& p, const PublishedRun& run) {
  const SaidFigure update = SaidOptimizer(p, run);
  const double busy = p.at("optimizer_busy_s").get<double>();
  return {busy,
          busy * *update.low / update.value,
          busy * *update.high / update.value};
}

SaidFigure SaidOnChip(const json& p, const PublishedRun&) {
  const SaidFigure forward = SaidForward(p);
  const double samples =
      p.at("samples_per_s").get<double>() * p.at("step_time_s").get<double>();
  return OverTime(samples / forward.value, forward);
}

SaidFigure SaidBatch(const json& p, const PublishedRun& run) {
  const json& largest = p.at("largest_batch");
  const int64_t batch = largest.is_null() ? 0 : largest.get<int64_t>();
  return {static_cast<double>(batch / run.cores_per_batch)};
}

// Tensors: what the driver and the framework's own code take is not counted.
SaidFigure SaidPeak(const json& p, const PublishedRun&) {
  SaidFigure peak = Plain(p, "memory_bytes");
  for (const json& term : p.at("memory_terms")) {
    if (term.at("name") != "framework context") continue;
    peak.value -= term.at("memory_bytes").get<double>();
  }
  return peak;
}

// Over the ring inside a host.
SaidFigure SaidAllReduce(const json& p,
                         const PublishedRun& run,
                         const PublishedRow& row) {
  const json& ring = p.at("ring");
  const auto ranks = static_cast<double>(run.device_count);
  const double sending =
      row.size->base() / (ranks * ring.at("link_bytes_per_s").get<double>());
  return {2.0 * (ranks - 1.0) *
          (ring.at("step_latency_s").get<double>() + sending)};
}

SaidFigure SaidSpeedUp(const json& p, const PublishedRun& run) {
  return {PredictionOf(*run.against_run).at("run_time_s").get<double>() /
          p.at("run_time_s").get<double>()};
}

const std::map<std::string, FigureOfJson>& FiguresOfJson() {
  static const std::map<std::string, FigureOfJson> figures = {
      {"run_time", KeyWithEnds("run_time", "_s")},
      {"step_time", KeyWithEnds("step_time", "_s")},
      {"energy", KeyWithEnds("energy", "_j")},
      {"throughput", RateKey("samples_per_s")},
      {"achieved_flops", RateKey("flops_per_s")},
      {"mfu", Key("mfu")},
      {"flops_per_step", Key("step_flops")},
      {"arithmetic_intensity", Key("flops_per_byte")},
      {"utilisation.bandwidth", Key("bandwidth_share")},
      {"gemm_share", Key("matrix_share")},
      {"launches", Key("optimizer_launches")},
      {"active_ratio", Key("optimizer_busy_share")},
      {"memory_used", Key("memory_bytes")},
      {"utilisation.tensor", Engine("tensor")},
      {"utilisation.vector", Engine("vector")},
      {"utilisation.scalar", Engine("scalar")},
      {"utilisation.dma", Engine("dma")},
      {"spill_traffic", Engine("spill_bytes")},
      {"backward_time", SaidBackward},
      {"optimizer_time", SaidOptimizer},
      {"active_time", SaidActiveTime},
      {"on_chip_throughput", SaidOnChip},
      {"largest_batch", SaidBatch},
      {"failing_batch", SaidBatch},
      {"peak_memory", SaidPeak},
      {"speedup", SaidSpeedUp},
  };
  return figures;
}

void CheckAlike(const SaidFigure& said, const PublishedAnswer& answer) {
  const auto alike = [](double one, double other) {
    return std::abs(one - other) <= 1e-12 * std::abs(other);
  };
  CHECK(alike(*answer.value, said.value));
  if (said.low) CHECK(alike(*answer.low, *said.low));
  if (said.high) CHECK(alike(*answer.high, *said.high));
}

}  // namespace

TEST_CASE("of whose run something is assumed no answer is measured") {
  int64_t answered = 0;
  for (const auto& entry : AllPublished().runs) {
    const PublishedRun& run = entry.second;
    if (!run.device || !calibrate::MakesStep(run.assumed)) continue;
    const json& p = PredictionOf(entry.first);
    if (!p.contains("grade")) continue;
    CAPTURE(entry.first);
    CHECK(p["grade"] != "measured");
    ++answered;
  }
  CHECK(answered > 60);
}

TEST_CASE("the table's answer is the command's") {
  const FitFolder hermetic;
  // To the last bit, as `predict` prints them.
  const std::set<std::string> exact = {
      "run_time", "step_time", "energy", "mfu"};
  const auto& shipped =
      PublishedPredictionsBy(PublishedProtocol::kAsShipped).rows;
  std::set<std::string> answered;
  std::set<std::string> compared;
  std::map<std::string, int> of_quantity;
  for (size_t i = 0; i < shipped.size(); ++i) {
    const PublishedRow& row = AllPublished().rows[i];
    const PublishedAnswer& answer = shipped[i].answer;
    if (!shipped[i].predicted() || shipped[i].checks_data) continue;
    CAPTURE(row.id);
    answered.insert(row.run);
    const json& p = PredictionOf(row.run);
    if (row.quantity == "fits") {
      CHECK((!p.is_null() && p.at("fits") == true) == *answer.fits);
    } else if (row.quantity == "allreduce_time") {
      CheckAlike(SaidAllReduce(p, AllPublished().RunOf(row), row), answer);
    } else {
      const auto figure = FiguresOfJson().find(row.quantity);
      REQUIRE(figure != FiguresOfJson().end());
      const SaidFigure said =
          figure->second(p, AllPublished().runs.at(row.run));
      CheckAlike(said, answer);
      if (exact.contains(row.quantity)) {
        CHECK(said.value == *answer.value);
        CHECK(said.low == answer.low);
        CHECK(said.high == answer.high);
      }
    }
    compared.insert(row.run);
    ++of_quantity[row.quantity];
  }
  CHECK(compared == answered);
  CHECK(compared.size() >= 79);
  CHECK(of_quantity["run_time"] >= 50);
  for (const auto& figure : FiguresOfJson()) {
    CAPTURE(figure.first);
    CHECK(of_quantity[figure.first] > 0);
  }
}

}  // namespace trainfare::scenarios
