#include "scenarios/commands/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "calibrate/fit/fit.h"
#include "hardware/catalog/instance.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/kind.h"
#include "model/error.h"
#include "model/limits.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/pricing.h"
#include "scenarios/report/result_json.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatBytes;
using hardware::FormatTime;
using model::InputError;

std::string Percent(double share) {
  return fmt::format("{:.1f} %", 100.0 * share);
}

std::string Count(double value) {
  return value < 100 ? fmt::format("{:.1f}", value)
                     : fmt::format("{:.0f}", value);
}

// What is asked about: the device, how many, at what price.
struct Target {
  calibrate::Predictor predictor;
  std::string fit_name;  // empty: datasheet
  Cluster cluster;
  const hardware::Instance* instance = nullptr;
  std::optional<Tariff> tariff;
};

std::string DeviceName(const PredictOptions& options,
                       const hardware::Instance* instance,
                       const std::optional<calibrate::Fit>& fit) {
  if (options.device) return *options.device;
  if (instance != nullptr) return instance->device;
  if (fit) return fit->device;
  return "cpu";
}

Target TargetOf(const PredictOptions& options) {
  if (options.device && options.instance) {
    throw UsageError("--device and --instance: give one of them");
  }
  const hardware::Instance* instance =
      options.instance
          ? &hardware::InstanceCatalog::Shipped().Find(*options.instance)
          : nullptr;
  std::optional<calibrate::Fit> fit;
  if (options.fit) fit = calibrate::LoadFit(*options.fit);
  const std::string name = DeviceName(options, instance, fit);
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find(name);
  if (!fit) {
    Fits fits;
    if (const calibrate::Fit* found = fits.Of(device)) fit = *found;
  }
  const std::string fit_name = fit ? fit->name : "";
  calibrate::Predictor predictor =
      fit ? calibrate::Predictor(device, std::move(*fit))
          : calibrate::Predictor(device);
  const int64_t devices =
      options.devices.value_or(instance != nullptr ? instance->count : 1);
  const Cluster cluster = instance != nullptr
                              ? ClusterOf(*instance, devices, predictor)
                              : ClusterOf(predictor, devices);
  Target target{std::move(predictor), fit_name, cluster, instance, {}};
  if (instance != nullptr) {
    target.tariff =
        Pricing(options.prices, options.regions).Of(*instance, options.spot);
  }
  return target;
}

std::string TargetName(const Target& target) {
  const hardware::Device& device = target.predictor.device();
  std::string name =
      device.reported_name.empty()
          ? device.name
          : fmt::format("{} ({})", device.name, device.reported_name);
  if (target.cluster.devices > 1) {
    name = fmt::format("{} x {}", target.cluster.devices, name);
  }
  if (target.instance != nullptr) {
    name += fmt::format(" of {}", target.instance->FullName());
  }
  return name;
}

std::string GroundName(const Target& target) {
  return target.fit_name.empty() ? "no fit: datasheet and priors of its kind"
                                 : fmt::format("fit {}", target.fit_name);
}

std::string Interval(model::Seconds<> low, model::Seconds<> high) {
  return fmt::format("{} .. {}", FormatTime(low), FormatTime(high));
}

std::string EnergyText(const JobEstimate& job) {
  if (!job.energy) return "-";
  return (job.energy_is_bound ? "< " : "") +
         hardware::FormatEnergy(*job.energy);
}

std::optional<model::Usd<>> CostOf(const JobEstimate& job,
                                   const std::optional<Tariff>& tariff) {
  if (!job.fits() || !tariff) return std::nullopt;
  return model::RentalCost(job.run.total(), tariff->price, tariff->billing);
}

