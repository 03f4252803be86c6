// Fits as files: calibrate/fits/*.yaml and those of the user.

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <tuple>
#include <utility>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/power_yaml.h"
#include "calibrate/fit/rank_yaml.h"
#include "calibrate/fit/run_yaml.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/fit/yaml_text.h"
#include "calibrate/records/files.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/unit_text.h"
#include "hardware/files/yaml_reader.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

// What no fit of the program ever passes, far above what is of use and far
// below where a prediction overflows: a standard deviation of a logarithm or
// of a share, a relative error, a number that is counted, a time.
constexpr double kMostDeviation = 10.0;
constexpr double kMostError = 1e6;
constexpr int64_t kMostCount = 1'000'000'000'000;
// How far rounding may move a covariance, relative to its standard errors.
constexpr double kRounding = 1e-6;

using hardware::Dimension;
using hardware::ParameterInfo;
using hardware::Reader;
using internal::Quoted;
using internal::Seconds;
using model::InputError;

// A value in the unit of its parameter.
std::string WithUnit(const ParameterInfo& info, double value) {
  return info.unit == "1" ? fmt::format("{}", value)
                          : fmt::format("{} {}", value, info.unit);
}

double ReadWithUnit(const Reader& map,
                    std::string_view key,
                    const ParameterInfo& info) {
  if (info.unit == "1") return map.Number(key, 0.0, Reader::kNoBound);
  if (info.unit == "s") return model::ToSeconds(map.Time(key));
  if (info.unit == "B/s") return map.Bandwidth(key).base();
  ENSURE(false, "a unit of a parameter that fit files do not know");
}

void WriteDevice(const hardware::Device& device, std::string& out) {
  const auto line = [&](std::string_view key, const std::string& value) {
    out += fmt::format("  {}: {}\n", key, value);
  };
  const auto rate = [&](std::string_view key,
                        const std::optional<model::FlopsPerSecond<>>& value) {
    if (value) line(key, fmt::format("{} FLOP/s", value->base()));
  };
  out += "measured_device:\n";
  const auto text = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) line(key, Quoted(value));
  };
  text("vendor", device.vendor);
  text("architecture", device.architecture);
  text("source", device.source);
  line("cores", fmt::format("{}", device.cores));
  if (device.clock.base() > 0) {
    line("clock", fmt::format("{} Hz", device.clock.base()));
  }
  line("memory_capacity",
       fmt::format("{} B", model::ToBytes(device.memory_capacity)));
  line("memory_bandwidth",
       fmt::format("{} B/s", device.memory_bandwidth.base()));
  if (device.on_chip_memory.base() > 0) {
    line("on_chip_memory",
         fmt::format("{} B", model::ToBytes(device.on_chip_memory)));
  }
  rate("peak_fp32", device.peak.fp32);
  rate("peak_tf32", device.peak.tf32);
  rate("peak_fp16", device.peak.fp16);
  rate("peak_bf16", device.peak.bf16);
  rate("peak_vector", device.peak.vector);
  if (device.max_power) {
    line("max_power", fmt::format("{} W", device.max_power->base()));
  }
  if (device.idle_power) {
    line("idle_power", fmt::format("{} W", device.idle_power->base()));
  }
}

hardware::Device ReadDevice(const Reader& map, const Fit& fit) {
  hardware::Device device;
  device.name = fit.device;
  device.reported_name = fit.reported_name;
  device.kind = fit.kind;
  device.vendor = map.OptionalText("vendor").value_or("");
  device.architecture = map.OptionalText("architecture").value_or("");
  device.source = map.OptionalText("source").value_or("");
  device.cores = map.Integer("cores", 1, 10'000'000);
  device.clock = map.OptionalFrequency("clock").value_or(model::Hertz<>());
  device.memory_capacity = map.Bytes("memory_capacity");
  device.memory_bandwidth = map.Bandwidth("memory_bandwidth");
  device.on_chip_memory =
      map.OptionalBytes("on_chip_memory").value_or(model::Bytes<>());
  device.peak.fp32 = map.OptionalComputeRate("peak_fp32");
  device.peak.tf32 = map.OptionalComputeRate("peak_tf32");
  device.peak.fp16 = map.OptionalComputeRate("peak_fp16");
  device.peak.bf16 = map.OptionalComputeRate("peak_bf16");
  device.peak.vector = map.OptionalComputeRate("peak_vector");
  device.max_power = map.OptionalPower("max_power");
  device.idle_power = map.OptionalPower("idle_power");
  return device;
}

