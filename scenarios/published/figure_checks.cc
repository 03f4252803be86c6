#include "scenarios/published/figure_checks.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/records/import/published_workload.h"
#include "hardware/catalog/device.h"
#include "model/error.h"
#include "model/overlap.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Published;
using calibrate::PublishedRow;
using calibrate::PublishedRun;
using hardware::Device;
using model::InputError;

PublishedAnswer Of(double value) {
  PublishedAnswer answer;
  answer.value = value;
  return answer;
}

const PublishedRow& Printed(const Published& published, const std::string& id) {
  const PublishedRow* row = published.Find(id);
  if (row == nullptr) throw InputError(fmt::format("{} is not printed", id));
  return *row;
}

double Value(const Published& published, const std::string& id) {
  return Printed(published, id).value.low;
}

// The price of all devices of a run.
double PriceOf(const PublishedRun& run) {
  if (!run.price) throw InputError("the price of the day is not stated");
  return run.price->base() * static_cast<double>(run.device_count);
}

double HourlyPriceOf(const PublishedRun& run) { return PriceOf(run) * 3600.0; }

const Device& DeviceOf(const Published& published, const PublishedRow& row) {
  const PublishedRun& run = published.RunOf(row);
  if (!run.device) throw InputError("the device is not stated");
  return hardware::DeviceCatalog::Shipped().Find(*run.device);
}

// Seconds of one batch at a rate that is printed of the run.
double BatchTime(const Published& published,
                 const PublishedRow& row,
                 std::string_view rate) {
  const PublishedRun& run = published.RunOf(row);
  if (!run.batch) throw InputError("the batch is not stated");
  return static_cast<double>(*run.batch) /
         Value(published, fmt::format("{}/{}", run.name, rate));
}

model::Seconds<> Recursion(const Published& published,
                           const PublishedRun& run) {
  if (!run.architecture) throw InputError("the model is not stated");
  const auto piece = [&](const std::string& part) {
    return model::OverlapTask<double>{
        model::Seconds<>(Value(published, run.name + "/layer_time/" + part)),
        model::Seconds<>(
            Value(published, run.name + "/allreduce_time/" + part))};
  };
  std::vector<model::OverlapTask<double>> tasks = {piece("head")};
  for (int64_t i = 0; i < run.architecture->layers; ++i) {
    tasks.push_back(piece("encoder"));
  }
  tasks.push_back(piece("embedding"));
  return model::OverlapBackward(tasks,
                                run.overlap_gap.value_or(model::Seconds<>()))
      .end;
}

}  // namespace

PublishedAnswer CheckPrice(const Published& published,
                           const PublishedRow& row) {
  return Of(PriceOf(published.RunOf(row)));
}

PublishedAnswer CheckBillingUnitPrice(const Published& published,
                                      const PublishedRow& row) {
  return Of(HourlyPriceOf(published.RunOf(row)) /
            Value(published, row.run + "/billing_units_per_hour"));
}

PublishedAnswer CheckBillingUnits(const Published& published,
                                  const PublishedRow& row) {
  return Of(HourlyPriceOf(published.RunOf(row)) /
            Value(published, row.run + "/billing_unit_price"));
}

PublishedAnswer CheckEpochCost(const Published& published,
                               const PublishedRow& row) {
  return Of(Value(published, row.run + "/epoch_time") *
            PriceOf(published.RunOf(row)));
}

PublishedAnswer CheckCost(const Published& published, const PublishedRow& row) {
  const PublishedRun& run = published.RunOf(row);
  if (published.Find(run.name + "/epoch_cost") != nullptr && run.epochs) {
    return Of(static_cast<double>(*run.epochs) *
              Value(published, run.name + "/epoch_cost"));
  }
  return Of(Value(published, run.name + "/run_time") * PriceOf(run));
}

PublishedAnswer CheckScore(const Published& published,
                           const PublishedRow& row) {
  constexpr std::array<std::string_view, 4> kTerms = {
      "time", "cost", "energy", "occupancy"};
  if (!row.part) throw InputError("the weights are not stated");
  double score = 0;
  for (const std::string_view term : kTerms) {
    const double sign = term == "occupancy" ? -1.0 : 1.0;
    score += sign *
             Value(published, fmt::format("{}/weight.{}", *row.part, term)) *
             Value(published, fmt::format("{}/normalised.{}", row.run, term));
  }
  return Of(score);
}

