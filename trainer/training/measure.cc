#include "trainer/training/measure.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "hardware/files/json_text.h"
#include "model/error.h"
#include "trainer/device/device.h"
#include "trainer/device/device_memory.h"
#include "trainer/device/out_of_memory.h"
#include "trainer/network/dropout.h"
#include "trainer/network/encoder.h"
#include "trainer/runtime/failure.h"
#include "trainer/runtime/line_writer.h"
#include "trainer/runtime/signals.h"

namespace trainfare::trainer {
namespace {

using model::Architecture;
using model::InputError;
using nlohmann::json;

// One JSON object whose keys must all be known.
class ObjectReader {
 public:
  ObjectReader(const json& object,
               std::string path,
               std::initializer_list<const char*> known)
      : object_(object), path_(std::move(path)) {
    if (!object.is_object()) {
      throw InputError(fmt::format("{}: expected an object, got {}",
                                   path_.empty() ? "request" : path_,
                                   object.type_name()));
    }
    for (const auto& item : object.items()) {
      if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
        throw InputError(fmt::format("{}: unknown key; known: {}",
                                     At(item.key()),
                                     fmt::join(known, ", ")));
      }
    }
  }

  bool Has(const char* key) const { return object_.contains(key); }
  const json& Raw(const char* key) const { return object_.at(key); }

  int64_t Count(const char* key, int64_t fallback, int64_t least) const {
    if (!Has(key)) return fallback;
    const json& value = Raw(key);
    if (!value.is_number_integer() || value.get<int64_t>() < least ||
        value.get<int64_t>() > kLargestCount) {
      throw InputError(
          fmt::format("{}: expected an integer from {} to {}, got {}",
                      At(key),
                      least,
                      kLargestCount,
                      hardware::ShownJson(value)));
    }
    return value.get<int64_t>();
  }
  int64_t RequiredCount(const char* key, int64_t least) const {
    if (!Has(key)) throw InputError(fmt::format("{}: missing", At(key)));
    return Count(key, 0, least);
  }
  double Number(const char* key,
                double fallback,
                double least,
                double most) const {
    if (!Has(key)) return fallback;
    const json& value = Raw(key);
    const double number = value.is_number() ? value.get<double>() : least - 1.0;
    if (!(number >= least && number <= most)) {
      throw InputError(
          fmt::format("{}: expected a number from {} to {}, got {}",
                      At(key),
                      least,
                      most,
                      hardware::ShownJson(value)));
    }
    return number;
  }
  bool Flag(const char* key, bool fallback) const {
    if (!Has(key)) return fallback;
    if (!Raw(key).is_boolean()) {
      throw InputError(fmt::format("{}: expected true or false, got {}",
                                   At(key),
                                   hardware::ShownJson(Raw(key))));
    }
    return Raw(key).get<bool>();
  }
  std::string Text(const char* key, std::string_view fallback) const {
    if (!Has(key)) return std::string(fallback);
    if (!Raw(key).is_string()) {
      throw InputError(fmt::format("{}: expected a text, got {}",
                                   At(key),
                                   hardware::ShownJson(Raw(key))));
    }
    return Raw(key).get<std::string>();
  }
  // A word of one of the lists in model/; the message gets the key in front.
  template <class Parse>
  auto Word(const char* key, std::string_view fallback, Parse parse) const {
    try {
      return parse(Text(key, fallback));
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", At(key), error.what()));
    }
  }

 private:
  // Far beyond any machine, far below an overflow of products of counts.
  static constexpr int64_t kLargestCount = 1'000'000'000;

  std::string At(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }

  const json& object_;
  std::string path_;
};

Architecture ReadArchitecture(const json& value) {
  if (value.is_string()) {
    return model::FindArchitecture(value.get<std::string>());
  }
  const ObjectReader reader(value,
                            "model",
                            {"name",
                             "family",
                             "layers",
                             "decoder_layers",
                             "hidden",
                             "heads",
                             "intermediate",
                             "vocabulary",
                             "positions",
                             "position_offset",
                             "token_types",
                             "embedding_layer_norm",
                             "pooler",
                             "classifier_dense",
                             "head",
                             "labels",
                             "dropout"});
  Architecture architecture;
  architecture.name = reader.Text("name", "custom");
  architecture.family = reader.Word("family", "encoder", model::FamilyFromText);
  const bool encoder = architecture.family == model::Family::kEncoder;
  const bool two_sided = architecture.family == model::Family::kEncoderDecoder;
  architecture.layers = reader.RequiredCount("layers", 1);
  architecture.decoder_layers = two_sided
                                    ? reader.RequiredCount("decoder_layers", 1)
                                    : reader.Count("decoder_layers", 0, 0);
  architecture.hidden = reader.RequiredCount("hidden", 1);
  architecture.heads = reader.RequiredCount("heads", 1);
  architecture.intermediate =
      reader.Count("intermediate", 4 * architecture.hidden, 1);
  architecture.vocabulary = reader.RequiredCount("vocabulary", 8);
  // A fixed table, of any length, has no rows of its own.
  architecture.positions =
      two_sided ? reader.Count("positions", 0, 0)
                : reader.Count("positions", encoder ? 512 : 1024, 1);
  architecture.position_offset = reader.Count("position_offset", 0, 0);
  architecture.token_types = reader.Count("token_types", encoder ? 2 : 0, 0);
  architecture.embedding_layer_norm =
      reader.Flag("embedding_layer_norm", encoder);
  const bool bert = encoder && LayoutOf(architecture) == EncoderLayout::kBert;
  architecture.pooler = reader.Flag("pooler", bert);
  architecture.classifier_dense =
      reader.Flag("classifier_dense", encoder && !bert);
  architecture.head =
      reader.Word("head",
                  encoder ? "sequence-classification" : "causal-language-model",
                  model::HeadFromText);
  architecture.labels = reader.Count("labels", 2, 1);
  architecture.dropout = reader.Number("dropout", 0.1, 0.0, 0.99);
  return architecture;
}

model::Optimizer ReadOptimizer(const json& value) {
  const ObjectReader reader(value, "optimizer", {"name", "implementation"});
  model::Optimizer optimizer;
  optimizer.kind = reader.Word("name", "adamw", model::OptimizerKindFromText);
  optimizer.implementation = reader.Word(
      "implementation", "fused", model::OptimizerImplementationFromText);
  return optimizer;
}

// Full-length sequences of random words.
class RandomBatches {
 public:
  RandomBatches(const model::Workload& workload,
                const TransformerOptions& options,
                at::Device device,
                uint64_t seed)
      : workload_(workload),
        options_(options),
        device_(device),
        generator_(at::detail::createCPUGenerator(seed)) {}

  Batch Next() {
    const Architecture& architecture = workload_.architecture;
    Batch batch;
    batch.input_ids = Words(workload_.sequence_length);
    if (architecture.family == model::Family::kEncoderDecoder) {
      batch.labels =
          Words(workload_.target_length > 0 ? workload_.target_length
                                            : workload_.sequence_length);
      batch.target_ids = ShiftRight(
          batch.labels, options_.decoder_start_id, options_.padding_id);
    } else if (architecture.family == model::Family::kDecoder) {
      batch.labels = NextTokens(batch.input_ids, {});
    } else if (architecture.head == model::Head::kQuestionAnswering) {
      batch.start_positions =
          Draw(0, workload_.sequence_length, {workload_.batch});
      batch.end_positions =
          Draw(0, workload_.sequence_length, {workload_.batch});
    } else {
      batch.labels = Draw(0, architecture.labels, {workload_.batch});
    }
    return batch;
  }

 private:
  at::Tensor Words(int64_t length) {
    return Draw(options_.padding_id + 1,
                workload_.architecture.vocabulary,
                {workload_.batch, length});
  }
  at::Tensor Draw(int64_t low, int64_t high, at::IntArrayRef sizes) {
    return at::randint(low, high, sizes, generator_, at::kLong).to(device_);
  }

  const model::Workload& workload_;
  const TransformerOptions& options_;
  at::Device device_;
  at::Generator generator_;
};

void CheckSupported(const model::Workload& workload) {
  if (workload.target_length > 0 &&
      workload.architecture.family != model::Family::kEncoderDecoder) {
    throw InputError(
        fmt::format("target_length: expected an encoder-decoder, got {} ({})",
                    workload.architecture.name,
                    model::ToText(workload.architecture.family)));
  }
  RequireOwnStack(workload.stack.fusion);
  ParameterType(workload);
}

}  // namespace

