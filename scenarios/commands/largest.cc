#include "scenarios/commands/largest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "hardware/files/unit_text.h"
#include "model/architecture.h"
#include "model/bisection.h"
#include "model/error.h"
#include "model/fields.h"
#include "model/limits.h"
#include "model/presets.h"
#include "model/trainable.h"
#include "model/validate.h"
#include "scenarios/commands/job_notes.h"
#include "scenarios/commands/memory_advice.h"
#include "scenarios/report/result_json.h"

namespace trainfare::scenarios {
namespace {

constexpr std::array kWords = {
    std::pair{Largest::kBatch, std::string_view("batch")},
    std::pair{Largest::kLength, std::string_view("length")},
    std::pair{Largest::kModel, std::string_view("model")},
};

// One of the sizes that are compared.
struct Trial {
  std::string name;  // "batch 16"
  Scenario scenario;
  JobEstimate job;
};

bool IsValid(const model::Workload& workload) {
  try {
    model::Validate(workload);
    return true;
  } catch (const model::InputError&) {
    return false;
  }
}

// Where the fields of a model's task lie, in their order.
struct TaskFields {
  std::vector<const void*> places;
  template <class T>
  void operator()(const model::Field& /*field*/, const T& value) {
    places.push_back(&value);
  }
};

TaskFields TaskOf(const model::Architecture& a) {
  TaskFields fields;
  model::VisitTask(fields, a);
  return fields;
}

// Gives a model the head that is asked for, and of the rest of its task what is
// asked otherwise than the model that was asked about has it by itself.
struct TaskChange {
  TaskFields asked;
  TaskFields own;
  size_t next = 0;
  template <class T>
  void operator()(const model::Field& /*field*/, T& value) {
    const T& wanted = *static_cast<const T*>(asked.places[next]);
    const T& usual = *static_cast<const T*>(own.places[next]);
    if (std::is_same_v<T, model::Head> || wanted != usual) value = wanted;
    ++next;
  }
};

// The presets of the job's family with what it asks of its model, by their
// parameters; a model of which that cannot be asked is none of the job's.
std::vector<model::Architecture> ModelsFor(const Scenario& scenario) {
  const model::Architecture& asked = scenario.workload.architecture;
  const model::Architecture* preset =
      model::SpelledArchitecture(scenario.asked_model);
  const model::Architecture own =
      preset != nullptr ? *preset : model::Architecture();
  const int64_t length = scenario.workload.sequence_length;
  std::vector<model::Architecture> models;
  for (const model::Architecture& a : model::ArchitecturePresets()) {
    if (a.family != asked.family || BeyondPositions(a, length)) continue;
    model::Workload job = scenario.workload;
    job.architecture = a;
    TaskChange change{TaskOf(asked), TaskOf(own)};
    model::VisitTask(change, job.architecture);
    if (IsValid(job)) models.push_back(std::move(job.architecture));
  }
  std::stable_sort(
      models.begin(), models.end(), [](const auto& a, const auto& b) {
        return model::TotalParameters(a) < model::TotalParameters(b);
      });
  return models;
}

// Sizes from 1 on; a model's is its place among the presets.
class Sizes {
 public:
  Sizes(Largest what, const Scenario& scenario, const PredictionTarget& target)
      : what_(what), scenario_(scenario), target_(target) {
    if (what == Largest::kModel) TryModels();
  }

  int64_t most() const {
    switch (what_) {
      case Largest::kBatch:
        // Where each can be counted, as `predict` has it.
        return model::LargestCountableBatch(scenario_.workload);
      case Largest::kLength:
        // Beyond what the model was trained for only where that is asked.
        return std::max(
            scenario_.workload.architecture.max_sequence_length().value_or(
                model::kLongestSequence),
            scenario_.workload.sequence_length);
      case Largest::kModel:
        return static_cast<int64_t>(models_.size());
    }
    ENSURE(false, "a size without a limit");
  }

  int64_t least() const {
    // A sequence has a token of each of its documents.
    return what_ == Largest::kLength ? scenario_.workload.documents : 1;
  }

  // Of a job that is none nothing can be counted.
  bool IsJob(int64_t size) const { return IsValid(Asked(size).workload); }

  bool Fits(int64_t size) const { return Fits(Asked(size)); }

