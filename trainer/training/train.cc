#include "trainer/training/train.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "hardware/files/foreign_text.h"
#include "hardware/files/progress_line.h"
#include "hardware/files/terminal.h"
#include "hardware/files/text_file.h"
#include "hardware/files/whole_file.h"
#include "model/error.h"
#include "model/fields.h"
#include "model/limits.h"
#include "model/presets.h"
#include "model/sharding.h"
#include "model/validate.h"
#include "trainer/data/data.h"
#include "trainer/device/device.h"
#include "trainer/device/device_memory.h"
#include "trainer/device/out_of_memory.h"
#include "trainer/network/dropout.h"
#include "trainer/network/make_transformer.h"
#include "trainer/network/pretrained.h"
#include "trainer/record/record.h"
#include "trainer/runtime/line_writer.h"
#include "trainer/runtime/signals.h"
#include "trainer/training/checkpoint.h"
#include "trainer/training/feed.h"
#include "trainer/training/session.h"

namespace trainfare::trainer {
namespace {

using model::InputError;

// The first steps allocate and compile kernels: kept, but not timed.
constexpr int64_t kWarmupSteps = 2;

bool IsModelFolder(const std::string& model) {
  return std::filesystem::is_directory(model);
}

PretrainedConfig Configure(const std::string& model,
                           std::optional<int64_t> labels) {
  PretrainedConfig config;
  if (IsModelFolder(model)) {
    config = ReadConfig(model);
  } else {
    config.architecture = model::FindArchitecture(model);
    config.options = DefaultOptions(config.architecture);
  }
  if (labels) config.architecture.labels = *labels;
  return config;
}

std::optional<WordPiece> OpenTokenizer(const std::string& folder,
                                       const model::Architecture& model) {
  if (folder.empty()) return std::nullopt;
  WordPiece tokenizer = WordPiece::FromFolder(folder);
  if (tokenizer.size() > model.vocabulary) {
    throw InputError(fmt::format(
        "{}: expected a vocabulary of at most {} tokens, as {} has, got {}",
        folder,
        model.vocabulary,
        model.name,
        tokenizer.size()));
  }
  return tokenizer;
}

// The model's own folder may carry no vocabulary: data may be ids already.
std::string TokenizerFolder(const std::string& chosen,
                            const std::string& model) {
  if (!chosen.empty() || !IsModelFolder(model)) return chosen;
  const std::filesystem::path root(model);
  return std::filesystem::exists(root / "vocab.txt") ||
                 std::filesystem::exists(root / "tokenizer.json")
             ? model
             : "";
}

double Accuracy(const Session& session,
                const Transformer& transformer,
                const std::vector<Example>& examples,
                const TrainOptions& options,
                Communicator* ranks) {
  const std::vector<size_t> order = InOrder(examples.size());
  int64_t right = 0;
  auto [first, end] = Share(ranks).Of(0, examples.size());
  while (first < end) {
    const size_t last =
        std::min(first + static_cast<size_t>(options.workload.batch), end);
    const Batch data =
        MakeBatch(examples,
                  order,
                  first,
                  last,
                  PaddedLengths(examples, order, first, last, options),
                  transformer);
    right +=
        session.Predict(data).argmax(-1).eq(data.labels).sum().item<int64_t>();
    first = last;
  }
  if (ranks != nullptr && ranks->world_size() > 1) {
    const at::Tensor sum = at::full(
        {1}, right, at::TensorOptions(transformer.device()).dtype(at::kLong));
    ranks->AllReduce(sum)->Wait();
    right = sum.item<int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(examples.size());
}

// Linear warm-up, then linear decay to 0: the schedule of BERT fine-tuning.
double LearningRate(const TrainOptions& options, int64_t step, int64_t steps) {
  const double warmup =
      std::floor(options.warmup_fraction * static_cast<double>(steps));
  const auto at = static_cast<double>(step);
  if (at < warmup) return options.learning_rate * (at + 1) / (warmup + 1);
  return options.learning_rate * (static_cast<double>(steps) - at) /
         std::max(static_cast<double>(steps) - warmup, 1.0);
}

// The columns of the line of progress; nullopt: nobody waits for it.
std::optional<size_t> ProgressWidth(bool wanted) {
  return wanted && ::isatty(STDOUT_FILENO) != 0
             ? hardware::TerminalWidth(STDERR_FILENO)
             : std::nullopt;
}

// FNV-1a (Fowler, Noll & Vo) over all ids and labels.
uint64_t Fingerprint(const std::vector<Example>& examples) {
  uint64_t hash = 14695981039346656037ULL;
  const auto add = [&](int64_t value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 1099511628211ULL;
  };
  for (const Example& example : examples) {
    for (const int64_t id : example.ids) add(id);
    for (const int64_t id : example.target_ids) add(id);
    for (const int64_t value : {example.label, example.start, example.end}) {
      add(value);
    }
  }
  return hash;
}

// What decides the losses of a run: all of it must be the same to go on.
std::map<std::string, std::string> RunIdentity(
    const TrainOptions& options,
    const model::Workload& workload,
    int64_t steps,
    size_t world_size,
    const std::vector<Example>& examples) {
  std::map<std::string, std::string> identity = model::FieldTexts(workload);
  identity.erase("model.name");  // a folder may be moved
  identity.merge(std::map<std::string, std::string>{
      {"data", fmt::format("{:016x}", Fingerprint(examples))},
      {"steps", std::to_string(steps)},
      {"ranks", std::to_string(world_size)},
      {"batch-tokens", std::to_string(options.batch_tokens)},
      {"padding", std::string(ToText(options.padding))},
      {"learning-rate", fmt::format("{}", options.learning_rate)},
      {"weight-decay", fmt::format("{}", options.weight_decay)},
      {"warmup-fraction", fmt::format("{}", options.warmup_fraction)},
      {"layer-decay", fmt::format("{}", options.layer_decay)},
      {"clip-norm", fmt::format("{}", options.largest_gradient_norm)},
      {"seed", std::to_string(options.seed)}});
  return identity;
}

void Save(const TrainOptions& options, const Transformer& transformer) {
  const std::filesystem::path folder(options.save);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw InputError(
        fmt::format("{}: cannot create: {}", options.save, error.message()));
  }
  SaveTensors((folder / "model.safetensors").string(),
              transformer.parameters());
  if (!IsModelFolder(options.model)) return;
  for (const char* name : {"config.json",
                           "vocab.txt",
                           "tokenizer.json",
                           "tokenizer_config.json"}) {
    const auto from = std::filesystem::path(options.model) / name;
    if (std::filesystem::exists(from) && options.model != options.save) {
      hardware::WriteWholeFile(
          (folder / name).string(),
          hardware::ReadTextFile(from.string(), "a file of a model"));
    }
  }
}

// A checkpoint that only some ranks can see would let them drift apart.
void CheckSameStep(Communicator& ranks,
                   int64_t first_step,
                   const TrainOptions& options,
                   at::Device device) {
  if (ranks.world_size() == 1) return;
  const at::Tensor steps = at::zeros(
      {ranks.world_size()}, at::TensorOptions(device).dtype(at::kLong));
  steps[ranks.rank()] = first_step;
  ranks.AllReduce(steps)->Wait();
  for (int rank = 0; rank < ranks.world_size(); ++rank) {
    const auto other = steps[rank].item<int64_t>();
    if (other != first_step) {
      throw InputError(fmt::format(
          "{}: rank {} goes on from step {} and rank {} from step {}; hint: a "
          "folder that all hosts share",
          options.checkpoint,
          ranks.rank(),
          first_step,
          rank,
          other));
    }
  }
}

// With the sequences of a batch that was given in tokens, as a record says
// them: of the longest length.
TrainOptions Resolved(TrainOptions options) {
  if (options.workload.parallel.shard != model::Shard::kNone) {
    const std::string asked =
        fmt::format("--shard {}: expected ",
                    model::ToText(options.workload.parallel.shard));
    if (options.workload.precision == model::Precision::kFp16) {
      throw InputError(asked + "--precision fp32, tf32 or bf16, got fp16");
    }
    if (!options.checkpoint.empty()) {
      throw InputError(asked +
                       "no --checkpoint, got one; hint: --save keeps the "
                       "weights at the end");
    }
  }
  if (options.batch_tokens == 0) return options;
  if (options.batch_tokens < options.workload.sequence_length) {
    throw InputError(
        fmt::format("--batch-tokens: expected at least --length ({}), got {}",
                    options.workload.sequence_length,
                    options.batch_tokens));
  }
  options.workload.batch =
      options.batch_tokens / options.workload.sequence_length;
  return options;
}

// Throws InputError where it is no workload.
model::Workload WorkloadOf(const TrainOptions& options,
                           const model::Architecture& architecture,
                           const Share& share) {
  model::Workload workload = options.workload;
  workload.architecture = architecture;
  workload.optimizer.by_layer = options.layer_decay != 1.0;
  if (workload.stack.narrow_weights) {
    workload.optimizer.masters = model::Masters::kInUpdate;
  }
  if (workload.parallel.shard != model::Shard::kNone) {
    workload.parallel = model::OverDevices(
        workload.parallel, static_cast<int64_t>(share.world_size));
  }
  model::Validate(workload);
  ParameterType(workload);  // throws where weights cannot be narrow
  return workload;
}

// As many examples as the steps take, of random tokens and drawn lengths.
std::vector<Example> DrawExamples(const TrainOptions& options,
                                  const PretrainedConfig& config,
                                  const Share& share) {
  const int64_t wanted =
      model::CheckedProduct({options.steps.value_or(1),
                             options.workload.batch,
                             options.workload.accumulation,
                             static_cast<int64_t>(share.world_size)},
                            "--steps x --batch x --accumulation");
  constexpr int64_t kMostDrawn = 1'000'000'000;
  if (wanted > kMostDrawn) {
    throw InputError(fmt::format(
        "--steps x --batch x --accumulation: expected at most {} random "
        "examples, got {}",
        kMostDrawn,
        wanted));
  }
  return LengthHistogram::FromFile(options.lengths)
      .Draw(wanted,
            config.architecture,
            config.options.padding_id + 1,
            options.workload.sequence_length,
            options.seed);
}

struct TrainingData {
  std::vector<Example> examples;
  std::vector<Example> evaluation;  // may be empty
};

TrainingData ReadData(const TrainOptions& options,
                      const PretrainedConfig& config,
                      const Share& share) {
  // A pipe may never be written to.
  const NothingToLose reading;
  const model::Architecture& architecture = config.architecture;
  const std::optional<WordPiece> tokenizer = OpenTokenizer(
      TokenizerFolder(options.tokenizer, options.model), architecture);
  const WordPiece* words = tokenizer ? &*tokenizer : nullptr;
  TrainingData data;
  data.examples = options.data.empty()
                      ? DrawExamples(options, config, share)
                      : ReadExamples(options.data,
                                     words,
                                     architecture,
                                     options.workload.sequence_length);
  if (options.evaluation.empty()) return data;
  if (architecture.head != model::Head::kSequenceClassification) {
    throw InputError("--eval: expected a sequence classifier");
  }
  data.evaluation = ReadExamples(options.evaluation,
                                 words,
                                 architecture,
                                 options.workload.sequence_length);
  return data;
}

// The model as it stands before the first step: of the folder's weights, else
// of random numbers.
std::unique_ptr<Transformer> OpenModel(const TrainOptions& options,
                                       const PretrainedConfig& config,
                                       const model::Workload& workload,
                                       at::Device device,
                                       const Share& share) {
  TransformerOptions transformer_options = config.options;
  SetStack(workload, transformer_options);
  std::unique_ptr<Transformer> transformer = MakeTransformer(
      config.architecture, transformer_options, device, options.seed);
  if (!IsModelFolder(options.model)) return transformer;
  const std::string missing = LoadWeights(options.model, *transformer);
  if (!missing.empty() && share.first()) {
    std::cerr << "note: " +
                     hardware::OneLine(fmt::format(
                         "not in {}, starts from random numbers: {}",
                         options.model,
                         missing)) +
                     "\n";
  }
  return transformer;
}

OptimizerOptions OptimizerOf(const TrainOptions& options) {
  OptimizerOptions optimizer;
  optimizer.kind = options.workload.optimizer;
  optimizer.weight_decay = options.weight_decay;
  optimizer.layer_decay = options.layer_decay;
  optimizer.largest_gradient_norm = options.largest_gradient_norm;
  return optimizer;
}

// Ranks draw different masks, the first those of a run alone.
uint64_t DropoutSeed(const TrainOptions& options, const Share& share) {
  return options.seed + share.rank;
}

int64_t StepsOf(const TrainOptions& options, const Feed& feed) {
  const int64_t an_epoch =
      (feed.batches() + options.workload.accumulation - 1) /
      options.workload.accumulation;
  return options.steps.value_or(options.epochs * an_epoch);
}

// The file that a run goes on from and saves to; without a name it does
// nothing.
class CheckpointFile {
 public:
  // `run`: what must be the same to go on. Options must outlive it.
  CheckpointFile(const TrainOptions& options,
                 std::map<std::string, std::string> run,
                 const Share& share)
      : options_(options), run_(std::move(run)), share_(share) {}