MeasureRequest ParseMeasureRequest(const std::string& text) {
  const json value = hardware::ParseJson(text, "request", 1);
  const ObjectReader reader(value,
                            "",
                            {"model",
                             "batch",
                             "sequence_length",
                             "target_length",
                             "accumulation",
                             "precision",
                             "optimizer",
                             "stack",
                             "attention",
                             "narrow_weights",
                             "steps",
                             "warmup",
                             "max_seconds",
                             "seed",
                             "layers"});
  if (!reader.Has("model")) throw InputError("model: missing");
  MeasureRequest request;
  model::Workload& workload = request.workload;
  workload.architecture = ReadArchitecture(reader.Raw("model"));
  workload.batch = reader.RequiredCount("batch", 1);
  workload.sequence_length = reader.RequiredCount("sequence_length", 1);
  workload.target_length = reader.Count("target_length", 0, 0);
  workload.accumulation = reader.Count("accumulation", 1, 1);
  workload.precision =
      reader.Word("precision", "fp32", model::PrecisionFromText);
  workload.optimizer = ReadOptimizer(
      reader.Has("optimizer") ? reader.Raw("optimizer") : json::object());
  workload.stack.fusion = reader.Word("stack", "eager", model::FusionFromText);
  workload.stack.attention =
      reader.Word("attention", "materialised", model::AttentionFromText);
  workload.stack.narrow_weights = reader.Flag("narrow_weights", false);
  if (workload.stack.narrow_weights) {
    workload.optimizer.masters = model::Masters::kInUpdate;
  }
  request.steps = reader.Count("steps", request.steps, 1);
  request.warmup = reader.Count("warmup", request.warmup, 0);
  request.max_seconds =
      reader.Number("max_seconds", request.max_seconds, 0.0, 1e6);
  request.seed = static_cast<uint64_t>(reader.Count("seed", 1, 0));
  request.layers = reader.Flag("layers", false);
  model::Validate(workload);
  CheckSupported(workload);
  return request;
}

Session& Measurer::SessionFor(const MeasureRequest& request) {
  const model::Workload& workload = request.workload;
  if (session_ && session_workload_->architecture == workload.architecture &&
      session_workload_->stack == workload.stack &&
      session_workload_->precision == workload.precision &&
      session_workload_->optimizer == workload.optimizer) {
    session_->transformer().Reset(request.seed);
    session_->optimizer().Reset();
    if (session_->loss_scale()) session_->set_loss_scale({});
    return *session_;
  }
  session_.reset();
  session_workload_.reset();
  ReleaseMemory(device_);
  TransformerOptions options = DefaultOptions(workload.architecture);
  options.fusion = workload.stack.fusion;
  options.attention = workload.stack.attention;
  options.type = ParameterType(workload);
  OptimizerOptions optimizer;
  optimizer.kind = workload.optimizer;
  session_ = std::make_unique<Session>(
      MakeTransformer(workload.architecture, options, device_, request.seed),
      workload.precision,
      optimizer);
  if (ranks_.communicator != nullptr) {
    session_->Join(*ranks_.communicator, ranks_.buckets);
    session_->ranks()->BroadcastParameters();
    session_->optimizer().Reset();  // masters of rank 0's parameters
  }
  session_workload_ = workload;
  return *session_;
}

std::optional<StepRecord> Measurer::Run(const MeasureRequest& request) {
  return WithMemoryReport(request.workload, Describe(device_).name, [&] {
    return RunSteps(request);
  });
}