  // The last of the models that fits; 0: none does.
  int64_t largest_model() const { return largest_model_; }

  Trial At(int64_t size) const {
    Trial trial{{}, Asked(size), {}};
    trial.name = what_ == Largest::kModel
                     ? trial.scenario.workload.architecture.name
                     : fmt::format("{} {}", TextOf(what_), size);
    trial.job = EstimateJob(trial.scenario, target_.predictor, target_.cluster);
    return trial;
  }

  // Whether sequences longer than most() run, but are not what the model was
  // trained for.
  bool ends_at_training() const {
    const model::Architecture& a = scenario_.workload.architecture;
    return what_ == Largest::kLength && a.max_sequence_length() &&
           !a.longest_of_table();
  }

  static std::string_view TextOf(Largest what) {
    for (const auto& [value, text] : kWords) {
      if (value == what) return text;
    }
    ENSURE(false, "a size without a name");
  }

 private:
  // Asks each model, as one may keep more than a larger one does (lengths,
  // experts); those that the device cannot run are passed over. Where it can run
  // none, the job as it is says why.
  void TryModels() {
    std::optional<model::InputError> refusal;
    for (model::Architecture& a : ModelsFor(scenario_)) {
      Scenario asked = scenario_;
      asked.workload.architecture = a;
      try {
        const bool fits = Fits(asked);
        models_.push_back(std::move(a));
        if (fits) largest_model_ = static_cast<int64_t>(models_.size());
      } catch (const model::InputError& error) {
        if (!refusal) refusal = error;
      }
    }
    if (!models_.empty() || !refusal) return;
    Fits(scenario_);
    throw model::InputError(*refusal);
  }

  bool Fits(const Scenario& asked) const {
    DeviceMemo memo(target_.predictor, scenario_.source);
    return EstimateJob(asked, memo, target_.cluster, Detail::kMemory).fits();
  }

  Scenario Asked(int64_t size) const {
    Scenario asked = scenario_;
    switch (what_) {
      case Largest::kBatch:
        asked.workload.batch = size;
        break;
      case Largest::kLength:
        asked.PadTo(size);
        break;
      case Largest::kModel:
        asked.workload.architecture = models_[static_cast<size_t>(size - 1)];
        break;
    }
    return asked;
  }