  // The step that the file is of; 0 where there is none yet.
  int64_t step() const { return step_; }

  // Model, optimizer, data and dropout as they were when it was saved.
  void Resume(int64_t steps, Session& session, Feed& feed) {
    const std::string& path = options_.checkpoint;
    if (path.empty() || !std::filesystem::exists(path)) return;
    const Checkpoint checkpoint =
        LoadCheckpoint(path, run_, session.transformer(), session.optimizer());
    if (checkpoint.step > steps) {
      throw InputError(
          fmt::format("{}: step: expected at most the {} of this run, got {}",
                      path,
                      steps,
                      checkpoint.step));
    }
    feed.Seek(checkpoint.epoch, checkpoint.position);
    if (feed.position() > feed.batches()) {
      throw InputError(fmt::format(
          "{}: position: expected at most the {} batches of epoch {}, got {}",
          path,
          feed.batches(),
          feed.epoch(),
          feed.position()));
    }
    SeedDropout(DropoutSeed(options_, share_), checkpoint.dropout_calls);
    if (session.loss_scale()) session.set_loss_scale(checkpoint.loss_scale);
    if (share_.first()) {
      std::cerr << fmt::format("note: goes on from step {} of {}\n",
                               checkpoint.step,
                               hardware::OneLine(path));
    }
    step_ = checkpoint.step;
  }