Table MainTable(const std::vector<JobEstimate>& jobs,
                const std::optional<Tariff>& tariff,
                int64_t epochs) {
  Table table;
  table.columns = {{"batch", "batch", Align::kRight},
                   {"length", "sequence_length", Align::kRight},
                   {"step", "step_time_s", Align::kRight},
                   {"80 % from", "step_time_low_s", Align::kRight},
                   {"to", "step_time_high_s", Align::kRight},
                   {"epoch", "epoch_time_s", Align::kRight},
                   {"in all", "run_time_s", Align::kRight},
                   {"samples/s", "samples_per_s", Align::kRight},
                   {"tokens/s", "tokens_per_s", Align::kRight},
                   {"MFU", "mfu", Align::kRight},
                   {"memory", "memory_bytes", Align::kRight},
                   {"energy", "energy_j", Align::kRight},
                   {"cost", "cost_usd", Align::kRight},
                   {"grade", "grade", Align::kLeft},
                   {"bottleneck", "bottleneck", Align::kLeft}};
  for (const JobEstimate& job : jobs) {
    const double batch = static_cast<double>(job.workload.batch);
    const double length = model::MeanLength(job.lengths);
    const Cell batch_cell(fmt::format("{}", job.workload.batch), batch);
    const Cell length_cell(
        job.lengths.size() == 1
            ? fmt::format("{}", job.lengths.front().length)
            : fmt::format("{:.1f} of {}", length, job.workload.sequence_length),
        length);
    const Cell memory(FormatBytes(job.memory.total()),
                      ToBytes(job.memory.total()));
    if (!job.fits()) {
      const Cell none("-", std::string());
      table.Add({batch_cell,
                 length_cell,
                 none,
                 none,
                 none,
                 none,
                 none,
                 none,
                 none,
                 none,
                 memory,
                 none,
                 none,
                 none,
                 job.Obstacle()});
      continue;
    }
    const StepEstimate& step = job.step;
    const model::Seconds<> low = step.total() * step.low_factor;
    const model::Seconds<> high = step.total() * step.high_factor;
    const auto cost = CostOf(job, tariff);
    table.Add({batch_cell,
               length_cell,
               Cell(FormatTime(step.total()), ToSeconds(step.total())),
               Cell(FormatTime(low), ToSeconds(low)),
               Cell(FormatTime(high), ToSeconds(high)),
               Cell(FormatTime(job.run.epoch(epochs)),
                    ToSeconds(job.run.epoch(epochs))),
               Cell(FormatTime(job.run.total()), ToSeconds(job.run.total())),
               Cell(Count(job.samples_per_second), job.samples_per_second),
               Cell(Count(job.tokens_per_second), job.tokens_per_second),
               Cell(Percent(job.mfu), job.mfu),
               memory,
               job.energy ? Cell(EnergyText(job), ToJoules(*job.energy))
                          : Cell("-", std::string()),
               cost ? Cell(hardware::FormatMoney(*cost), ToDollars(*cost))
                    : Cell("-", std::string()),
               GradeWords(step, job.devices),
               job.bottleneck});
  }
  return table;
}

// One answer has room for where its time and its memory go.
void AddDetails(const JobEstimate& job, int64_t epochs, Report& report) {
  Table step;
  step.title = "where a step goes";
  step.columns = {{"term", "name", Align::kLeft},
                  {"time", "time_s", Align::kRight},
                  {"share", "share", Align::kRight}};
  if (job.fits()) {
    for (const Term& term : TermsOf(job.step)) {
      if (term.time.base() == 0) continue;
      const double share = term.time / job.step.total();
      step.Add({term.name,
                Cell(FormatTime(term.time), ToSeconds(term.time)),
                Cell(Percent(share), share)});
    }
    report.tables.push_back(step);

    Table run;
    run.title = fmt::format("where the run goes ({} epochs, {} steps each)",
                            epochs,
                            job.run.steps_per_epoch);
    run.columns = {{"term", "name", Align::kLeft},
                   {"time", "time_s", Align::kRight}};
    const std::vector<std::pair<std::string, model::Seconds<>>> terms = {
        {"start-up", job.run.start_up},
        {fmt::format("compiling {:.0f} shapes", job.run.distinct_shapes),
         job.run.compile},
        {job.workload.work == model::Work::kForward ? "forward passes"
                                                    : "training steps",
         job.run.training - job.run.input_wait},
        {"waiting for input", job.run.input_wait},
        {"evaluation", job.run.evaluation},
        {"checkpoints", job.run.checkpoint}};
    for (const auto& [name, time] : terms) {
      if (time.base() == 0) continue;
      run.Add({name, Cell(FormatTime(time), ToSeconds(time))});
    }
    report.tables.push_back(run);
  }

  Table memory;
  memory.title = fmt::format(
      "memory of one device at the {}: batch {}, length {}, {}, {}{}",
      model::ToText(job.memory.moment),
      job.workload.batch,
      job.workload.sequence_length,
      model::ToText(job.workload.precision),
      DescribeUpdate(job.workload),
      job.workload.work == model::Work::kForward ? ""
      : job.workload.gradient_checkpointing      ? ", activations checkpointed"
                                                 : ", all activations kept");
  memory.columns = {{"term", "name", Align::kLeft},
                    {"size", "memory_bytes", Align::kRight}};
  for (const model::MemoryTerm& term : job.memory.terms) {
    memory.Add({std::string(term.name),
                Cell(FormatBytes(term.size), ToBytes(term.size))});
  }
  memory.Add(
      {"in all",
       Cell(FormatBytes(job.memory.total()), ToBytes(job.memory.total()))});
  memory.Add(
      {"capacity", Cell(FormatBytes(job.capacity), ToBytes(job.capacity))});
  report.tables.push_back(memory);
}

