#include "scenarios/published/published_prediction.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "calibrate/fit/fit_options.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/records/import/observations.h"
#include "calibrate/records/import/published_records.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/fits.h"
#include "scenarios/published/figure_checks.h"
#include "scenarios/published/published_job.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Fit;
using calibrate::Predictor;
using calibrate::Published;
using calibrate::PublishedRow;
using calibrate::PublishedRun;
using calibrate::PublishedUse;
using model::InputError;

// A device as it answers, and on what ground.
struct Ground {
  Predictor predictor;
  std::string words;
  std::set<std::string> seen;           // runs whose figures made the fit
  std::vector<std::string> parameters;  // that it determines
};

// "run/quantity" or "run": the run of a label.
std::string RunOfLabel(const std::string& label) {
  return label.substr(0, label.find('/'));
}

std::set<std::string> RunsBehind(const Fit& fit) {
  std::set<std::string> runs;
  for (const calibrate::FittedRun& run : fit.runs) {
    runs.insert(RunOfLabel(run.label));
  }
  for (const calibrate::FittedProfile& profile : fit.profiles) {
    runs.insert(RunOfLabel(profile.label));
  }
  for (const calibrate::RankFit& ranks : fit.ranks) {
    for (const calibrate::FittedRun& run : ranks.runs) {
      runs.insert(RunOfLabel(run.label));
    }
  }
  if (fit.power) {
    for (const calibrate::FittedPowerRun& run : fit.power->runs) {
      runs.insert(RunOfLabel(run.label));
    }
  }
  return runs;
}

std::vector<std::string> DeterminedBy(const Fit& fit) {
  std::vector<std::string> names;
  for (const calibrate::FittedParameter& parameter : fit.parameters) {
    if (parameter.determined) {
      names.push_back(fit.device + "/" + parameter.name);
    }
  }
  for (const calibrate::RankFit& ranks : fit.ranks) {
    const int64_t count = ranks.network.ranks;
    names.push_back(fmt::format("{}/{}/latency", fit.device, count));
    names.push_back(fmt::format("{}/{}/link", fit.device, count));
    if (ranks.share_determined) {
      names.push_back(fmt::format("{}/{}/share", fit.device, count));
    }
    if (ranks.host_determined) {
      names.push_back(fmt::format("{}/{}/host", fit.device, count));
    }
  }
  if (fit.power && fit.power->products_determined()) {
    names.push_back(fit.device + "/power of products");
  }
  if (fit.power && fit.power->others_determined()) {
    names.push_back(fit.device + "/power of other work");
  }
  return names;
}

class PublishedPredictor {
 public:
  PublishedPredictor(const Published& published, PublishedProtocol protocol)
      : published_(published), protocol_(protocol) {}

  PublishedPrediction Predict(const PublishedRow& row) {
    PublishedPrediction prediction;
    try {
      Answer(row, prediction);
    } catch (const InputError& error) {
      prediction.answer = {};
      prediction.reason = error.what();
    }
    return prediction;
  }

  const std::map<std::string, std::set<std::string>>& FreeParameters() const {
    return parameters_;
  }

 private:
  struct Answered {
    PublishedJob job;
    const Ground* ground = nullptr;
    JobEstimate estimate;
    std::string refusal;  // of the device, whatever the batch
  };

  void Answer(const PublishedRow& row, PublishedPrediction& prediction) {
    if (row.use == PublishedUse::kNone) {
      throw InputError(
          "set aside: wrong, contradicted or said twice in its source");
    }
    const QuantityAnswer& line = AnswerOf(row.quantity);
    if (row.use == PublishedUse::kShow && row.why_not.empty()) {
      throw InputError("kept as data");
    }
    // What follows from printed figures by arithmetic is no second prediction.
    if (row.check != nullptr &&
        (line.of_job == nullptr || FiguresArePrinted(published_, row))) {
      prediction.answer = CheckFigure(published_, row);
      prediction.checks_data = true;
      prediction.how = "printed figures";
      return;
    }
    if (line.of_job == nullptr) {
      throw InputError(row.why_not.empty()
                           ? "arithmetic of which its document states no check"
                           : row.why_not);
    }
    const PublishedRun& run = published_.RunOf(row);
    const Answered& answered = EstimateOf(run, run);
    prediction.how = answered.ground->words;
    prediction.seen = HasSeen(*answered.ground, run);
    if (!answered.refusal.empty()) {
      if (row.value.kind == calibrate::PublishedValue::Kind::kOutcome) {
        prediction.answer.fits = false;
        prediction.how = answered.refusal;
        return;
      }
      prediction.refused = true;
      throw InputError("refused: " + answered.refusal);
    }
    if (!answered.estimate.fits() && !line.though_it_does_not_fit) {
      prediction.refused = true;
      throw InputError("refused: " + answered.estimate.Obstacle());
    }
    auto& of_group = parameters_[row.group];
    const auto rest_on = [&of_group](const Ground& ground) {
      of_group.insert(ground.parameters.begin(), ground.parameters.end());
    };
    // An answer that another run has a part in rests on what that one has seen.
    const auto other = [&](const std::string& name) -> const JobEstimate& {
      const PublishedRun& second = published_.runs.at(name);
      const Answered& of_second = EstimateOf(second, run);
      if (!of_second.refusal.empty() || !of_second.estimate.fits()) {
        throw InputError(fmt::format("{} is not answered", name));
      }
      prediction.seen = prediction.seen || HasSeen(*of_second.ground, second);
      rest_on(*of_second.ground);
      return of_second.estimate;
    };
    const AskedJob asked{row,
                         run,
                         answered.ground->predictor,
                         answered.job,
                         answered.estimate,
                         other};
    prediction.answer = line.of_job(asked);
    rest_on(*answered.ground);
  }

