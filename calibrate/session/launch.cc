#include "calibrate/session/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "calibrate/fit/candidate_runs.h"
#include "calibrate/session/machine.h"
#include "calibrate/session/plan.h"
#include "calibrate/session/requests.h"
#include "calibrate/session/runs_towards.h"
#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"
#include "hardware/files/unwritten.h"
#include "hardware/files/whole_file.h"
#include "hardware/models/kind.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/nearest.h"
#include "model/presets.h"
#include "model/trainer_rules.h"

namespace trainfare::calibrate {
namespace {

using hardware::Instance;
using model::InputError;

// Both sides of the ridge: small steps that launches bound, large ones that
// arithmetic does.
constexpr int64_t kBatches[] = {4, 16, 64};
constexpr int64_t kLengths[] = {32, 128, 384};

std::vector<model::Precision> PrecisionsOf(const LaunchOptions& options) {
  if (!options.precisions.empty()) return options.precisions;
  return {model::Precision::kFp32};
}

std::string PlanLines(const LaunchOptions& options) {
  std::vector<std::string> models = options.models;
  if (models.empty()) models.emplace_back("bert-base-uncased");
  std::string lines;
  for (const std::string& name : models) {
    const model::Architecture& architecture = model::FindArchitecture(name);
    model::RequireTrainerNetwork(architecture);
    for (const model::Precision precision : PrecisionsOf(options)) {
      for (const int64_t length : kLengths) {
        if (!TakesLength(architecture, length)) continue;
        for (const int64_t batch : kBatches) {
          nlohmann::ordered_json request;
          request["model"] = architecture.name;
          request["batch"] = batch;
          request["sequence_length"] = length;
          request["precision"] = model::ToText(precision);
          request["steps"] = 6;
          request["warmup"] = 2;
          request["max_seconds"] = 30;
          lines += hardware::WriteJson(request) + "\n";
        }
      }
    }
  }
  if (lines.empty()) {
    throw InputError(
        fmt::format("--models: expected one that takes {} tokens, got {}",
                    kLengths[0],
                    fmt::join(models, ", ")));
  }
  return lines;
}

const Instance& FindInstance(const std::string& name) {
  try {
    return hardware::InstanceCatalog::Shipped().Find(name);
  } catch (const InputError& error) {
    throw InputError(fmt::format("--instances: {}", error.what()));
  }
}

// As a file, a job and a cluster may be called: letters, digits, hyphens.
std::string NameOf(const Instance& instance) {
  std::string name = "trainfare-" + instance.FullName();
  for (char& c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9')) c = '-';
  }
  return name;
}

// The trainer's name of what it can compute on.
std::string DeviceOf(const Instance& instance) {
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find(instance.device);
  const std::string_view known = hardware::KindOf(device).trainer_device;
  if (!known.empty()) return std::string(known);
  throw InputError(
      fmt::format("--instances: {}: expected processors or GPUs, which the "
                  "trainer runs on, got {}",
                  instance.FullName(),
                  instance.device));
}

// The plan is one for all of them.
void RequirePlanned(const std::vector<const Instance*>& instances,
                    const LaunchOptions& options) {
  for (const Instance* instance : instances) {
    DeviceOf(*instance);
    for (const model::Precision precision : PrecisionsOf(options)) {
      try {
        RequireTrainable(
            hardware::DeviceCatalog::Shipped().Find(instance->device),
            precision);
      } catch (const InputError& error) {
        throw InputError(fmt::format(
            "--instances: {}: {}", instance->FullName(), error.what()));
      }
    }
  }
}

// Runs of one rank, then, over all devices, all-reduces and runs. `one` and
// `all` start so many ranks. The file has its name once it is whole.
std::string Measure(const std::string& one,
                    const std::string& all,
                    bool several,
                    const std::string& device) {
  const std::string measure = fmt::format(
      R"("$trainer" measure --plan "$plan" --out "$out.part" --device {})",
      device);
  std::string text = "rm -f \"$out.part\"\n" + one + " " + measure + "\n";
  if (several) {
    text += fmt::format(
        R"({} "$trainer" bench collectives --out "$out.part" --device {})"
        "\n{} {}\n",
        all,
        device,
        all,
        measure);
  }
  return text + "mv \"$out.part\" \"$out\"\n";
}

std::string Indent(const std::string& text, const std::string& with) {
  std::string indented;
  hardware::ForEachLine(text, [&](std::string_view line) {
    indented += fmt::format("{}{}\n", with, line);
  });
  return indented;
}

constexpr std::string_view kTorchrun =
    "torchrun --standalone --nproc-per-node {} --no-python";

std::string Torchrun(int64_t ranks) {
  return fmt::format(fmt::runtime(kTorchrun), ranks);
}

constexpr std::string_view kFirstLines =
    "#!/usr/bin/env bash\n# Made by `trainfare calibrate --launch ";

std::string Head(std::string_view launcher, std::string_view usage) {
  return fmt::format(
      R"({}{}`; {}
# Records go to $TRAINFARE_RECORDS (records), one file an instance; fit them by
#   trainfare calibrate --from records/FILE.jsonl --device NAME
set -euo pipefail
records=$(mkdir -p "${{TRAINFARE_RECORDS:-records}}" &&
  cd "${{TRAINFARE_RECORDS:-records}}" && pwd)
plan=$records/plan.jsonl
)",
      kFirstLines,
      launcher,
      usage);
}

// The trainer that is there already.
constexpr std::string_view kTrainer =
    "trainer=${TRAINFARE_TRAINER:-trainfare-trainer}\n";

std::string WritePlan(const LaunchOptions& options) {
  return "cat >\"$plan\" <<'PLAN'\n" + PlanLines(options) + "PLAN\n";
}

std::string TorchrunScript(const LaunchOptions& options,
                           const std::vector<const Instance*>& instances) {
  std::string text =
      Head("torchrun",
           "run it on each instance with its name: bash SCRIPT INSTANCE") +
      std::string(kTrainer) + WritePlan(options) + "case ${1:-} in\n";
  std::vector<std::string> names;
  for (const Instance* instance : instances) {
    names.push_back(instance->FullName());
    text += fmt::format("  {})\n    out=$records/{}.jsonl\n",
                        instance->FullName(),
                        NameOf(*instance));
    text += Indent(Measure(Torchrun(1),
                           Torchrun(instance->count),
                           instance->count > 1,
                           DeviceOf(*instance)),
                   "    ");
    text += "    ;;\n";
  }
  return text + fmt::format(
                    "  *)\n    echo \"usage: bash $0 INSTANCE, one of: {}\" "
                    ">&2\n    exit 2\n    ;;\nesac\necho \"$out\"\n",
                    fmt::join(names, ", "));
}

// What waits for all jobs and says which of them left no records.
constexpr std::string_view kCollect = R"(wait
missing=0
for name in "${names[@]}"; do
  if [[ -f $records/$name.jsonl ]]; then
    echo "$records/$name.jsonl"
  else
    echo "$name: no records, see $records/$name.log" >&2
    missing=1
  fi
done
exit "$missing"
)";