void AddNotes(const Target& target,
              const std::vector<JobEstimate>& jobs,
              const Scenario& scenario,
              bool spot,
              Report& report) {
  std::vector<std::string>& notes = report.notes;
  const auto any = [&](const auto& holds) {
    return std::any_of(jobs.begin(), jobs.end(), holds);
  };
  const bool fits = any([](const JobEstimate& job) { return job.fits(); });
  for (const JobEstimate& job : jobs) {
    if (!job.fits()) {
      notes.push_back(
          job.largest_batch
              ? fmt::format("length {}: the largest batch that fits is {}",
                            job.workload.sequence_length,
                            *job.largest_batch)
              : fmt::format("length {}: not even one sequence fits",
                            job.workload.sequence_length));
    }
  }
  if (fits) {
    notes.emplace_back(
        "MFU counts the matrix products of forward and backward with "
        "attention, nothing recomputed (PaLM's rule), against the peak of the "
        "precision");
  }
  if (fits && any([](const JobEstimate& job) { return job.energy_is_bound; })) {
    notes.emplace_back(
        "energy is an upper bound, the device at its power limit all the time: "
        "no idle power is known; without the host");
  } else if (fits && any([](const JobEstimate& job) { return job.energy; })) {
    notes.emplace_back(
        "energy is of the devices, without the host, at the power of each kind "
        "of work");
  } else if (fits) {
    notes.push_back(fmt::format("no power of {} is known, so no energy",
                                target.predictor.device().name));
  }
  if (fits && any([](const JobEstimate& job) { return job.compiles; }) &&
      !scenario.extras.compile_per_shape && !scenario.extras.warm_cache) {
    notes.push_back(
        fmt::format("{} compiles every distinct shape ({:.0f} here); how long "
                    "is not counted: set run.compile_per_shape, or "
                    "run.warm_cache where it was done before",
                    target.predictor.device().name,
                    jobs.front().run.distinct_shapes));
  }
  for (const JobEstimate& job : jobs) {
    if (job.compilation && job.compilation->swaps && job.fits()) {
      notes.push_back(fmt::format(
          "batch {}, length {}: the compiler swaps, it takes {} on a host of "
          "{}; how much longer that takes is not counted",
          job.workload.batch,
          job.workload.sequence_length,
          FormatBytes(job.compilation->memory),
          FormatBytes(job.compilation->host_memory)));
    }
  }
  const int64_t figures = target.predictor.fit().provenance.observations;
  if (!target.fit_name.empty() && figures <= calibrate::kFewFigures) {
    notes.push_back(fmt::format(
        "fit {} rests on {}: the interval is of its priors more than of "
        "measurements",
        target.fit_name,
        hardware::Plural(figures, "published figure")));
  }
  const model::Workload& workload = jobs.front().workload;
  const int64_t global_batch =
      workload.batch * workload.accumulation * target.cluster.devices;
  if (fits && target.cluster.devices > 1 &&
      global_batch > scenario.train_samples) {
    notes.push_back(
        fmt::format("the global batch of {} is more than the {} samples of an "
                    "epoch: one step, and some devices have nothing to do",
                    global_batch,
                    scenario.train_samples));
  }
  if (const auto& ranks = target.cluster.ranks) {
    const calibrate::RingFit& ring = ranks->network.alone;
    std::string line = fmt::format(
        "data parallel over {}: {}, ring step {}, link {} +- {:.0f} %, by fit "
        "{}",
        ranks->backend.empty() ? "a measured ring" : ranks->backend,
        ranks->transport.empty() ? "transport not said" : ranks->transport,
        FormatTime(ring.ring.step_latency),
        hardware::FormatBandwidth(ring.ring.link),
        100.0 * ring.link_error,
        target.fit_name);
    if (target.cluster.measured_ranks != target.cluster.devices) {
      line += fmt::format("; measured over {} ranks, not {}",
                          target.cluster.measured_ranks,
                          target.cluster.devices);
    }
    if (ranks->ranks_per_device > 1) {
      line += fmt::format("; all on one processor, {:.2f} of its speed each",
                          ranks->share);
    }
    notes.push_back(line);
  } else if (target.cluster.link) {
    notes.push_back(fmt::format(
        "data parallel over {}: link from its datasheet, not measured",
        target.cluster.link->name));
  }
  if (target.cluster.devices_per_chip > 1) {
    notes.push_back(fmt::format(
        "{} parts of each {}: what they send each other is in the "
        "step of one{}",
        target.cluster.devices_per_chip,
        target.cluster.chip,
        target.cluster.link
            ? fmt::format("; {} chips are linked", target.cluster.chips())
            : ""));
  }
  if (target.instance != nullptr && !target.tariff) {
    notes.push_back(fmt::format("no {}price of {} is known",
                                spot ? "spot " : "",
                                target.instance->FullName()));
  }
  if (target.tariff) {
    std::string line = fmt::format("price: {}", Describe(*target.tariff));
    if (!target.tariff->excludes.empty()) {
      line += fmt::format("; excludes {}",
                          fmt::join(target.tariff->excludes, ", "));
    }
    notes.push_back(line);
    if (!target.tariff->caution.empty()) {
      notes.push_back(fmt::format("price: {}", target.tariff->caution));
    }
    if (target.tariff->spot) {
      notes.emplace_back("work lost to spot interruptions is not counted");
    }
  }
}