void WriteParameters(const Fit& fit,
                     std::span<const ParameterInfo> infos,
                     std::string& out) {
  const size_t count = fit.parameters.size();
  out +=
      "# standard_error and covariance: of the log of the value, of the value\n"
      "# itself for shares; a parameter that is not determined stands at its\n"
      "# prior.\nparameters:\n";
  for (size_t i = 0; i < count; ++i) {
    const FittedParameter& parameter = fit.parameters[i];
    out += fmt::format(
        "  - name: {}\n"
        "    value: {}\n"
        "    standard_error: {}\n"
        "    prior: {}\n"
        "    determined: {}\n",
        parameter.name,
        WithUnit(infos[i], parameter.value),
        parameter.standard_error,
        WithUnit(infos[i], parameter.prior),
        parameter.determined);
    if (!parameter.determined_by.empty()) {
      out += fmt::format("    determined_by: {}\n",
                         Quoted(parameter.determined_by));
    }
    out += "    covariance: [";
    for (size_t j = 0; j < count; ++j) {
      out += fmt::format(
          "{}{}", j == 0 ? "" : ", ", fit.covariance[i * count + j]);
    }
    out += "]\n";
  }
}

std::string ToYaml(const Fit& fit) {
  const auto infos = hardware::ParametersOf(fit.kind);
  ENSURE(infos.size() == fit.parameters.size() &&
             fit.covariance.size() == infos.size() * infos.size(),
         "a fit has the parameters of its kind");
  std::string out = fmt::format("device: {}\n", Quoted(fit.device));
  if (!fit.reported_name.empty()) {
    out += fmt::format("reported_name: {}\n", Quoted(fit.reported_name));
  }
  out += fmt::format("kind: {}\n", hardware::ToText(fit.kind));
  const Provenance& from = fit.provenance;
  out += "provenance:\n";
  const auto text = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) out += fmt::format("  {}: {}\n", key, Quoted(value));
  };
  text("source", from.source);
  text("host", from.host);
  text("software", from.software);
  text("date", from.date);
  out += fmt::format(
      "  runs: {}\n  observations: {}\n", from.runs, from.observations);
  if (from.kernels > 0) out += fmt::format("  kernels: {}\n", from.kernels);
  out += fmt::format(
      "# Relative errors, medians; scatter of log(model / measured).\n"
      "errors:\n"
      "  in_sample: {}\n"
      "  leave_one_out: {}\n"
      "  residual_scatter: {}\n"
      "  degrees_of_freedom: {}\n",
      fit.in_sample_error,
      fit.leave_one_out_error,
      fit.residual_scatter,
      fit.degrees_of_freedom);
  if (from.kernels > 0) {
    out += fmt::format("  kernel_in_sample: {}\n  kernel_leave_one_out: {}\n",
                       fit.kernel_in_sample_error,
                       fit.kernel_leave_one_out_error);
  }
  const FittedRange& range = fit.range;
  out += fmt::format(
      "range:\n"
      "  tokens: [{}, {}]\n"
      "  sequence_length: [{}, {}]\n"
      "  parameters: [{}, {}]\n"
      "  settings: [",
      range.min_tokens,
      range.max_tokens,
      range.min_sequence_length,
      range.max_sequence_length,
      range.min_parameters,
      range.max_parameters);
  for (size_t i = 0; i < range.settings.size(); ++i) {
    out += (i == 0 ? "" : ", ") + Quoted(range.settings[i]);
  }
  out += "]\n";
  WriteParameters(fit, infos, out);
  if (fit.measured_device) WriteDevice(*fit.measured_device, out);
  internal::WriteRanks(fit.ranks, out);
  internal::WritePower(fit.power, out);
  out += fit.runs.empty() ? "runs: []\n" : "runs:\n";
  internal::WriteRuns(fit.runs, "  ", out);
  return out;
}

