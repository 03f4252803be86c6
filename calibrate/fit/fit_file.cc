#include "calibrate/fit/fit_file.h"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "calibrate/fit/fit_fields.h"
#include "calibrate/fit/joined_devices.h"
#include "calibrate/fit/step_model.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/text_file.h"
#include "hardware/files/whole_file.h"
#include "hardware/files/yaml_reader.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::calibrate {
namespace {

// How far rounding may move a covariance, relative to its standard errors.
constexpr double kRounding = 1e-6;

using hardware::ParameterInfo;
using hardware::Reader;
using hardware::YamlFieldReader;
using hardware::YamlFieldWriter;
using model::InputError;

// A row of them for each parameter.
std::vector<double> CovarianceRow(const Fit& fit, size_t row) {
  const auto begin = fit.covariance.begin() +
                     static_cast<std::ptrdiff_t>(row * fit.parameters.size());
  return {begin, begin + static_cast<std::ptrdiff_t>(fit.parameters.size())};
}

std::string ToYaml(const Fit& fit) {
  const auto infos = hardware::ParametersOf(fit.kind);
  ENSURE(infos.size() == fit.parameters.size() &&
             fit.covariance.size() == infos.size() * infos.size(),
         "a fit has the parameters of its kind");
  std::string out;
  YamlFieldWriter fields(out);
  VisitHead(fields, fit);
  VisitTail(fields, fit);
  // Last, since all of them have to be there: a file that was cut short is
  // seen.
  out +=
      "# standard_error and covariance: of the log of the value, of the value\n"
      "# itself for shares; a parameter that is not determined stands at its\n"
      "# prior.\nparameters:\n";
  for (size_t i = 0; i < infos.size(); ++i) {
    const std::vector<double> covariance = CovarianceRow(fit, i);
    YamlFieldWriter item = YamlFieldWriter::Item(out, "  ");
    VisitFields(item,
                ParameterFields{fit.parameters[i], infos[i].unit, covariance});
  }
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

// What the model was never meant for would give nonsense quietly.
void RequireBounds(const Reader& map, const ParameterInfo& info, double value) {
  if (value >= info.lower && value <= info.upper) return;
  const std::string unit =
      info.unit == "1" ? "" : fmt::format(" {}", info.unit);
  map.Fail("value",
           fmt::format("expected a value from {}{} to {}{}, got {}{}",
                       info.lower,
                       unit,
                       info.upper,
                       unit,
                       value,
                       unit));
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
    std::vector<double> covariance;
    // First of all: with another name, the unit of the value is another one.
    if (const std::string name = map.Text("name"); name != infos[i].name) {
      map.Fail(
          "name",
          fmt::format(
              "expected \"{}\", got \"{}\"; {}", infos[i].name, name, kHint));
    }
    YamlFieldReader fields(map);
    VisitFields(fields, ParameterFields{parameter, infos[i].unit, covariance});
    RequireBounds(map, infos[i], parameter.value);
    if (covariance.size() != infos.size()) {
      map.Fail("covariance",
               fmt::format("expected {} numbers, one a parameter, got {}",
                           infos.size(),
                           covariance.size()));
    }
    fit.covariance.insert(
        fit.covariance.end(), covariance.begin(), covariance.end());
    fit.parameters.push_back(std::move(parameter));
  }
  RequireCovariance(maps, fit);
}

void RequireJoined(const Reader& root, const Fit& fit) {
  const auto infos = JoinedParameters(fit.kind, 1.0);
  const std::vector<Reader> maps = root.OptionalMaps("joined");
  for (size_t i = 0; i < maps.size(); ++i) {
    const FittedParameter& parameter = fit.joined[i];
    const ParameterInfo* info =
        hardware::FindParameter(std::span(infos), parameter.name);
    if (info == nullptr) {
      std::vector<std::string_view> known;
      for (const ParameterInfo& one : infos) known.push_back(one.name);
      maps[i].Fail("name",
                   fmt::format("expected {}, got \"{}\"",
                               model::JoinNames(known),
                               parameter.name));
    }
    RequireBounds(maps[i], *info, parameter.value);
  }
}

void RequireAlone(const Reader& root, const Fit& fit) {
  if (!fit.alone) return;
  const Reader map = root.Map("alone");
  const auto own = hardware::KindOf(fit.kind).parameter_alone;
  if (!own) {
    root.Fail(
        "alone",
        fmt::format("expected none of {} devices", hardware::ToText(fit.kind)));
  }
  const ParameterInfo& info = hardware::ParametersOf(fit.kind)[*own];
  if (fit.alone->name != info.name) {
    map.Fail(
        "name",
        fmt::format("expected \"{}\", got \"{}\"", info.name, fit.alone->name));
  }
  RequireBounds(map, info, fit.alone->value);
}

Fit ReadFit(const Reader& root, const std::string& path) {
  Fit fit;
  fit.name = hardware::Stem(path);
  YamlFieldReader fields(root);
  VisitHead(fields, fit);
  ReadParameters(root, fit);
  VisitTail(fields, fit);
  RequireJoined(root, fit);
  RequireAlone(root, fit);
  if (fit.measured_device) fit.measured_device->name = fit.device;
  root.Finish();
  return fit;
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
  hardware::WriteWholeFile(path, text);
}

bool IsFitText(std::string_view text) {
  bool device = false;
  bool kind = false;
  hardware::ForEachLine(text, [&](std::string_view line) {
    device = device || line.starts_with("device:");
    kind = kind || line.starts_with("kind:");
  });
  return device && kind;
}

}  // namespace trainfare::calibrate