  // Whether a file is asked for behind this step, which need not be the last.
  bool Due(int64_t step) const {
    const int64_t every = options_.checkpoint_every;
    return !options_.checkpoint.empty() && every > 0 && step % every == 0;
  }
  void Save(int64_t step, Session& session, const Feed& feed) {
    if (options_.checkpoint.empty() || step == step_ || !share_.first()) {
      return;
    }
    SaveCheckpoint(options_.checkpoint,
                   {run_,
                    step,
                    feed.epoch(),
                    feed.position(),
                    DropoutState().calls,
                    session.loss_scale().value_or(LossScale{})},
                   session.transformer(),
                   session.optimizer());
    step_ = step;
  }

 private:
  const TrainOptions& options_;
  std::map<std::string, std::string> run_;
  Share share_;
  int64_t step_ = 0;
};

// What a record says before the first step.
StepRecord RecordOf(const TrainOptions& options,
                    const model::Workload& workload,
                    at::Device device,
                    Session& session) {
  StepRecord record;
  record.device = Describe(device);
  record.workload = workload;
  record.seed = options.seed;
  record.parameters = session.transformer().parameter_count();
  record.ranks = session.DescribeRanks();
  return record;
}

// What it says behind the last.
void FinishRecord(Session& session, StepRecord& record) {
  record.parts = session.parts();
  record.optimizer_launches = session.optimizer_launches();
  if (const auto scale = session.loss_scale()) {
    record.skipped_steps = scale->skipped_steps;
  }
  const PeakMemory peak = PeakMemoryOf(session.transformer().device());
  record.peak_memory_bytes = peak.held_bytes;
  record.peak_allocated_bytes = peak.allocated_bytes;
}

enum class Ending {
  kDone,
  kStopped,   // asked to, behind a step
  kDiverged,  // the loss is no number: weights are lost, too
  kBroken,    // the loss was one, and its update made weights that are none
};

// Whether the last update left parameters that are all finite, those of other
// ranks included: where each rank has all, they are the same.
bool ParametersAreFinite(Session& session) {
  const at::NoGradGuard no_grad;
  RankTraining* const parallel = session.ranks();
  at::Tensor broken =
      at::zeros({1}, at::kFloat).to(session.transformer().device());
  for (const Parameter& parameter :
       parallel != nullptr ? parallel->Updated()
                           : session.transformer().TrainedParameters()) {
    broken.add_(at::isfinite(parameter.value).all().logical_not());
  }
  if (parallel != nullptr) {
    if (const auto sum = parallel->SumOverShares()) sum(broken);
  }
  return broken.item<float>() == 0.0F;
}

// Where a run is before a step.
class Place {
 public:
  explicit Place(const Feed& feed)
      : epoch_(feed.epoch()),
        position_(feed.position()),
        dropout_(DropoutState()) {}

