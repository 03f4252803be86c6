#include "tests/fuzz/targets.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "calibrate/fit/fit_file.h"
#include "calibrate/records/import/mlperf_log.h"
#include "calibrate/records/import/nccl_tests.h"
#include "calibrate/records/import/published_reader.h"
#include "calibrate/records/import/published_workload.h"
#include "calibrate/records/import/table.h"
#include "calibrate/records/import/trainer_state.h"
#include "calibrate/records/measurement.h"
#include "calibrate/session/machine.h"
#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "hardware/catalog/interconnect.h"
#include "hardware/catalog/price.h"
#include "hardware/files/csv_file.h"
#include "hardware/files/foreign_text.h"
#include "hardware/files/json_text.h"
#include "hardware/files/model_config.h"
#include "hardware/files/unit_text.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"
#include "model/presets.h"
#include "scenarios/commands/diff.h"
#include "scenarios/job/scenario.h"
#include "tests/fuzz/scratch_file.h"
#include "trainer/data/checkpoint_header.h"
#include "trainer/data/data.h"
#include "trainer/data/measure_request.h"
#include "trainer/data/safetensors.h"
#include "trainer/data/wordpiece.h"

namespace trainfare::fuzz {
namespace {

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
  static const ScratchFile file("input.yaml");
  scenarios::LoadScenario(file.With(bytes));
}

void ReadLengths(std::string_view bytes) {
  static const ScratchFile file("input.yaml");
  scenarios::LoadLengths(file.With(bytes));
}

void ReadDevice(std::string_view bytes) {
  static const ScratchFile file("input.yaml");
  hardware::LoadDevice(file.With(bytes));
}

void ReadInterconnect(std::string_view bytes) {
  static const ScratchFile file("input.yaml");
  hardware::LoadInterconnect(file.With(bytes));
}

void ReadInstances(std::string_view bytes) {
  static const ScratchFile file("input.yaml");
  hardware::InstanceCatalog::Load(file.FolderWith(bytes));
}

void ReadPriceList(std::string_view bytes) {
  static const ScratchFile file("input.yaml");
  hardware::LoadPrices(file.With(bytes));
}

void ReadPublished(std::string_view bytes) {
  static const ScratchFile file("input.yaml");
  const calibrate::Published published =
      calibrate::LoadPublished(file.FolderWith(bytes));
  for (const auto& [name, run] : published.runs) calibrate::WorkloadOf(run);
}

void ReadFit(std::string_view bytes) {
  static const ScratchFile file("input.yaml");
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
  static const ScratchFile file("input.csv");
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
  static const ScratchFile file("input.json");
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

void ReadModelConfig(std::string_view bytes) {
  static const ScratchFile file("config.json");
  hardware::ReadModelConfig(file.With(bytes));
}

void ReadAnswer(std::string_view bytes) {
  static const ScratchFile file("input.json");
  const std::string path = file.With(bytes);
  scenarios::Diff(path, path);
}

// The trainer's readers that need no tensors.

void ReadSafetensors(std::string_view bytes) {
  static const ScratchFile file("input.safetensors");
  const trainer::SafetensorsFile read(file.With(bytes));
  // What is said to be there is there.
  unsigned char sum = 0;
  for (const auto& [name, tensor] : read.tensors()) {
    for (size_t i = 0; i < tensor.size; i += 4096) {
      sum ^= static_cast<unsigned char>(tensor.data[i]);
    }
  }
  [[maybe_unused]] static volatile unsigned char used;
  used = sum;
}

constexpr std::string_view kText =
    "[MASK] Caf\u00e9 un-affable \u4f60\u597d, na\xefve.";

void ReadCheckpoint(std::string_view bytes) {
  static const ScratchFile file("checkpoint.safetensors");
  trainer::ReadCheckpointHeader(trainer::SafetensorsFile(file.With(bytes)),
                                {{"batch", "3"}});
}

void ReadPlan(std::string_view bytes) {
  trainer::ReadMeasureRequest(std::string(bytes));
}

void ReadTokenizer(std::string_view bytes) {
  static const ScratchFile file("tokenizer.json");
  trainer::WordPiece::FromFolder(file.FolderWith(bytes)).Encode(kText, 16);
}

void ReadVocabulary(std::string_view bytes) {
  static const ScratchFile file("vocab.txt");
  trainer::WordPiece::FromFolder(file.FolderWith(bytes)).Encode(kText, 16);
}

void ReadExamples(std::string_view bytes) {
  static const ScratchFile file("input.jsonl");
  static const model::Architecture encoder =
      model::FindArchitecture("bert-tiny");
  trainer::ReadExamples(file.With(bytes), nullptr, encoder, 16);
}

void ReadHistogram(std::string_view bytes) {
  static const ScratchFile file("input.csv");
  static const model::Architecture encoder =
      model::FindArchitecture("bert-tiny");
  trainer::LengthHistogram::FromFile(file.With(bytes))
      .Draw(8, encoder, 5, 64, 1);
}

constexpr std::array<Target, 28> kTargets = {
    {{"answer", ReadAnswer},
     {"checkpoint", ReadCheckpoint},
     {"csv", ReadCsv},
     {"device", ReadDevice},
     {"devices", ReadDevices},
     {"examples", ReadExamples},
     {"fit", ReadFit},
     {"histogram", ReadHistogram},
     {"instances", ReadInstances},
     {"interconnect", ReadInterconnect},
     {"json", ReadJson},
     {"lengths", ReadLengths},
     {"mlperf", ReadMlperf},
     {"model_config", ReadModelConfig},
     {"nccl_tests", ReadNcclTests},
     {"plan", ReadPlan},
     {"price_list", ReadPriceList},
     {"prices", ReadPrices},
     {"published", ReadPublished},
     {"records", ReadRecords},
     {"safetensors", ReadSafetensors},
     {"scenario", ReadScenario},
     {"table", ReadTable},
     {"text", ReadText},
     {"tokenizer", ReadTokenizer},
     {"trainer_state", ReadTrainerState},
     {"vocabulary", ReadVocabulary},
     {"yaml", ReadYaml}}};

}  // namespace

std::span<const Target> Targets() { return kTargets; }

}  // namespace trainfare::fuzz