  bool HasSeen(const Ground& ground, const PublishedRun& run) const {
    for (const std::string& seen : ground.seen) {
      if (published_.runs.contains(seen) && published_.Same(seen, run.name)) {
        return true;
      }
    }
    return false;
  }

  // The answer to `run` where what is asked is of `target`: the same, or one
  // that is compared with it. Neither has a part in it.
  const Answered& EstimateOf(const PublishedRun& run,
                             const PublishedRun& target) {
    const std::string key = run.name + "|" + target.name;
    const auto found = estimates_.find(key);
    if (found != estimates_.end()) return *found->second;
    auto answered = std::make_unique<Answered>();
    answered->job = JobOf(published_, run);
    answered->ground = &GroundOf(*answered->job.device, run, target);
    const Predictor& predictor = answered->ground->predictor;
    try {
      answered->estimate = EstimateJob(answered->job.scenario,
                                       predictor,
                                       answered->job.ClusterFor(predictor));
    } catch (const InputError& error) {
      answered->refusal = error.what();
    }
    return *estimates_.emplace(key, std::move(answered)).first->second;
  }

  const Ground& GroundOf(const hardware::Device& device,
                         const PublishedRun& run,
                         const PublishedRun& target) {
    const bool leaves_out = protocol_ == PublishedProtocol::kLeaveOneOut;
    // Twins are one run, and a fit serves all runs that it leaves out alike.
    std::string key = device.name;
    if (leaves_out) {
      key += fmt::format(
          "|{}|{}|{}", run.document, Twin(run.name), Twin(target.name));
    }
    auto found = grounds_.find(key);
    if (found == grounds_.end()) {
      auto ground = std::make_unique<Ground>(
          leaves_out ? LeftOut(device, run, target) : AsShipped(device));
      found = grounds_.emplace(key, std::move(ground)).first;
    }
    return *found->second;
  }

  // The first by name of a run's twins.
  std::string Twin(const std::string& run) const {
    for (const auto& entry : published_.runs) {
      if (published_.Same(entry.first, run)) return entry.first;
    }
    return run;
  }

  Ground AsShipped(const hardware::Device& device) {
    const Fit* fit = fits_.Of(device);
    if (fit == nullptr) {
      return {Predictor(device), "no fit: datasheet and priors", {}, {}};
    }
    return {Predictor(device, *fit),
            fmt::format("fit {}", fit->name),
            RunsBehind(*fit),
            DeterminedBy(*fit)};
  }

  Ground LeftOut(const hardware::Device& device,
                 const PublishedRun& run,
                 const PublishedRun& target) {
    const calibrate::ObservationFiles records =
        calibrate::RecordsOf(published_, [&](const PublishedRun& other) {
          return other.document == run.document &&
                 !published_.Same(other.name, run.name) &&
                 !published_.Same(other.name, target.name);
        });
    calibrate::FitOptions options;
    options.leave_one_out = false;
    options.name_runs = false;
    try {
      Fit fit = calibrate::MakeFit(device, records, options).fit;
      const int64_t figures = fit.provenance.observations;
      std::vector<std::string> parameters = DeterminedBy(fit);
      std::set<std::string> seen = RunsBehind(fit);
      return {Predictor(device, std::move(fit)),
              fmt::format("fit to {} of other runs",
                          hardware::Plural(figures, "figure")),
              std::move(seen),
              std::move(parameters)};
    } catch (const InputError&) {
      // Nothing else was measured on it: what everybody has.
      return {Predictor(device),
              "nothing else was measured on it: datasheet and priors",
              {},
              {}};
    }
  }

  const Published& published_;
  PublishedProtocol protocol_;
  Fits fits_;
  std::map<std::string, std::unique_ptr<Ground>> grounds_;
  std::map<std::string, std::unique_ptr<Answered>>
      estimates_;                                            // by run, target
  std::map<std::string, std::set<std::string>> parameters_;  // by group
};

}  // namespace

PublishedPredictions PredictPublished(
    const Published& published,
    PublishedProtocol protocol,
    const std::function<bool(const PublishedRow&)>& only) {
  PublishedPredictor predictor(published, protocol);
  PublishedPredictions predictions;
  predictions.rows.reserve(published.rows.size());
  for (const PublishedRow& row : published.rows) {
    predictions.rows.push_back(only && !only(row) ? PublishedPrediction()
                                                  : predictor.Predict(row));
  }
  predictions.free_parameters = predictor.FreeParameters();
  return predictions;
}

}  // namespace trainfare::scenarios
