#include "scenarios/commands/candidate_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace trainfare::scenarios {
namespace {

constexpr size_t kBest = 10;
constexpr size_t kDrawn = 500;  // of all that are viable

std::string LabelOf(const Candidate& c) {
  return fmt::format("{} x {}", c.Name(), c.devices);
}

double Minutes(const Candidate& c) {
  return ToSeconds(c.job->run.total()) / 60.0;
}

Chart BestChart(const std::vector<Candidate>& candidates, Objective objective) {
  Chart chart;
  chart.title = "the best candidates, with their 80 % intervals";
  const double unit = objective == Objective::kTime     ? 60.0
                      : objective == Objective::kEnergy ? 3600.0
                                                        : 1.0;
  chart.x = objective == Objective::kTime     ? Axis{"run", "min"}
            : objective == Objective::kEnergy ? Axis{"energy", "Wh"}
            : objective == Objective::kCost   ? Axis{"cost", "$"}
                                              : Axis{"score", ""};
  chart.names = {"80 % interval", "chosen", "prediction", ""};
  for (const Candidate& c : candidates) {
    if (!c.viable() || chart.bars.size() == kBest) break;
    const ScoreRange score = c.Score(objective);
    chart.bars.push_back({LabelOf(c),
                          score.low / unit,
                          score.high / unit,
                          score.value / unit,
                          c.chosen});
  }
  chart.caption = "The mark is the prediction, the bar its interval.";
  return chart;
}

Chart FrontChart(const std::vector<Candidate>& candidates) {
  Chart chart;
  chart.title = "cost against time";
  chart.x = {"run", "min", true};
  chart.y = {"cost", "$", true};
  chart.names = {"candidates", "chosen", "", ""};
  size_t viable = 0;
  for (const Candidate& c : candidates) {
    if (!c.viable() || !c.cost) continue;
    if (++viable > kDrawn) continue;
    chart.points.push_back(
        {LabelOf(c), Minutes(c), ToDollars(c.cost->usual), c.chosen});
  }
  ChartLine line{"Pareto front", {}};
  for (const Candidate* c : ParetoFront(candidates)) {
    line.points.push_back(
        {LabelOf(*c), Minutes(*c), ToDollars(c->cost->usual), false});
  }
  if (!line.points.empty()) chart.lines.push_back(std::move(line));
  chart.caption = fmt::format(
      "{} candidates that fit and meet the limits. No other one is both "
      "cheaper and faster than one on the line.",
      viable > kDrawn ? fmt::format("The best {} of {}", kDrawn, viable)
                      : "All");
  return chart;
}

}  // namespace

std::vector<Chart> CandidateCharts(const std::vector<Candidate>& candidates,
                                   Objective objective) {
  std::vector<Chart> charts = {BestChart(candidates, objective),
                               FrontChart(candidates)};
  std::erase_if(charts, [](const Chart& chart) { return chart.empty(); });
  return charts;
}

}  // namespace trainfare::scenarios