std::string Answer(const Target& target,
                   const JobEstimate& job,
                   const Scenario& scenario) {
  if (!job.fits()) {
    if (job.memory.total() <= job.capacity) {
      return fmt::format("{} {}", scenario.title, job.Obstacle());
    }
    return fmt::format("{} does not fit {}: it needs {}, {} more than there is",
                       scenario.title,
                       target.predictor.device().name,
                       FormatBytes(job.memory.total()),
                       FormatBytes(job.memory.total() - job.capacity));
  }
  std::string line = fmt::format("{} takes {} (80 % interval {}) on {}",
                                 scenario.title,
                                 FormatTime(job.run.total()),
                                 Interval(job.run_low, job.run_high),
                                 TargetName(target));
  if (const auto cost = CostOf(job, target.tariff)) {
    line += fmt::format(" and costs {}", hardware::FormatMoney(*cost));
  }
  return line;
}

// What a flag's word stands for; the message gets the flag in front.
template <class Parse>
auto OfFlag(std::string_view flag, const std::string& word, Parse parse) {
  try {
    return parse(word);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", flag, error.what()));
  }
}

}  // namespace

void RequireCount(std::string_view flag, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return;
  throw InputError(fmt::format(
      "{}: expected an integer from 1 to {}, got {}", flag, most, value));
}

std::vector<Scenario> Variants(const Scenario& scenario,
                               const Overrides& overrides) {
  Scenario base = scenario;
  if (overrides.precision) {
    base.workload.precision =
        OfFlag("--precision", *overrides.precision, model::PrecisionFromText);
  }
  if (overrides.work) {
    base.workload.work = OfFlag("--work", *overrides.work, WorkFromText);
    if (base.workload.work == model::Work::kForward) {
      base.workload.accumulation = 1;
    } else if (!base.names_optimizer) {
      throw InputError(
          "--work: expected forward, the scenario names no optimizer to train "
          "with");
    }
  }
  if (overrides.epochs) {
    RequireCount("--epochs", *overrides.epochs, model::kMostEpochs);
    base.epochs = *overrides.epochs;
  }
  std::vector<int64_t> batches = overrides.batches;
  if (batches.empty()) batches.push_back(base.workload.batch);
  std::vector<Scenario> variants;
  // 0 stands for the scenario's own padding.
  std::vector<int64_t> lengths = overrides.lengths;
  const bool own_padding = lengths.empty();
  if (own_padding) lengths.push_back(0);
  for (const int64_t length : lengths) {
    for (const int64_t batch : batches) {
      RequireCount("--batch", batch, model::kLargestBatch);
      if (!own_padding) RequireCount("--seq", length, model::kLongestSequence);
      Scenario variant = base;
      variant.workload.batch = batch;
      if (!own_padding) variant.PadTo(length);
      const auto longest = variant.workload.architecture.max_sequence_length();
      if (longest && variant.workload.sequence_length > *longest) {
        throw InputError(
            fmt::format("--seq: expected at most {}, the positions of {}, got "
                        "{}",
                        *longest,
                        variant.workload.architecture.name,
                        variant.workload.sequence_length));
      }
      variants.push_back(std::move(variant));
    }
  }
  return variants;
}