// The covariance must be one: variances that are the squares of the standard
// errors, correlations that are symmetric and positive semidefinite. With any
// other matrix an interval has no meaning, and may be of negative variance.
void RequireCovariance(const std::vector<Reader>& maps, const Fit& fit) {
  const size_t count = fit.parameters.size();
  const auto size = static_cast<Eigen::Index>(count);
  Eigen::MatrixXd correlation = Eigen::MatrixXd::Identity(size, size);
  for (size_t i = 0; i < count; ++i) {
    const double error = fit.parameters[i].standard_error;
    for (size_t j = 0; j < count; ++j) {
      const double scale = error * fit.parameters[j].standard_error;
      const double value = fit.covariance[i * count + j];
      const double mirrored = fit.covariance[j * count + i];
      if (i == j && std::abs(value - scale) > kRounding * scale) {
        maps[i].Fail("covariance",
                     fmt::format("expected the square of standard_error, {}, "
                                 "as number {}, got {}",
                                 scale,
                                 i + 1,
                                 value));
      }
      if (std::abs(value - mirrored) > kRounding * scale) {
        maps[i].Fail("covariance",
                     fmt::format("expected a symmetric matrix, got {} as "
                                 "number {} and {} for the same two "
                                 "parameters in row {}",
                                 value,
                                 j + 1,
                                 mirrored,
                                 j + 1));
      }
      if (i != j && scale > 0.0) {
        correlation(static_cast<Eigen::Index>(i),
                    static_cast<Eigen::Index>(j)) = value / scale;
      } else if (i != j && value != 0.0) {
        maps[i].Fail("covariance",
                     fmt::format("expected 0 as number {}, of a parameter "
                                 "without a standard error, got {}",
                                 j + 1,
                                 value));
      }
    }
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(correlation);
  const auto least = solver.eigenvalues().minCoeff();
  if (!(least >= -kRounding)) {
    maps.front().Fail("covariance",
                      fmt::format("expected a matrix that is positive "
                                  "semidefinite, got one of whose "
                                  "correlations an eigenvalue is {:.3g}",
                                  least));
  }
}

void ReadParameters(const Reader& root, Fit& fit) {
  const auto infos = hardware::ParametersOf(fit.kind);
  const std::vector<Reader> maps = root.Maps("parameters");
  constexpr const char* kHint =
      "was the fit made by another version? calibrate again";
  if (maps.size() != infos.size()) {
    root.Fail(
        "parameters",
        fmt::format("expected the {} parameters of {} devices, got {}; {}",
                    infos.size(),
                    hardware::ToText(fit.kind),
                    maps.size(),
                    kHint));
  }
  for (size_t i = 0; i < infos.size(); ++i) {
    const Reader& map = maps[i];
    FittedParameter parameter;
    parameter.name = map.Text("name");
    if (parameter.name != infos[i].name) {
      map.Fail("name",
               fmt::format("expected \"{}\", got \"{}\"; {}",
                           infos[i].name,
                           parameter.name,
                           kHint));
    }
    parameter.value = ReadWithUnit(map, "value", infos[i]);
    // What the model was never meant for would give nonsense quietly.
    if (parameter.value < infos[i].lower || parameter.value > infos[i].upper) {
      map.Fail("value",
               fmt::format("expected a value from {} to {}, got {}",
                           WithUnit(infos[i], infos[i].lower),
                           WithUnit(infos[i], infos[i].upper),
                           WithUnit(infos[i], parameter.value)));
    }
    parameter.standard_error =
        map.Number("standard_error", 0.0, kMostDeviation);
    parameter.prior = ReadWithUnit(map, "prior", infos[i]);
    parameter.determined = map.Flag("determined");
    parameter.determined_by = map.OptionalText("determined_by").value_or("");
    const std::vector<double> row =
        map.Numbers("covariance",
                    -kMostDeviation * kMostDeviation,
                    kMostDeviation * kMostDeviation);
    if (row.size() != infos.size()) {
      map.Fail("covariance",
               fmt::format("expected {} numbers, one a parameter, got {}",
                           infos.size(),
                           row.size()));
    }
    fit.covariance.insert(fit.covariance.end(), row.begin(), row.end());
    fit.parameters.push_back(std::move(parameter));
  }
  RequireCovariance(maps, fit);
}

std::pair<int64_t, int64_t> ReadRange(const Reader& map, std::string_view key) {
  const std::vector<int64_t> ends = map.Integers(key, 0, Reader::kNoLimit);
  if (ends.size() != 2 || ends[0] > ends[1]) {
    map.Fail(key, "expected the least and the largest, such as [8, 512]");
  }
  return {ends[0], ends[1]};
}

void ReadProvenance(const Reader& from, Provenance& provenance) {
  provenance.source = from.OptionalText("source").value_or("");
  provenance.host = from.OptionalText("host").value_or("");
  provenance.software = from.OptionalText("software").value_or("");
  provenance.date = from.OptionalText("date").value_or("");
  provenance.runs = from.Integer("runs", 0, kMostCount);
  provenance.observations = from.Integer("observations", 0, kMostCount);
  provenance.kernels =
      from.OptionalInteger("kernels", 0, kMostCount).value_or(0);
}

void ReadErrors(const Reader& errors, Fit& fit) {
  fit.kernel_in_sample_error =
      errors.OptionalNumber("kernel_in_sample", 0.0, kMostError).value_or(0.0);
  fit.kernel_leave_one_out_error =
      errors.OptionalNumber("kernel_leave_one_out", 0.0, kMostError)
          .value_or(0.0);
  fit.in_sample_error = errors.Number("in_sample", 0.0, kMostError);
  fit.leave_one_out_error = errors.Number("leave_one_out", 0.0, kMostError);
  fit.residual_scatter = errors.Number("residual_scatter", 0.0, kMostDeviation);
  fit.degrees_of_freedom = errors.Integer("degrees_of_freedom", 0, kMostCount);
}

Fit ReadFit(const Reader& root, const std::string& path) {
  Fit fit;
  fit.name = hardware::Stem(path);
  fit.device = root.Text("device");
  fit.reported_name = root.OptionalText("reported_name").value_or("");
  fit.kind = hardware::ReadKind(root, "kind");
  ReadProvenance(root.Map("provenance"), fit.provenance);
  ReadErrors(root.Map("errors"), fit);
  const Reader range = root.Map("range");
  std::tie(fit.range.min_tokens, fit.range.max_tokens) =
      ReadRange(range, "tokens");
  std::tie(fit.range.min_sequence_length, fit.range.max_sequence_length) =
      ReadRange(range, "sequence_length");
  std::tie(fit.range.min_parameters, fit.range.max_parameters) =
      ReadRange(range, "parameters");
  fit.range.settings = range.Texts("settings");
  ReadParameters(root, fit);
  if (const auto device = root.OptionalMap("measured_device")) {
    fit.measured_device = ReadDevice(*device, fit);
  }
  fit.ranks = internal::ReadRanks(root);
  fit.power = internal::ReadPower(root);
  for (const Reader& map : root.OptionalMaps("runs")) {
    fit.runs.push_back(internal::ReadRun(map));
  }
  root.Finish();
  return fit;
}

// Where the shipped fits lie: in the folder of the data that TRAINFARE_DATA_DIR
// names, else with the program.
std::string ShippedFitDirectory() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here writes the environment.
  const char* chosen = std::getenv("TRAINFARE_DATA_DIR");
  if (chosen != nullptr && *chosen != '\0') {
    return (fs::path(chosen) / "fits").string();
  }
  return hardware::ShippedDirectory("calibrate/fits");
}

}  // namespace