PublishedAnswer CheckNormalised(const Published& published,
                                const PublishedRow& row) {
  const std::string term = row.quantity.substr(row.quantity.find('.') + 1);
  const std::string of = term == "time" || term == "cost" ? "run_time" : term;
  const auto figure = [&](const std::string& run) {
    const double value = Value(published, run + "/" + of);
    return term == "cost" ? value * PriceOf(published.runs.at(run)) : value;
  };
  // Both are known to their printed digits only.
  const auto known = [&](const std::string& run) {
    const PublishedRow& from = Printed(published, run + "/" + of);
    return from.value.tolerance / from.value.low;
  };
  double largest = 0;
  double slack = known(row.run);
  for (const PublishedRow& other : published.rows) {
    if (other.quantity != row.quantity) continue;
    if (figure(other.run) <= largest) continue;
    largest = figure(other.run);
    slack = known(row.run) + (other.run == row.run ? 0 : known(other.run));
  }
  const double share = figure(row.run) / largest;
  PublishedAnswer answer = Of(share);
  if (share < 1.0) {
    answer.low = share * (1 - slack);
    answer.high = share * (1 + slack);
  }
  return answer;
}

PublishedAnswer CheckEpochTime(const Published& published,
                               const PublishedRow& row) {
  const PublishedRun& run = published.RunOf(row);
  if (!run.epochs) throw InputError("the epochs are not stated");
  return Of(Value(published, run.name + "/run_time") /
            static_cast<double>(*run.epochs));
}

PublishedAnswer CheckLatency(const Published& published,
                             const PublishedRow& row) {
  return Of(BatchTime(published, row, "throughput"));
}

PublishedAnswer CheckOnChipLatency(const Published& published,
                                   const PublishedRow& row) {
  return Of(BatchTime(published, row, "on_chip_throughput"));
}

PublishedAnswer CheckTokenRate(const Published& published,
                               const PublishedRow& row) {
  const PublishedRun& run = published.RunOf(row);
  if (!run.sequence_length) throw InputError("the length is not stated");
  return Of(Value(published, run.name + "/throughput") *
            static_cast<double>(*run.sequence_length));
}

PublishedAnswer CheckSamples(const Published& published,
                             const PublishedRow& row) {
  return Of(static_cast<double>(
      calibrate::PlanOf(published, published.RunOf(row)).train_samples));
}

PublishedAnswer CheckBandwidth(const Published& published,
                               const PublishedRow& row) {
  return Of(DeviceOf(published, row).memory_bandwidth.base());
}

PublishedAnswer CheckPeak(const Published& published, const PublishedRow& row) {
  const auto peak =
      DeviceOf(published, row).MatrixPeak(model::Precision::kBf16);
  if (!peak) throw InputError("the device has no bf16");
  return Of(peak->base());
}

PublishedAnswer CheckMatrixRows(const Published& published,
                                const PublishedRow& row) {
  return Of(static_cast<double>(DeviceOf(published, row).systolic_rows));
}

PublishedAnswer CheckMatrixColumns(const Published& published,
                                   const PublishedRow& row) {
  return Of(static_cast<double>(DeviceOf(published, row).systolic_columns));
}

PublishedAnswer CheckCapacity(const Published& published,
                              const PublishedRow& row) {
  return Of(DeviceOf(published, row).memory_capacity.base());
}

PublishedAnswer CheckRecursion(const Published& published,
                               const PublishedRow& row) {
  return Of(ToSeconds(Recursion(published, published.RunOf(row))));
}

PublishedAnswer CheckEstimateError(const Published& published,
                                   const PublishedRow& row) {
  return Of(ToSeconds(Recursion(published, published.RunOf(row))) /
                Value(published, row.run + "/backward_time/measured") -
            1.0);
}

}  // namespace trainfare::scenarios
