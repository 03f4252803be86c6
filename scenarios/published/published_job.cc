#include "scenarios/published/published_job.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "calibrate/records/import/published_reader.h"
#include "calibrate/records/import/published_workload.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::scenarios {
namespace {

namespace fs = std::filesystem;
using calibrate::Published;
using calibrate::PublishedRun;
using model::InputError;

std::string FileOf(const PublishedRun& run) {
  // "path/file.yaml:12:5"
  const size_t end = run.position.rfind(".yaml:");
  return run.position.substr(0, end + std::string_view(".yaml").size());
}

}  // namespace

Cluster PublishedJob::ClusterFor(const calibrate::Predictor& predictor) const {
  return instance != nullptr ? ClusterOf(*instance, devices, predictor)
                             : ClusterOf(predictor, devices);
}

PublishedJob JobOf(const Published& published, const PublishedRun& run) {
  if (!run.device) throw InputError("the device is not stated");
  PublishedJob job;
  job.device = &hardware::DeviceCatalog::Shipped().Find(*run.device);
  if (run.instance) {
    job.instance = &hardware::InstanceCatalog::Shipped().Find(*run.instance);
  }
  job.devices = run.device_count;
  Scenario& s = job.scenario;
  s.name = run.name;
  s.title = run.name;
  s.path = FileOf(run);
  s.source = run.document;
  s.workload = calibrate::WorkloadOf(run);
  const model::RunPlan plan = calibrate::PlanOf(published, run);
  s.train_samples = plan.train_samples;
  s.epochs = plan.epochs;
  s.names_optimizer = run.optimizer.has_value();
  s.PadTo(*run.sequence_length);
  if (run.lengths) {
    LengthFile lengths =
        LoadLengths((fs::path(s.path).parent_path() / *run.lengths).string());
    s.lengths = std::move(lengths.histogram);
    s.lengths_source = std::move(lengths.source);
    s.padding = {PaddingKind::kDynamic, *run.sequence_length, {}};
  }
  // The time of a run is printed from where training begins.
  s.extras.start_up = model::Seconds<>();
  s.extras.swap = run.swap.value_or(model::Bytes<>());
  return job;
}

bool NamesPublishedRun(std::string_view name) {
  return name.find(".yaml#") != std::string_view::npos;
}

PublishedJob LoadPublishedJob(const std::string& name) {
  const size_t mark = name.find('#');
  const fs::path file = name.substr(0, mark);
  const std::string wanted = name.substr(mark + 1);
  if (!fs::exists(file)) throw InputError(file.string() + ": no such file");
  calibrate::RequirePublished(file.string());
  const fs::path folder = file.parent_path();
  const Published published =
      calibrate::LoadPublished(folder.empty() ? "." : folder.string());
  const auto found = published.runs.find(wanted);
  if (found == published.runs.end() ||
      fs::path(FileOf(found->second)).filename() != file.filename()) {
    std::vector<std::string_view> known;
    for (const auto& [run_name, run] : published.runs) {
      if (fs::path(FileOf(run)).filename() == file.filename()) {
        known.push_back(run_name);
      }
    }
    throw InputError(fmt::format("{}: unknown run \"{}\"{}",
                                 file.string(),
                                 wanted,
                                 model::OfKnown(wanted, known)));
  }
  try {
    return JobOf(published, found->second);
  } catch (const InputError& error) {
    throw InputError(fmt::format(
        "{}: {}: {}", found->second.position, wanted, error.what()));
  }
}

}  // namespace trainfare::scenarios
