#include "scenarios/commands/measured_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/limits.h"
#include "model/validate.h"
#include "scenarios/commands/setting_changes.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatTime;
using model::InputError;
using model::Seconds;

constexpr std::string_view kMeasuredFlag = "--measured";
constexpr std::string_view kMeasuredForms =
    "a step's time, a rate or a share of the peak such as \"1.9s\", "
    "\"3200tokens/s\", \"12samples/s/device\" or \"38%\"";

// Nearer than this share of the way to what was measured, in the logarithm,
// inside the 95 % interval of such a step, and no more than so many.
constexpr double kNear = 0.5;
constexpr size_t kMostOthers = 4;

// Without `tail` where `text` ends so; space before it goes, too.
bool TakeOff(std::string_view tail, std::string_view& text) {
  if (!text.ends_with(tail)) return false;
  text.remove_suffix(tail.size());
  while (text.ends_with(' ')) text.remove_suffix(1);
  return true;
}

// The rate of all devices.
double RateOfAll(const Measured& measured, const JobEstimate& job) {
  return measured.value *
         (measured.of_device ? static_cast<double>(job.devices) : 1.0);
}

// The step that was measured, by what of one is known of the job.
Seconds<> MeasuredTime(const Measured& measured, const JobEstimate& job) {
  const Seconds<> predicted = job.step.total();
  switch (measured.as) {
    case MeasuredAs::kStep:
      return model::Second(measured.value);
    case MeasuredAs::kTokens:
      return predicted * (job.tokens_per_second / RateOfAll(measured, job));
    case MeasuredAs::kSamples:
      return predicted * (job.samples_per_second / RateOfAll(measured, job));
    case MeasuredAs::kShareOfPeak:
      return predicted * (job.mfu / measured.value);
  }
  ENSURE(false, "a measurement of nothing");
}

// Steps of the job with one setting changed; of some a device cannot take it.
class OtherSteps {
 public:
  OtherSteps(const PredictionTarget& target,
             const Scenario& scenario,
             const JobEstimate& job)
      : target_(target),
        scenario_(scenario),
        asked_{target.predictor.device(), target.cluster.devices, job},
        memo_(target.predictor, scenario.source) {}

  void Try(SettingChange setting) {
    Scenario changed = scenario_;
    std::string words = setting(asked_, changed);
    if (!words.empty()) Add(std::move(words), changed, target_.cluster);
  }

  // A quarter of what joins hosts, or devices of one.
  void TrySlowerLinks() {
    constexpr double kShare = 0.25;
    Cluster slower = target_.cluster;
    if (slower.network) {
      slower.network->wire.bandwidth = slower.network->wire.bandwidth * kShare;
      Add(fmt::format(
              "--network {}",
              hardware::FormatBandwidth(slower.network->wire.bandwidth)),
          scenario_,
          slower);
    }
    slower = target_.cluster;
    if (!slower.ranks && slower.link && slower.devices > 1) {
      slower.link->bandwidth = slower.link->bandwidth * kShare;
      Add(fmt::format("links of {} between devices",
                      hardware::FormatBandwidth(slower.link->bandwidth)),
          scenario_,
          slower);
    }
  }

  // Nothing that ranks send is hidden.
  void TryExposed() {
    Seconds<> hidden;
    for (const calibrate::ShardTraffic& part : asked_.job.step.traffic) {
      hidden += part.sending - part.exposed;
    }
    if (hidden > Seconds<>()) {
      steps_.push_back({"nothing sent beside computation",
                        asked_.job.step.total() + hidden});
    }
  }

  std::vector<OtherStep> Take() { return std::move(steps_); }

 private:
  void Add(std::string words, const Scenario& changed, const Cluster& cluster) {
    try {
      model::Validate(changed.workload);
      const JobEstimate trial =
          EstimateJob(changed, memo_, cluster, Detail::kStep);
      if (!trial.fits()) return;
      steps_.push_back({std::move(words), trial.step.total()});
    } catch (const InputError&) {
      return;  // not of this model or device
    }
  }

  const PredictionTarget& target_;
  const Scenario& scenario_;
  TimedJob asked_;
  DeviceMemo memo_;
  std::vector<OtherStep> steps_;
};

// Those that come near, the nearest first.
std::vector<OtherStep> NearestSteps(std::vector<OtherStep> steps,
                                    Seconds<> measured,
                                    const StepEstimate& predicted) {
  const auto apart = [&](Seconds<> step) {
    return std::abs(std::log(measured / step));
  };
  const double most =
      std::min(kNear * apart(predicted.total()),
               std::log(predicted.HighFactor95(predicted.log_sigma)));
  steps.erase(
      std::remove_if(steps.begin(),
                     steps.end(),
                     [&](const OtherStep& s) { return apart(s.step) > most; }),
      steps.end());
  std::stable_sort(
      steps.begin(), steps.end(), [&](const OtherStep& a, const OtherStep& b) {
        return apart(a.step) < apart(b.step);
      });
  steps.resize(std::min(steps.size(), kMostOthers));
  return steps;
}

// "0.94", and "0.0042" of what is far off.
std::string TimesText(double ratio) {
  return ratio < 0.1 ? fmt::format("{:.2g}", ratio)
                     : fmt::format("{:.2f}", ratio);
}

[[noreturn]] void RefuseMeasured(std::string_view text, std::string_view hint) {
  throw InputError(fmt::format("{}: expected {}, got \"{}\"{}",
                               kMeasuredFlag,
                               kMeasuredForms,
                               text,
                               hint));
}