std::string NameList(const std::vector<const Instance*>& instances) {
  std::string text = "names=(\n";
  for (const Instance* instance : instances) {
    text += "  " + NameOf(*instance) + "\n";
  }
  return text + ")\n";
}

std::string SlurmScript(const LaunchOptions& options,
                        const std::vector<const Instance*>& instances) {
  std::string text =
      Head("slurm",
           "run it on a login node, in a folder that all nodes share. A\n"
           "# node is chosen by a feature of the instance's name: "
           "AvailableFeatures of slurm.conf") +
      std::string(kTrainer) + WritePlan(options) + NameList(instances) +
      "export trainer plan records\n";
  for (const Instance* instance : instances) {
    const std::string name = NameOf(*instance);
    const std::string device = DeviceOf(*instance);
    text += fmt::format(
        R"(sbatch --wait --output "$records/{0}.log" <<'JOB' &
#!/usr/bin/env bash
#SBATCH --job-name={0}
#SBATCH --nodes=1
#SBATCH --ntasks-per-node={1}
#SBATCH --constraint={2}
#SBATCH --exclusive
#SBATCH --time=01:00:00
)",
        name,
        instance->count,
        instance->name);
    if (device == "cuda") {
      text += fmt::format("#SBATCH --gpus-per-node={}\n", instance->count);
    }
    text += fmt::format("set -euo pipefail\nout=$records/{}.jsonl\n", name);
    text += Measure("srun --ntasks 1",
                    fmt::format("srun --ntasks {}", instance->count),
                    instance->count > 1,
                    device);
    text += "JOB\n";
  }
  return text + std::string(kCollect);
}