  Largest what_;
  const Scenario& scenario_;
  const PredictionTarget& target_;
  std::vector<model::Architecture> models_;
  int64_t largest_model_ = 0;
};

// The largest that fits; 0: none does. But of models, memory never falls with the
// size: twice as large until it is too much, then by halving; of lengths the
// longest comes first, which fits most jobs.
int64_t LargestOf(Largest what, const Sizes& sizes) {
  const auto fits = [&](int64_t size) {
    return sizes.IsJob(size) && sizes.Fits(size);
  };
  if (what == Largest::kModel) return sizes.largest_model();
  const int64_t most = sizes.most();
  if (what == Largest::kLength && fits(most)) return most;
  int64_t low = sizes.least();
  if (!fits(low)) return 0;
  while (low < most) {
    const int64_t high = std::min(2 * low, most);
    if (!fits(high)) return model::LargestThat(low, high, fits);
    low = high;
  }
  return most;
}

// Why none is larger, where the largest of all fits.
std::string_view EndOf(const Sizes& sizes, int64_t largest) {
  if (largest < sizes.most()) return "";
  return sizes.ends_at_training()
             ? "; --length asks beyond what it was trained with"
             : "; none is larger";
}

// "batch 16 is the largest batch that fits l4, 20 GiB of 24 GiB".
std::string FindingOf(std::string_view word,
                      const Trial& largest,
                      bool any_batch,
                      const std::string& target) {
  const std::string memory =
      fmt::format("{} of {}",
                  hardware::FormatBytes(largest.job.memory.total()),
                  hardware::FormatBytes(largest.job.capacity));
  if (any_batch) {
    return fmt::format(
        "any batch fits {}, {} at {}, the largest that can be counted",
        target,
        memory,
        largest.name);
  }
  return fmt::format("{} is the largest {} that fits {}, {}",
                     largest.name,
                     word,
                     target,
                     memory);
}

void AddTrial(const Trial& trial, Table& table, Json& list) {
  const JobEstimate& job = trial.job;
  const model::Workload& w = job.workload;
  table.Add({trial.name,
             CountCell(w.batch),
             CountCell(w.sequence_length),
             CountCell(model::TotalParameters(w.architecture)),
             CountCell(model::TrainableParameters(w)),
             Cell(hardware::FormatBytes(job.memory.total()),
                  ToBytes(job.memory.total())),
             job.fits() ? "fits" : job.Obstacle()});
  Json json = ToJson(job);
  json["model"] = w.architecture.name;
  json["parameters"] = model::TotalParameters(w.architecture);
  json["trainable_parameters"] = model::TrainableParameters(w);
  list.push_back(std::move(json));
}

Table TableOfTrials() {
  Table table;
  table.columns = {{"asked", "name", Align::kLeft},
                   {"batch", "batch", Align::kRight},
                   {"length", "sequence_length", Align::kRight},
                   {"parameters", "parameters", Align::kRight},
                   {"trained", "trainable_parameters", Align::kRight},
                   {"memory", "memory_bytes", Align::kRight},
                   {"", "reason", Align::kLeft}};
  return table;
}

std::vector<Note> NotesOf(Largest what,
                          const PredictionTarget& target,
                          const Scenario& scenario,
                          const std::optional<Trial>& fitting) {
  const Scenario& shown = fitting ? fitting->scenario : scenario;
  std::vector<Note> notes;
  if (target.taken_as) notes.emplace_back(*target.taken_as);
  if (auto note = PositionsNote(shown.workload)) {
    notes.push_back(std::move(*note));
  }
  if (fitting) {
    const RoomTrial has_room = RoomOn(target, scenario.source);
    if (auto note = MemoryNote(fitting->job, shown, has_room)) {
      notes.push_back(std::move(*note));
    }
  }
  if (what == Largest::kModel) {
    notes.emplace_back(
        "models are the presets of the same family; `trainfare list models`");
  }
  return notes;
}

}  // namespace

Largest LargestFromText(std::string_view text) {
  for (const auto& [value, word] : kWords) {
    if (word == text) return value;
  }
  throw UsageError(fmt::format(
      "--largest: expected batch, length or model, got \"{}\"", text));
}

int64_t LargestOf(Largest what,
                  const Scenario& scenario,
                  const PredictionTarget& target) {
  return LargestOf(what, Sizes(what, scenario, target));
}

Report LargestReport(Largest what,
                     const Scenario& scenario,
                     const PredictionTarget& target,
                     const Origin& origin) {
  const Sizes sizes(what, scenario, target);
  const int64_t largest = LargestOf(what, sizes);
  const std::string_view word = Sizes::TextOf(what);
  Report report;
  report.warnings = NotesOf(target.left_out_fits, Caution::kFitUnreadable);
  Table table = TableOfTrials();
  Json json = ResultHead("trainfare.largest/1", origin);
  json["scenario"] = ToJson(scenario);
  json["device"] = target.predictor.device().name;
  json["devices"] = target.cluster.devices;
  json["of"] = word;
  const bool any_batch = what == Largest::kBatch && largest == sizes.most();
  json["any_batch_fits"] = any_batch;
  Json list = Json::array();
  std::optional<Trial> fitting;
  if (largest > 0) {
    fitting = sizes.At(largest);
    report.answers = {"/trials/0"};
    AddTrial(*fitting, table, list);
  }
  if (largest < sizes.most() && sizes.IsJob(largest + 1)) {
    AddTrial(sizes.At(largest + 1), table, list);
  }
  json["largest"] = Json(nullptr);
  if (!fitting) {
    report.exit_code = kNothingFits;
    report.complaint = fmt::format("not even the smallest {} fits {}",
                                   word,
                                   target.predictor.device().name);
    report.headline.push_back(report.complaint);
  } else {
    json["largest"] =
        what == Largest::kModel ? Json(fitting->name) : Json(largest);
    report.headline.push_back(
        fmt::format("{}: {}{}",
                    scenario.title,
                    FindingOf(word, *fitting, any_batch, TargetName(target)),
                    any_batch ? "" : EndOf(sizes, largest)));
  }
  report.tables.push_back(std::move(table));
  report.notes = NotesOf(what, target, scenario, fitting);
  json["trials"] = std::move(list);
  report.json = AnswerText(std::move(json), report);
  return report;
}

}  // namespace trainfare::scenarios