// Throws InputError where so short a step would be above the device's peak.
void RequireBelowPeak(const StepComparison& c, const JobEstimate& job) {
  const double share = job.mfu_causal.value_or(job.mfu) / c.ratio();
  if (share <= 1.0) return;
  throw InputError(fmt::format(
      "{}: expected a step of at least {}, which the device's peak takes for "
      "its matrix products, got one of {}; hint: is less computed than was "
      "asked, or is it a micro-batch?",
      kMeasuredFlag,
      FormatTime(c.measured * share),
      FormatTime(c.measured)));
}

}  // namespace

Measured ParseMeasured(std::string_view text) {
  std::string_view left = text;
  Measured measured;
  measured.of_device = TakeOff("/device", left);
  std::optional<double> value;
  if (TakeOff("tokens/s", left)) {
    measured.as = MeasuredAs::kTokens;
    value = hardware::ParseNumber(left);
  } else if (TakeOff("samples/s", left)) {
    measured.as = MeasuredAs::kSamples;
    value = hardware::ParseNumber(left);
  } else if (!measured.of_device && TakeOff("%", left)) {
    measured.as = MeasuredAs::kShareOfPeak;
    value = hardware::ParseNumber(left);
    if (value) *value /= 100.0;
    if (value && *value > 1.0) {
      RefuseMeasured(text, "; no device does more than its peak");
    }
  } else if (!measured.of_device) {
    const auto time = hardware::ParseQuantity<Seconds<>>(left);
    if (time) value = model::ToSeconds(*time);
  }
  if (!value && left.find('/') != std::string_view::npos) {
    RefuseMeasured(text, "; rates are in tokens/s or samples/s");
  }
  if (!value) {
    RefuseMeasured(text,
                   measured.of_device
                       ? ""
                       : hardware::UnitHint(hardware::Dimension::kTime, left));
  }
  if (!(*value > 0.0)) RefuseMeasured(text, "; hint: more than 0");
  measured.value = *value;
  return measured;
}

StepComparison CompareStep(const Measured& measured,
                           const PredictionTarget& target,
                           const Scenario& scenario,
                           const JobEstimate& job) {
  const StepEstimate& step = job.step;
  StepComparison result;
  result.predicted = step.total();
  result.measured = MeasuredTime(measured, job);
  if (!model::IsPlausible(result.measured)) {
    throw InputError(
        fmt::format("{}: expected a step of {:.0g} to {:.0g} s, "
                    "got one of {:.3g} s",
                    kMeasuredFlag,
                    model::kShortestTime,
                    model::kLongestTime,
                    model::ToSeconds(result.measured)));
  }
  const double ratio = result.ratio();
  const auto within = [ratio](double low, double high) {
    return low <= ratio && ratio <= high;
  };
  result.inside_80 = within(step.low_factor, step.high_factor);
  result.inside_95 = within(step.LowFactor95(step.log_sigma),
                            step.HighFactor95(step.log_sigma));
  if (result.inside_80) return result;
  RequireBelowPeak(result, job);
  OtherSteps others(target, scenario, job);
  if (ratio > 1.0) {
    for (const SettingChange one : SlowerSettings()) others.Try(one);
    others.TryExposed();
    others.TrySlowerLinks();
  } else {
    for (const SettingChange one : FasterSettings()) others.Try(one);
  }
  result.would_be = NearestSteps(others.Take(), result.measured, step);
  return result;
}

std::string ComparisonLine(const StepComparison& c) {
  const std::string_view where =
      c.inside_80   ? "inside the 80 % interval"
      : c.inside_95 ? "outside the 80 % interval, inside that of 95 %"
                    : "outside the 95 % interval";
  std::string line = fmt::format(
      "measured {} a step, {} times the {} "
      "predicted, {}",
      FormatTime(c.measured),
      TimesText(c.ratio()),
      FormatTime(c.predicted),
      where);
  if (c.inside_80 || !c.would_be.empty()) return line;
  return line +
         (c.ratio() > 1.0
              ? fmt::format("; no one setting that was tried comes near: "
                            "{} a step wait for data, other jobs, or "
                            "software that is not said",
                            FormatTime(c.measured - c.predicted))
              : "; no one setting that was tried comes near: less may "
                "be computed than was asked (shorter samples, other "
                "sizes)");
}

std::optional<Table> ComparisonTable(const StepComparison& c) {
  if (c.would_be.empty()) return std::nullopt;
  Table table;
  table.title = "what would make it so";
  table.columns = {{"setting", "settings", Align::kLeft},
                   {"step time", "step_time_s", Align::kRight},
                   {"measured is", "ratio", Align::kRight}};
  for (const OtherStep& other : c.would_be) {
    const double ratio = c.measured / other.step;
    table.Add({other.settings,
               TimeCell(other.step),
               Cell(TimesText(ratio) + " times", ratio)});
  }
  return table;
}

Json ToJson(const StepComparison& c) {
  Json would_be = Json::array();
  for (const OtherStep& other : c.would_be) {
    would_be.push_back({{"settings", other.settings},
                        {"step_time_s", model::ToSeconds(other.step)},
                        {"ratio", c.measured / other.step}});
  }
  return {{"step_time_s", model::ToSeconds(c.measured)},
          {"ratio", c.ratio()},
          {"inside_80", c.inside_80},
          {"inside_95", c.inside_95},
          {"would_be", would_be}};
}

}  // namespace trainfare::scenarios
