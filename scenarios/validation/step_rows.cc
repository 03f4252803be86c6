#include "scenarios/validation/step_rows.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "calibrate/fit/joined_devices.h"
#include "calibrate/fit/predictor.h"
#include "model/nearest.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Observation;
using calibrate::PowerObservation;
using calibrate::Quantity;

constexpr size_t kUnknownDevice = static_cast<size_t>(-1);

// The workload in words, but for how many devices share it.
std::string WorkOfOne(model::Workload workload) {
  workload.parallel = {};
  return calibrate::Describe(workload);
}

std::optional<hardware::Device> FindDevice(const std::string& name) {
  if (const auto* device = hardware::DeviceCatalog::Shipped().TryFind(name)) {
    return *device;
  }
  hardware::Device host = hardware::HostCpu();
  if (calibrate::IsDevice(host, name)) return host;
  return std::nullopt;
}

std::string UnknownDevice(const std::string& name) {
  std::vector<std::string_view> known;
  for (const hardware::Device& device :
       hardware::DeviceCatalog::Shipped().devices()) {
    known.emplace_back(device.name);
  }
  return fmt::format(
      "unknown device \"{}\"{}", name, model::DidYouMean(name, known));
}

// Devices by the names that the data have for them.
class DeviceIndex {
 public:
  explicit DeviceIndex(std::vector<DeviceRows>& devices) : devices_(devices) {}

  size_t Of(const std::string& written) {
    const auto found = by_written_.find(written);
    if (found != by_written_.end()) return found->second;
    size_t place = kUnknownDevice;
    if (const auto device = FindDevice(written)) {
      const auto [known, is_new] =
          by_name_.emplace(device->name, devices_.size());
      if (is_new) devices_.push_back({*device, {}});
      place = known->second;
    }
    by_written_[written] = place;
    return place;
  }

 private:
  std::vector<DeviceRows>& devices_;
  std::map<std::string, size_t> by_written_;
  std::map<std::string, size_t> by_name_;
};

void AddPowers(const std::vector<PowerObservation>& powers,
               std::vector<StepRow>& rows) {
  std::map<std::string_view, const PowerObservation*> of_run;
  for (const PowerObservation& power : powers) {
    of_run.emplace(power.label, &power);
  }
  for (StepRow& row : rows) {
    const auto found = of_run.find(row.observation->label);
    if (found == of_run.end() || row.observation->quantity != Quantity::kStep) {
      continue;
    }
    row.power = found->second;
  }
}

}  // namespace

SortedRows SortByDevice(const std::vector<Observation>& observations,
                        const std::vector<PowerObservation>& powers) {
  SortedRows sorted;
  DeviceIndex index(sorted.devices);
  std::set<std::string> with_step;
  for (const Observation& o : observations) {
    if (o.quantity == Quantity::kStep) with_step.insert(o.label);
  }
  for (const Observation& o : observations) {
    StepRow row;
    row.observation = &o;
    row.point = fmt::format("{} on {} x {}",
                            o.device_count,
                            o.hosts,
                            calibrate::Describe(o.workload));
    row.work = WorkOfOne(o.workload);
    row.asked = o.quantity == Quantity::kStep || !with_step.contains(o.label);
    row.device = index.Of(o.device);
    if (row.device == kUnknownDevice) {
      row.reason = UnknownDevice(o.device);
    } else {
      sorted.devices[row.device].rows.push_back(sorted.rows.size());
    }
    sorted.rows.push_back(std::move(row));
  }
  AddPowers(powers, sorted.rows);
  return sorted;
}

std::vector<size_t> FittableRows(const SortedRows& sorted,
                                 const DeviceRows& of_device) {
  std::vector<size_t> rows;
  for (const size_t row : of_device.rows) {
    const Observation& o = *sorted.rows[row].observation;
    if (of_device.device.MatrixPeak(o.workload.precision) &&
        (o.device_count == 1 || calibrate::FittableOver(of_device.device, o))) {
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace trainfare::scenarios