  void GoBack(Feed& feed) const {
    feed.Seek(epoch_, position_);
    SeedDropout(dropout_.seed, dropout_.calls);
  }

 private:
  int64_t epoch_;
  int64_t position_;
  DropoutSequence dropout_;
};

// Nothing where a signal ended the step before its update.
std::optional<StepTimes> TryStep(const TrainOptions& options,
                                 Feed& feed,
                                 Session& session,
                                 const StepRecord& record) {
  const Place before(feed);
  try {
    return WithMemoryReport(record.workload, record.device.name, [&] {
      return session.Step(options.workload.accumulation, [&](int64_t) {
        return feed.Next(session.transformer());
      });
    });
  } catch (const Interrupted&) {
    before.GoBack(feed);
    return std::nullopt;
  }
}

// The steps that the checkpoint leaves, with a sample of each in the record.
Ending TrainSteps(const TrainOptions& options,
                  int64_t steps,
                  const Share& share,
                  Feed& feed,
                  Session& session,
                  CheckpointFile& checkpoint,
                  StepRecord& record) {
  const int64_t first_step = checkpoint.step();
  RunMonitor monitor(record.device.bus_id);
  hardware::ProgressLine progress(std::cerr, ProgressWidth(share.first()));
  progress.Begin(
      static_cast<double>(steps), "steps", static_cast<double>(first_step));
  // Several ranks stop behind the same step, or the rest would wait for ever.
  RankTraining* const parallel = session.ranks();
  bool stopped = parallel == nullptr && StopRequested();
  Ending ending = Ending::kDone;
  int64_t step = first_step;
  while (step < steps && !stopped) {
    const bool warmup =
        step - first_step < kWarmupSteps && steps - first_step > kWarmupSteps;
    if (!warmup && !monitor.begun()) monitor.Begin();
    session.optimizer().set_learning_rate(LearningRate(options, step, steps));
    if (parallel != nullptr) parallel->AskToStop(StopRequested());
    const auto times = TryStep(options, feed, session, record);
    if (!times) {
      stopped = true;
      break;
    }
    stopped = parallel != nullptr ? times->stop : StopRequested();
    record.samples.push_back({step, warmup, *times});
    monitor.AfterStep();
    progress.Set(
        static_cast<double>(step + 1),
        fmt::format("loss {:.4f}, {:.3f} s/step", times->loss, times->step_s));
    // With a scaled loss the update was left out and the scale is lowered.
    if (!session.loss_scale() && !std::isfinite(times->loss)) {
      ending = Ending::kDiverged;
      break;
    }
    ++step;
    if (!checkpoint.Due(step)) continue;
    if (!ParametersAreFinite(session)) {
      ending = Ending::kBroken;
      break;
    }
    checkpoint.Save(step, session, feed);
  }
  // Also where nothing is saved: no success with weights that are lost.
  if (ending == Ending::kDone && step > first_step &&
      !ParametersAreFinite(session)) {
    ending = Ending::kBroken;
  }
  if (ending == Ending::kDone) {
    checkpoint.Save(step, session, feed);
    if (stopped) ending = Ending::kStopped;
  }
  if (!record.samples.empty() && !record.samples.back().warmup) {
    record.conditions = monitor.End();
    RequireDeviceTime(record);
  }
  return ending;
}

void PrintResult(const StepRecord& record) {
  std::cout << fmt::format("steps {}  loss {:.6f}",
                           record.samples.size(),
                           record.samples.back().times.loss);
  if (record.evaluation_accuracy) {
    std::cout << fmt::format("  accuracy {:.4f}", *record.evaluation_accuracy);
  }
  std::cout << '\n';
}

bool WeightsAreLost(Ending ending) {
  return ending == Ending::kDiverged || ending == Ending::kBroken;
}

InputError LostWeights(Ending ending, const Sample& last) {
  return InputError(
      fmt::format("step {}: {}; nothing is saved from here on; hint: a lower "
                  "--learning-rate, or --clip-norm",
                  last.step + 1,
                  ending == Ending::kDiverged
                      ? fmt::format("the loss is {}", last.times.loss)
                      : "its update left parameters that are not finite"));
}

}  // namespace

int Train(const TrainOptions& given,
          at::Device device,
          Communicator* ranks,
          const BucketOptions& buckets) {
  const Share share(ranks);
  const TrainOptions options = Resolved(given);
  const PretrainedConfig config = Configure(options.model, options.labels);
  const model::Workload workload =
      WorkloadOf(options, config.architecture, share);
  const TrainingData data = ReadData(options, config, share);
  // Opened before training, so that a wrong path fails in the first second.
  std::unique_ptr<LineWriter> records;
  if (!options.out.empty()) records = OpenRecords(options.out, ranks);

  Session session(OpenModel(options, config, workload, device, share),
                  options.workload.precision,
                  OptimizerOf(options));
  if (ranks != nullptr) session.Join(*ranks, buckets, workload.parallel);
  SeedDropout(DropoutSeed(options, share));
  Feed feed(data.examples, options, share);
  const int64_t steps = StepsOf(options, feed);
  StepRecord record = RecordOf(options, workload, device, session);

  CheckpointFile checkpoint(
      options,
      RunIdentity(options, workload, steps, share.world_size, data.examples),
      share);
  checkpoint.Resume(steps, session, feed);
  if (ranks != nullptr) {
    CheckSameStep(*ranks, checkpoint.step(), options, device);
  }

  session.set_time_parts(options.layers);
  ResetPeakMemory(session.transformer().device());
  const Ending ending =
      TrainSteps(options, steps, share, feed, session, checkpoint, record);
  FinishRecord(session, record);
  if (session.ranks() != nullptr && !WeightsAreLost(ending)) {
    session.ranks()->GatherParameters();
  }
  if (!data.evaluation.empty() && ending == Ending::kDone) {
    record.evaluation_accuracy = Accuracy(
        session, session.transformer(), data.evaluation, options, ranks);
  }
  if (records && !record.samples.empty()) records->Write(ToJsonLine(record));
  if (WeightsAreLost(ending)) {
    throw LostWeights(ending, record.samples.back());
  }
  if (!options.save.empty() && share.first()) {
    Save(options, session.transformer());
  }
  if (!record.samples.empty() && options.out != "-" && share.first()) {
    PrintResult(record);
  }
  return ending == Ending::kStopped ? kInterruptedExit : 0;
}

void WriteGradients(const GradientOptions& options, at::Device device) {
  const std::string& model = options.model;
  PretrainedConfig config = Configure(model, std::nullopt);
  if (options.wide) config.options.type = at::kDouble;
  config.options.recompute = options.gradient_checkpointing;
  const std::optional<WordPiece> tokenizer =
      OpenTokenizer(TokenizerFolder("", model), config.architecture);
  const std::vector<Example> examples =
      ReadExamples(options.data,
                   tokenizer ? &*tokenizer : nullptr,
                   config.architecture,
                   options.length);
  const std::unique_ptr<Transformer> owned =
      MakeTransformer(config.architecture, config.options, device, 1);
  const Transformer& transformer = *owned;
  const std::string missing = LoadWeights(model, transformer);
  if (!missing.empty()) {
    throw InputError(fmt::format("{}: missing {}", model, missing));
  }
  const Batch batch = MakeBatch(examples,
                                InOrder(examples.size()),
                                0,
                                examples.size(),
                                {options.length, options.length},
                                transformer);
  const Output output = transformer.Forward(batch, /*training=*/false);
  output.loss.backward();
  std::vector<Parameter> results = {{"logits", output.logits},
                                    {"loss", output.loss}};
  for (const Parameter& parameter : transformer.parameters()) {
    const at::Tensor& gradient = parameter.value.grad();
    // An expert that no token was sent to has none.
    results.push_back(
        {parameter.name,
         gradient.defined() ? gradient : at::zeros_like(parameter.value)});
  }
  SaveTensors(options.out, results);
}

}  // namespace trainfare::trainer