std::string SkyPilotScript(const LaunchOptions& options,
                           const std::vector<const Instance*>& instances) {
  std::string text =
      Head("skypilot",
           "run it in a clone of trainfare, which each\n"
           "# cluster gets a copy of and builds; it costs what `sky` says") +
      WritePlan(options) + NameList(instances);
  for (const Instance* instance : instances) {
    const std::string name = NameOf(*instance);
    const std::string body =
        "set -euo pipefail\n"
        "trainer=$PWD/build/release/bin/trainfare-trainer\n"
        "plan=~/plan.jsonl\n"
        "out=~/records.jsonl\n"
        "export PATH=$HOME/launcher/bin:$PATH\n" +
        Measure(Torchrun(1),
                Torchrun(instance->count),
                instance->count > 1,
                DeviceOf(*instance));
    text += fmt::format(
        R"(cat >"$records/{0}.yaml" <<TASK
name: {0}
workdir: .
resources:
  infra: {1}
  instance_type: {2}
file_mounts:
  ~/plan.jsonl: $plan
setup: |
  ./setup build
  python3 -m venv ~/launcher
  ~/launcher/bin/pip install --quiet torch=={4}
TASK
cat >>"$records/{0}.yaml" <<'TASK'
run: |
{3}TASK
)",
        name,
        instance->cloud,
        instance->name,
        Indent(body, "  "),
        TRAINFARE_LIBTORCH_VERSION);
  }
  text += R"(for name in "${names[@]}"; do
  {
    sky launch --yes --cluster "$name" "$records/$name.yaml" &&
      rsync -a "$name:records.jsonl" "$records/$name.jsonl"
    sky down --yes "$name"
  } >"$records/$name.log" 2>&1 &
done
)";
  return text + std::string(kCollect);
}

}  // namespace

std::vector<std::string_view> LauncherWords() {
  return {"torchrun", "slurm", "skypilot"};
}

Launcher LauncherFromText(std::string_view text) {
  if (text == "torchrun") return Launcher::kTorchrun;
  if (text == "slurm") return Launcher::kSlurm;
  if (text == "skypilot") return Launcher::kSkyPilot;
  const std::vector<std::string_view> known = LauncherWords();
  throw InputError(fmt::format("--launch: unknown launcher \"{}\"{}; known: {}",
                               text,
                               model::DidYouMean(text, known),
                               model::JoinNames(known)));
}

std::string LaunchScript(const LaunchOptions& options) {
  if (options.instances.empty()) {
    throw InputError(
        "--instances: expected instances to calibrate, got none; see "
        "`trainfare list instances`");
  }
  std::vector<const Instance*> instances;
  for (const std::string& name : options.instances) {
    const Instance& found = FindInstance(name);
    if (std::find(instances.begin(), instances.end(), &found) ==
        instances.end()) {
      instances.push_back(&found);
    }
  }
  RequirePlanned(instances, options);
  switch (options.launcher) {
    case Launcher::kTorchrun:
      return TorchrunScript(options, instances);
    case Launcher::kSlurm:
      return SlurmScript(options, instances);
    case Launcher::kSkyPilot:
      return SkyPilotScript(options, instances);
  }
  ENSURE(false, "unknown launcher");
}

void WriteLaunchScript(const LaunchOptions& options,
                       const std::string& path,
                       std::ostream& out) {
  const std::string script = LaunchScript(options);
  if (path.empty()) {
    hardware::WriteOut(out, script);
  } else {
    hardware::WriteWholeFile(path, script);
  }
}

bool IsLaunchScript(std::string_view text) {
  return text.starts_with(kFirstLines);
}

bool IsPlan(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  return first.starts_with("{\"model\":") &&
         first.find("\"max_seconds\":") != std::string_view::npos;
}

std::string PlanText(const CalibrateOptions& options) {
  const hardware::Device& device = hardware::DeviceCatalog::Shipped().Find(
      options.device.empty() ? "cpu" : options.device);
  std::string lines;
  for (const PlannedRun& run :
       PlanAhead(device, PlanOf(device, options), options.budget)) {
    lines +=
        internal::RequestLine(run, model::ToSeconds(run.longest_duration())) +
        "\n";
  }
  if (lines.empty()) {
    throw InputError(fmt::format("no run fits in the budget of {:.0f} s",
                                 model::ToSeconds(options.budget)));
  }
  return lines;
}

void WritePlan(const CalibrateOptions& options, const std::string& path) {
  if (options.device.empty()) {
    throw InputError("--plan: say of which device, with --device");
  }
  hardware::WriteWholeFile(path, PlanText(options));
}

}  // namespace trainfare::calibrate