Fit LoadFit(const std::string& path) {
  return ReadFit(Reader::FromFile(path), path);
}

void SaveFit(const Fit& fit, const std::string& path) {
  const std::string text = ToYaml(fit);
  try {
    ReadFit(Reader::FromText(text, path), path);
  } catch (const InputError& error) {
    throw InputError(fmt::format(
        "{}: not written, it could not be read again: {}", path, error.what()));
  }
  internal::WriteWhole(path, text);
}

std::string UserFitDirectory() {
  const auto variable = [](const char* name) -> std::string {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here writes it.
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (std::string chosen = variable("TRAINFARE_FITS"); !chosen.empty()) {
    return chosen;
  }
  if (const std::string data = variable("XDG_DATA_HOME"); !data.empty()) {
    return (fs::path(data) / "trainfare" / "fits").string();
  }
  if (const std::string home = variable("HOME"); !home.empty()) {
    return (fs::path(home) / ".local/share/trainfare/fits").string();
  }
  throw InputError(
      "no place for fits: set TRAINFARE_FITS to a folder, or HOME");
}

namespace {

// The folders that are there, the user's first.
std::vector<std::string> FitFolders() {
  std::vector<std::string> folders;
  try {
    folders.push_back(UserFitDirectory());
  } catch (const InputError&) {
    // Nowhere to keep fits: the user has none.
  }
  folders.push_back(ShippedFitDirectory());
  std::error_code ignored;
  std::erase_if(folders, [&](const std::string& folder) {
    return !fs::is_directory(folder, ignored);
  });
  return folders;
}

// Whether a line of the file reads `device: <device>`, quoted or not.
bool NamesDevice(const std::string& path, std::string_view device) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    constexpr std::string_view kKey = "device:";
    if (!line.starts_with(kKey)) continue;
    std::string value = line.substr(kKey.size());
    std::erase_if(value, [](char c) {
      return c == ' ' || c == '"' || c == '\'' || c == '\r';
    });
    return value == device;
  }
  return false;
}

// Those of the files that are wanted.
template <class Wanted>
LoadedFits Load(const Wanted& wanted) {
  LoadedFits files;
  for (const std::string& folder : FitFolders()) {
    for (const std::string& path : hardware::YamlFiles(folder)) {
      if (!wanted(path)) continue;
      try {
        files.fits.push_back(LoadFit(path));
      } catch (const InputError& error) {
        files.left_out.push_back(
            fmt::format("{}; this fit is left out", error.what()));
      }
    }
  }
  return files;
}

}  // namespace

LoadedFits LoadFits() {
  return Load([](const std::string&) { return true; });
}

LoadedFits LoadFitsOf(std::string_view device) {
  return Load(
      [&](const std::string& path) { return NamesDevice(path, device); });
}

}  // namespace trainfare::calibrate
