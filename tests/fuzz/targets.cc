#include "tests/fuzz/targets.h"

#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "calibrate/fit/fit.h"
#include "calibrate/records/import/mlperf_log.h"
#include "calibrate/records/import/nccl_tests.h"
#include "calibrate/records/import/table.h"
#include "calibrate/records/import/trainer_state.h"
#include "calibrate/records/measurement.h"
#include "calibrate/session/machine.h"
#include "hardware/catalog/price.h"
#include "hardware/files/csv_file.h"
#include "hardware/files/foreign_text.h"
#include "hardware/files/json_text.h"
#include "hardware/files/unit_text.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"
#include "scenarios/job/scenario.h"

namespace trainfare::fuzz {
namespace {

namespace fs = std::filesystem;

// A file for readers that take a path; one a process.
class ScratchFile {
 public:
  explicit ScratchFile(std::string_view suffix) {
    std::string folder =
        (fs::temp_directory_path() / "trainfare_fuzz_XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) ::abort();
    folder_ = folder;
    path_ = folder_ / ("input" + std::string(suffix));
  }
  ~ScratchFile() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  std::string With(std::string_view bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    return path_.string();
  }

 private:
  fs::path folder_;
  fs::path path_;
};

calibrate::RunContext Run128() {
  calibrate::RunContext run;
  run.workload.architecture = model::FindArchitecture("bert-base-uncased");
  run.workload.batch = 8;
  run.workload.sequence_length = 128;
  run.device = "t4";
  return run;
}

void ReadYaml(std::string_view bytes) {
  const auto root = hardware::Reader::FromText(bytes, "f.yaml");
  for (const std::string& key : root.Keys()) {
    if (root.IsText(key)) hardware::ParseNumber(root.OptionalText(key).value());
  }
  root.Finish();
}

void ReadScenario(std::string_view bytes) {
  static const ScratchFile file(".yaml");
  scenarios::LoadScenario(file.With(bytes));
}

void ReadLengths(std::string_view bytes) {
  static const ScratchFile file(".yaml");
  scenarios::LoadLengths(file.With(bytes));
}

void ReadFit(std::string_view bytes) {
  static const ScratchFile file(".yaml");
  calibrate::LoadFit(file.With(bytes));
}

void ReadRecords(std::string_view bytes) {
  calibrate::ParseMeasurements(bytes, "f.jsonl");
}

void ReadTable(std::string_view bytes) {
  calibrate::ParseTable(bytes, "f.csv");
}

void ReadCsv(std::string_view bytes) {
  hardware::CsvFile::Parse(bytes, "f.csv");
}

void ReadPrices(std::string_view bytes) {
  static const ScratchFile file(".csv");
  hardware::ImportSkyPilotCatalog(file.With(bytes), "aws", "2026-05-20");
}

void ReadMlperf(std::string_view bytes) {
  static const calibrate::RunContext run = Run128();
  calibrate::ParseMlperfLog(bytes, "f.txt", run);
}

void ReadNcclTests(std::string_view bytes) {
  calibrate::ToRecords(calibrate::ParseNcclTests(bytes, "f.txt"));
}

void ReadTrainerState(std::string_view bytes) {
  static const ScratchFile file(".json");
  static const calibrate::RunContext run = Run128();
  const std::string path = file.With(bytes);
  if (calibrate::IsTrainerState(path)) calibrate::ReadTrainerState(path, run);
}

void ReadDevices(std::string_view bytes) {
  calibrate::ParseDevices(std::string(bytes));
}

void ReadJson(std::string_view bytes) {
  hardware::WriteJson(hardware::ParseJson(bytes, "f.json"));
}

void ReadText(std::string_view bytes) {
  using hardware::Dimension;
  hardware::OneLine(bytes);
  hardware::DisplayWidth(bytes);
  hardware::CutToWidth(bytes, 10);
  for (const Dimension dimension :
       {Dimension::kBytes, Dimension::kTime, Dimension::kPrice}) {
    hardware::ParseBase(dimension, bytes);
    hardware::UnitHint(dimension, bytes);
  }
  hardware::ParseInteger(bytes);
  hardware::IsDate(bytes);
}

constexpr std::array<Target, 14> kTargets = {
    {{"csv", ReadCsv},
     {"devices", ReadDevices},
     {"fit", ReadFit},
     {"json", ReadJson},
     {"lengths", ReadLengths},
     {"mlperf", ReadMlperf},
     {"nccl_tests", ReadNcclTests},
     {"prices", ReadPrices},
     {"records", ReadRecords},
     {"scenario", ReadScenario},
     {"table", ReadTable},
     {"text", ReadText},
     {"trainer_state", ReadTrainerState},
     {"yaml", ReadYaml}}};

}  // namespace

std::span<const Target> Targets() { return kTargets; }

void Run(const Target& target, std::string_view bytes) {
  try {
    target.read(bytes);
  } catch (const model::InputError&) {
    // Refused with a message: what a reader is for.
  }
}

}  // namespace trainfare::fuzz