std::optional<StepRecord> Measurer::RunSteps(const MeasureRequest& request) {
  const model::Workload& workload = request.workload;
  Session& session = SessionFor(request);
  session.optimizer().ZeroGradients();
  ReleaseMemory(session.transformer().device());
  ResetPeakMemory(session.transformer().device());
  // Each rank draws its own part of the batch, and its own masks.
  const uint64_t own_seed = request.seed + static_cast<uint64_t>(ranks_.rank());
  SeedDropout(own_seed);
  RandomBatches batches(
      workload, session.transformer().options(), device_, own_seed);

  StepRecord record;
  record.device = Describe(device_);
  record.workload = workload;
  record.seed = request.seed;
  record.parameters = session.transformer().parameter_count();
  record.ranks = session.DescribeRanks();
  session.set_time_parts(layers_ || request.layers);
  DataParallel* const parallel = session.ranks();
  if (ranks_.several()) ranks_.communicator->Barrier();
  const double start = MonotonicSeconds();
  RunMonitor monitor(record.device.bus_id);
  for (int64_t step = 0; step < request.warmup + request.steps; ++step) {
    if (step == request.warmup) monitor.Begin();
    const bool late = MonotonicSeconds() - start > request.max_seconds;
    if (parallel != nullptr) {
      parallel->AskToStop(StopRequested() || (late && step > request.warmup));
    }
    record.samples.push_back(
        {step,
         step < request.warmup,
         session.Step(
             workload.accumulation, [&](int64_t) { return batches.Next(); })});
    monitor.AfterStep();
    if (parallel != nullptr) {
      if (record.samples.back().times.stop) break;
      continue;  // all ranks stop, or none
    }
    if (StopRequested()) break;
    if (step >= request.warmup &&
        MonotonicSeconds() - start > request.max_seconds) {
      break;
    }
  }
  if (monitor.begun()) record.conditions = monitor.End();
  if (session.time_parts()) record.parts = session.parts();
  record.optimizer_launches = session.optimizer_launches();
  if (const auto scale = session.loss_scale()) {
    record.skipped_steps = scale->skipped_steps;
  }
  const PeakMemory peak = PeakMemoryOf(session.transformer().device());
  record.peak_memory_bytes = peak.held_bytes;
  record.peak_allocated_bytes = peak.allocated_bytes;
  // A run that a signal cut short of its first timed step is no measurement.
  if (StopRequested() && record.samples.back().warmup) return std::nullopt;
  RequireDeviceTime(record);
  return record;
}

int AnswerPlan(
    const std::string& plan,
    const std::string& out,
    const std::function<std::vector<std::string>(const MeasureRequest&)>&
        answer,
    const RankGroup& ranks) {
  const bool first = ranks.rank() == 0;
  std::ifstream file;
  if (plan != "-" && first) {
    file.open(plan);
    if (!file) {
      throw InputError(fmt::format("{}: cannot read this plan", plan));
    }
  }
  std::istream& requests = plan == "-" ? std::cin : file;
  const std::unique_ptr<LineWriter> records =
      OpenRecords(out, ranks.communicator);
  const auto next_line = [&](std::string& line) {
    if (!first) {
      const std::optional<std::string> published =
          ranks.communicator->NextPublished();
      line = published.value_or("");
      return published.has_value();
    }
    bool got = false;
    {
      const WaitingForInput waiting;
      got = static_cast<bool>(std::getline(requests, line));
    }
    if (ranks.several()) {
      ranks.communicator->Publish(got ? std::optional(line) : std::nullopt);
    }
    return got;
  };
  for (std::string line; next_line(line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::vector<std::string> answers;
    try {
      answers = answer(ParseMeasureRequest(line));
    } catch (const std::exception& error) {
      // What fails on one rank alone (memory) must end all: the others wait
      // in a collective. What is wrong with a request, all of them find.
      const bool everywhere =
          dynamic_cast<const InputError*>(&error) != nullptr;
      if (!IsBadRequest(error) || (ranks.several() && !everywhere)) throw;
      answers = {ErrorJsonLine(line, FirstLine(error))};
    }
    if (records) {
      for (std::string& text : answers) records->Write(std::move(text));
    }
    if (StopRequested()) {
      if (ranks.several() && first) ranks.communicator->Publish(std::nullopt);
      return kInterruptedExit;
    }
  }
  return 0;
}

int RunMeasurePlan(const std::string& plan,
                   const std::string& out,
                   at::Device device,
                   bool layers,
                   const RankGroup& ranks) {
  Measurer measurer(device, layers, ranks);
  const auto answer = [&](const MeasureRequest& request) {
    std::vector<std::string> answers;
    if (const auto record = measurer.Run(request)) {
      answers.push_back(ToJsonLine(*record));
    }
    return answers;
  };
  return AnswerPlan(plan, out, answer, ranks);
}

}  // namespace trainfare::trainer
