#include "calibrate/fit/run_yaml.h"

#include <fmt/format.h>

#include "calibrate/fit/yaml_text.h"
#include "model/limits.h"

namespace trainfare::calibrate::internal {
namespace {

using hardware::Reader;

// As the bounds of fit_file.cc.
constexpr int64_t kMostCount = 1'000'000'000'000;

std::string PlaceText(const Place& place) {
  return fmt::format(
      "{{ batch: {}, length: {}, hidden: {}, layers: {}, settings: {} }}",
      place.batch,
      place.sequence_length,
      place.hidden,
      place.layers,
      Quoted(place.settings));
}

Place ReadPlace(const Reader& map) {
  Place place;
  place.batch = map.Integer("batch", 1, kMostCount);
  place.sequence_length = map.Integer("length", 1, kMostCount);
  place.hidden = map.Integer("hidden", 1, kMostCount);
  place.layers = map.Integer("layers", 1, kMostCount);
  place.settings = map.Text("settings");
  return place;
}

}  // namespace

void WriteRuns(const std::vector<FittedRun>& runs,
               const std::string& indent,
               std::string& out) {
  for (const FittedRun& run : runs) {
    const char* mark = "- ";
    const auto line = [&](std::string_view key, std::string_view value) {
      out += fmt::format("{}{}{}: {}\n", indent, mark, key, value);
      mark = "  ";
    };
    line("run", Quoted(run.label));
    line("workload", Quoted(run.workload));
    if (run.place) line("place", PlaceText(*run.place));
    line("quantity", ToText(run.quantity));
    if (run.devices) line("devices", fmt::format("{}", *run.devices));
    if (run.hosts > 1) line("hosts", fmt::format("{}", run.hosts));
    line("measured", Seconds(run.measured));
    line("modelled", Seconds(run.modelled));
    if (run.left_out) line("left_out", Seconds(*run.left_out));
  }
}

FittedRun ReadRun(const Reader& map) {
  FittedRun run;
  run.label = map.Text("run");
  run.workload = map.Text("workload");
  if (const auto place = map.OptionalMap("place")) {
    run.place = ReadPlace(*place);
  }
  run.quantity = map.Parsed("quantity", QuantityFromText);
  run.devices = map.OptionalInteger("devices", 0, model::kMostDevices);
  run.hosts = map.OptionalInteger("hosts", 1, model::kMostDevices).value_or(1);
  run.measured = map.Time("measured");
  run.modelled = map.Time("modelled");
  run.left_out = map.OptionalTime("left_out");
  return run;
}

}  // namespace trainfare::calibrate::internal