const calibrate::Fit* Fits::Of(const hardware::Device& device) {
  auto found = fits_.find(device.name);
  if (found == fits_.end()) {
    found =
        fits_.emplace(device.name, calibrate::LoadFitsOf(device.name)).first;
  }
  for (const calibrate::Fit& fit : found->second) {
    // A fit of another processor says nothing of this one.
    if (!hardware::KindOf(device).is_host ||
        fit.reported_name == device.reported_name) {
      return &fit;
    }
  }
  return nullptr;
}

Report Predict(const PredictOptions& options) {
  const Scenario scenario = LoadScenario(options.scenario);
  const std::vector<Scenario> variants = Variants(scenario, options.overrides);
  if (options.devices) {
    RequireCount("--devices", *options.devices, model::kMostDevices);
  }
  if (options.spot && !options.instance) {
    throw UsageError("--spot: needs --instance, whose price it is");
  }
  const Target target = TargetOf(options);

  std::vector<JobEstimate> jobs;
  Json predictions = Json::array();
  for (const Scenario& variant : variants) {
    jobs.push_back(EstimateJob(variant, target.predictor, target.cluster));
    const JobEstimate& job = jobs.back();
    Json prediction = ToJson(job);
    if (job.fits()) {
      prediction["epoch_time_s"] = ToSeconds(job.run.epoch(variant.epochs));
      const auto cost = CostOf(job, target.tariff);
      prediction["cost_usd"] = cost ? Json(ToDollars(*cost)) : Json(nullptr);
    }
    predictions.push_back(std::move(prediction));
  }

  const Scenario& first = variants.front();
  Report report;
  if (std::none_of(jobs.begin(), jobs.end(), [](const JobEstimate& job) {
        return job.fits();
      })) {
    report.exit_code = kNothingFits;
    report.complaint = fmt::format("nothing that was asked about fits {}",
                                   target.predictor.device().name);
  }
  if (jobs.size() == 1) {
    report.headline.push_back(Answer(target, jobs.front(), first));
  } else {
    report.headline.push_back(
        fmt::format("{} on {}", scenario.title, TargetName(target)));
  }
  report.headline.push_back(
      fmt::format("{}, {}, {}, {}, {} attention; {}",
                  first.workload.architecture.name,
                  model::ToText(first.workload.precision),
                  DescribeUpdate(first.workload),
                  model::ToText(first.workload.stack.fusion),
                  model::ToText(first.workload.stack.attention),
                  GroundName(target)));
  report.tables.push_back(MainTable(jobs, target.tariff, first.epochs));
  if (jobs.size() == 1) AddDetails(jobs.front(), first.epochs, report);
  AddNotes(target, jobs, first, options.spot, report);

  Json json = ResultHead("trainfare.prediction/1");
  json["scenario"] = ToJson(first);
  const hardware::Device& device = target.predictor.device();
  json["device"] = device.name;
  json["reported_name"] = device.reported_name;
  json["instance"] = target.instance != nullptr
                         ? Json(target.instance->FullName())
                         : Json(nullptr);
  json["fit"] = target.fit_name.empty() ? Json(nullptr) : Json(target.fit_name);
  json["price"] = ToJson(target.tariff);
  json["predictions"] = std::move(predictions);
  json["notes"] = report.notes;
  report.json = JsonText(json);
  return report;
}

}  // namespace trainfare::scenarios
