// What follows from printed figures alone: costs, scores, facts of devices.

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "model/error.h"
#include "scenarios/published/published_systems.h"

namespace trainfare::scenarios {

using hardware::Device;
using model::InputError;

namespace {

double PriceOf(const PublishedRun& run) {
  if (!run.price) throw InputError("the price of the day is not stated");
  return run.price->base() * static_cast<double>(run.device_count);
}

}  // namespace

PublishedPrediction Exactly(double value, std::string how) {
  PublishedPrediction p;
  p.value = value;
  p.how = std::move(how);
  return p;
}

PublishedPrediction CostOf(const PublishedRuns& runs, const PublishedRow& row) {
  const PublishedRun& run = runs.RunOf(row);
  if (row.quantity == "price") {
    return Exactly(PriceOf(run), "price of the run");
  }
  if (row.quantity == "billing_units_per_hour") {
    return Exactly(2.75 / runs.Value(run.name + "/billing_unit_price"),
                   "price over that of a unit");
  }
  if (row.quantity == "billing_unit_price") {
    return Exactly(2.75 / runs.Value(run.name + "/billing_units_per_hour"),
                   "price over units an hour");
  }
  if (row.quantity == "epoch_cost") {
    return Exactly(runs.Value(run.name + "/epoch_time") * PriceOf(run),
                   "printed time at the price of the day");
  }
  if (runs.published().Find(run.name + "/epoch_cost") != nullptr) {
    return Exactly(
        static_cast<double>(*run.epochs) * runs.Value(run.name + "/epoch_cost"),
        "epochs times the printed cost of one");
  }
  return Exactly(runs.Value(run.name + "/run_time") * PriceOf(run),
                 "printed time at the price of the day");
}

PublishedPrediction ScoreOf(const PublishedRuns& runs,
                            const PublishedRow& row) {
  constexpr std::array<std::string_view, 4> kTerms = {
      "time", "cost", "energy", "occupancy"};
  if (row.quantity.starts_with("weight.")) {
    throw InputError("a weight is chosen, not predicted");
  }
  if (row.quantity == "score") {
    double score = 0;
    for (const std::string_view term : kTerms) {
      const double sign = term == "occupancy" ? -1.0 : 1.0;
      score +=
          sign *
          runs.Value(fmt::format("weights_{}/weight.{}", *row.part, term)) *
          runs.Value(fmt::format("{}/normalised.{}", row.run, term));
    }
    return Exactly(score, "weights times normalised data");
  }
  // normalised.<term>: over the largest of all runs that have one.
  const std::string term = row.quantity.substr(row.quantity.find('.') + 1);
  const auto figure = [&](const std::string& run) {
    if (term == "time") return runs.Value(run + "/run_time");
    if (term == "cost") {
      return runs.Value(run + "/run_time") *
             PriceOf(runs.published().runs.at(run));
    }
    return runs.Value(run + "/" + term);
  };
  // Both are known to their printed digits only.
  const auto known = [&](const std::string& run) {
    const std::string quantity = term == "cost" ? "run_time" : term;
    const PublishedRow& from =
        runs.Printed(run + "/" + (term == "time" ? "run_time" : quantity));
    return from.value.tolerance / from.value.low;
  };
  double largest = 0;
  double slack = known(row.run);
  for (const PublishedRow& other : runs.published().rows) {
    if (other.quantity != row.quantity) continue;
    if (figure(other.run) <= largest) continue;
    largest = figure(other.run);
    slack = known(row.run) + (other.run == row.run ? 0 : known(other.run));
  }
  PublishedPrediction p;
  const double share = figure(row.run) / largest;
  p.value = share == 1.0 ? 1.0 : share * (1 - slack);
  p.high = share == 1.0 ? 1.0 : share * (1 + slack);
  p.how = "over the largest";
  return p;
}

PublishedPrediction FactOf(const PublishedRuns& runs, const PublishedRow& row) {
  const PublishedRun& run = runs.RunOf(row);
  const std::string part = row.part.value_or("");
  if (row.quantity == "token_length") {
    throw InputError("of the data set: what a prediction starts from");
  }
  const Device& device =
      FindDevice(part == "40 GB" ? "a100_pcie_40gb" : *run.device);
  const std::string how = "device file";
  if (row.quantity == "peak_bandwidth") {
    return Exactly(device.memory_bandwidth.base(), how);
  }
  if (row.quantity == "peak_compute") {
    return Exactly(device.peak.bf16->base(), how);
  }
  if (part == "rows") {
    return Exactly(static_cast<double>(device.systolic_rows), how);
  }
  return Exactly(static_cast<double>(device.systolic_columns), how);
}

}  // namespace trainfare::scenarios
