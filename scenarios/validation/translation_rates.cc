#include "scenarios/validation/translation_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "hardware/files/yaml_reader.h"
#include "hardware/models/device_models.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/kernels.h"
#include "scenarios/job/scenario.h"
#include "scenarios/published/least_squares.h"

namespace trainfare::scenarios {
namespace {

using hardware::Reader;

constexpr int64_t kTokensASentence = 32;
// Of a log time that the model predicts, and of log(host time a launch) where
// trainer and host are not known.
constexpr double kTimeSigma = 0.05;
constexpr double kUnknownHostSigma = 1.0;
constexpr double kSlowHostStart = 2.0;  // sigmas from the prior

constexpr std::array kFitted = {hardware::models::kGpuGemmEfficiencyHalf,
                                hardware::models::kGpuBandwidthEfficiency,
                                hardware::models::kGpuLaunchCost,
                                hardware::models::kGpuTensorOverhead};

// Stacks by the key of their rate.
constexpr std::array kStackKeys = {
    std::pair<std::string_view, std::string_view>{"fairseq", "fairseq"},
    std::pair<std::string_view, std::string_view>{"fairseq_apex",
                                                  "fairseq-apex"},
    std::pair<std::string_view, std::string_view>{"lightseq", "lightseq"}};

}  // namespace

TranslationRates LoadTranslationRates(const std::string& path) {
  const Reader root = Reader::FromFile(path);
  if (root.Text("schema") != "trainfare.translation_rates/1") {
    root.Fail("schema", "expected trainfare.translation_rates/1");
  }
  TranslationRates rates;
  rates.device = root.Text("device");
  rates.source = fmt::format("{} ({})", root.Text("source"), root.Date("date"));
  for (const Reader& row : root.Maps("rates")) {
    TranslationRate rate;
    rate.layers = row.Integer("layers", 1, 1000);
    rate.devices = row.Integer("devices", 1, 1024);
    rate.tokens = row.Integer("tokens", kTokensASentence, 1'000'000);
    for (const auto& [key, stack] : kStackKeys) {
      rate.stack = stack;
      rate.words_per_second = row.Number(key, 1.0, 1e9);
      rates.rates.push_back(rate);
    }
  }
  root.Finish();
  return rates;
}

TranslationRates ShippedTranslationRates() {
  return LoadTranslationRates(ScenarioDirectory() +
                              "/validation/translation_rates.yaml");
}

model::Workload TranslationWorkload(std::string_view stack,
                                    const model::Architecture& architecture,
                                    int64_t tokens) {
  model::Workload w;
  w.architecture = architecture;
  w.batch = tokens / kTokensASentence;
  w.sequence_length = kTokensASentence;
  w.precision = model::Precision::kFp16;
  w.optimizer = {model::OptimizerKind::kAdamW,
                 stack == "fairseq"
                     ? model::OptimizerImplementation::kMultiTensor
                     : model::OptimizerImplementation::kFused};
  w.stack.fusion =
      stack == "lightseq" ? model::Fusion::kLightSeq : model::Fusion::kFairseq;
  return w;
}

model::Workload TranslationWorkload(const TranslationRate& rate) {
  model::Architecture architecture = model::FindArchitecture("transformer-big");
  architecture.layers = rate.layers;
  architecture.decoder_layers = rate.layers;
  return TranslationWorkload(rate.stack, architecture, rate.tokens);
}

std::vector<double> FitTranslation(const TranslationRates& rates) {
  struct Seen {
    model::Workload workload;
    model::KernelList kernels;
    model::Seconds<> measured;
  };
  std::vector<Seen> seen;
  for (const TranslationRate& rate : rates.rates) {
    if (rate.devices != 1) continue;
    Seen one{TranslationWorkload(rate), {}, rate.step()};
    one.kernels = ExpandKernels(one.workload);
    seen.push_back(std::move(one));
  }
  const hardware::Device& measured =
      hardware::DeviceCatalog::Shipped().Find(rates.device);
  const auto infos = hardware::ParametersOf(measured);
  std::vector<FreeParameter> priors;
  for (const size_t i : kFitted) {
    priors.push_back({infos[i].prior, infos[i].prior_sigma});
  }
  FreeParameter& launch = priors[2];
  launch.sigma = kUnknownHostSigma;
  const auto with = [&](const std::vector<double>& p) {
    std::vector<double> values;
    for (const auto& info : infos) values.push_back(info.prior);
    for (size_t k = 0; k < kFitted.size(); ++k) {
      const hardware::ParameterInfo& info = infos[kFitted[k]];
      values[kFitted[k]] = std::clamp(p[k], info.lower, info.upper);
    }
    return values;
  };
  const auto residuals = [&](const std::vector<double>& p) {
    const std::vector<double> values = with(p);
    std::vector<double> errors;
    for (const Seen& one : seen) {
      const auto time = hardware::EstimateStep<double>(
          measured, one.workload, one.kernels, std::span<const double>(values));
      errors.push_back(std::log(time.total() / one.measured) / kTimeSigma);
    }
    return errors;
  };
  // Once from a fast and once from a slow host: from the one the other's term
  // under a maximum is not seen.
  double cost = 0;
  std::vector<double> best = FitToPriors(priors, residuals, &cost);
  launch.start = kSlowHostStart;
  double slow_cost = 0;
  std::vector<double> slow = FitToPriors(priors, residuals, &slow_cost);
  if (slow_cost < cost) best = std::move(slow);
  return with(best);
}

calibrate::Predictor TranslationPredictor(const hardware::Device& device,
                                          const std::vector<double>& fitted) {
  calibrate::Fit fit = calibrate::PriorFit(device);
  ENSURE(fit.parameters.size() == fitted.size(), "parameters of a GPU");
  for (size_t i = 0; i < fitted.size(); ++i) {
    fit.parameters[i].value = fitted[i];
  }
  fit.name = "translation rates";
  return {device, std::move(fit)};
}

}  // namespace trainfare::scenarios
