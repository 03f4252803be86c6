#include "trainer/train.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "model/error.h"
#include "trainer/data.h"
#include "trainer/device.h"
#include "trainer/dropout.h"
#include "trainer/host_allocator.h"
#include "trainer/line_writer.h"
#include "trainer/pretrained.h"
#include "trainer/record.h"
#include "trainer/session.h"
#include "trainer/signals.h"

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

// Examples [first, last) of `order`, padded to `length`.
Batch MakeBatch(const std::vector<Example>& examples,
                const std::vector<size_t>& order,
                size_t first,
                size_t last,
                int64_t length,
                const Encoder& encoder) {
  const auto count = static_cast<int64_t>(last - first);
  Batch batch;
  batch.input_ids =
      at::full({count, length}, encoder.options().padding_id, at::kLong);
  at::Tensor mask = at::zeros({count, length}, at::kBool);
  at::Tensor labels = at::empty({count}, at::kLong);
  at::Tensor starts = at::empty({count}, at::kLong);
  at::Tensor ends = at::empty({count}, at::kLong);
  bool padded = false;
  for (size_t i = first; i < last; ++i) {
    const Example& example = examples[order[i]];
    const auto row = static_cast<int64_t>(i - first);
    const auto tokens = static_cast<int64_t>(example.ids.size());
    std::copy(example.ids.begin(),
              example.ids.end(),
              batch.input_ids.mutable_data_ptr<int64_t>() + row * length);
    std::fill_n(mask.mutable_data_ptr<bool>() + row * length, tokens, true);
    labels.mutable_data_ptr<int64_t>()[row] = example.label;
    starts.mutable_data_ptr<int64_t>()[row] = example.start;
    ends.mutable_data_ptr<int64_t>()[row] = example.end;
    padded = padded || tokens < length;
  }
  const at::Device device = encoder.device();
  batch.input_ids = batch.input_ids.to(device);
  if (padded) batch.attention_mask = mask.to(device);
  if (encoder.architecture().head == model::Head::kQuestionAnswering) {
    batch.start_positions = starts.to(device);
    batch.end_positions = ends.to(device);
  } else {
    batch.labels = labels.to(device);
  }
  return batch;
}

std::vector<size_t> InOrder(size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

// Micro-batches of an endless, reshuffled walk over the examples. The last of
// an epoch may be smaller.
class Feed {
 public:
  Feed(const std::vector<Example>& examples,
       int64_t batch,
       int64_t length,
       uint64_t seed)
      : examples_(examples),
        batch_(static_cast<size_t>(batch)),
        length_(length),
        random_(seed),
        order_(InOrder(examples.size())),
        at_(examples.size()) {}

  Batch Next(const Encoder& encoder) {
    if (at_ >= order_.size()) {
      // Fisher-Yates on the raw generator: the same order everywhere.
      for (size_t i = order_.size(); i > 1; --i) {
        std::swap(order_[i - 1], order_[random_() % i]);
      }
      at_ = 0;
    }
    const size_t first = at_;
    at_ = std::min(at_ + batch_, order_.size());
    return MakeBatch(examples_, order_, first, at_, length_, encoder);
  }

 private:
  const std::vector<Example>& examples_;
  size_t batch_;
  int64_t length_;
  std::mt19937_64 random_;
  std::vector<size_t> order_;
  size_t at_;
};

double Accuracy(const Session& session,
                const Encoder& encoder,
                const std::vector<Example>& examples,
                int64_t batch,
                int64_t length) {
  const std::vector<size_t> order = InOrder(examples.size());
  int64_t right = 0;
  for (size_t first = 0; first < examples.size();) {
    const size_t last =
        std::min(first + static_cast<size_t>(batch), examples.size());
    const Batch data = MakeBatch(examples, order, first, last, length, encoder);
    right +=
        session.Predict(data).argmax(-1).eq(data.labels).sum().item<int64_t>();
    first = last;
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

// One line that is rewritten, on a terminal only.
class Progress {
 public:
  explicit Progress(int64_t steps)
      : steps_(steps),
        shown_(::isatty(STDERR_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0) {}
  ~Progress() {
    if (shown_) std::cerr << "\r\x1b[K" << std::flush;
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(const Sample& sample) const {
    if (!shown_) return;
    std::cerr << fmt::format("\rstep {}/{}  loss {:.4f}  {:.3f} s/step",
                             sample.step + 1,
                             steps_,
                             sample.loss,
                             sample.step_s)
              << std::flush;
  }

 private:
  int64_t steps_;
  bool shown_;
};

void Save(const TrainOptions& options, const Encoder& encoder) {
  const std::filesystem::path folder(options.save);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw InputError(
        fmt::format("{}: cannot create: {}", options.save, error.message()));
  }
  SaveTensors((folder / "model.safetensors").string(), encoder.parameters());
  if (!IsModelFolder(options.model)) return;
  for (const char* name : {"config.json",
                           "vocab.txt",
                           "tokenizer.json",
                           "tokenizer_config.json"}) {
    const auto from = std::filesystem::path(options.model) / name;
    if (std::filesystem::exists(from) && options.model != options.save) {
      std::filesystem::copy_file(
          from,
          folder / name,
          std::filesystem::copy_options::overwrite_existing,
          error);
    }
  }
}

}  // namespace

int Train(const TrainOptions& options, at::Device device) {
  const PretrainedConfig config = Configure(options.model, options.labels);
  const model::Architecture& architecture = config.architecture;
  model::Workload workload;
  workload.architecture = architecture;
  workload.batch = options.batch;
  workload.sequence_length = options.length;
  workload.accumulation = options.accumulation;
  workload.precision = options.precision;
  workload.optimizer = options.optimizer;
  workload.stack.attention = options.attention;
  model::Validate(workload);

  const std::optional<WordPiece> tokenizer = OpenTokenizer(
      TokenizerFolder(options.tokenizer, options.model), architecture);
  const WordPiece* words = tokenizer ? &*tokenizer : nullptr;
  std::vector<Example> examples;
  if (!options.data.empty()) {
    examples = ReadExamples(options.data, words, architecture, options.length);
  } else {
    const int64_t wanted =
        options.steps.value_or(1) * options.batch * options.accumulation;
    examples = LengthHistogram::FromFile(options.lengths)
                   .Draw(wanted,
                         architecture,
                         config.options.padding_id + 1,
                         options.length,
                         options.seed);
  }
  std::vector<Example> evaluation;
  if (!options.evaluation.empty()) {
    if (architecture.head != model::Head::kSequenceClassification) {
      throw InputError("--eval: expected a sequence classifier");
    }
    evaluation =
        ReadExamples(options.evaluation, words, architecture, options.length);
  }
  // Opened before training, so that a wrong path fails in the first second.
  std::unique_ptr<LineWriter> records;
  if (!options.out.empty()) records = std::make_unique<LineWriter>(options.out);

  EncoderOptions encoder_options = config.options;
  encoder_options.attention = options.attention;
  auto owned = std::make_unique<Encoder>(
      architecture, encoder_options, device, options.seed);
  const Encoder& encoder = *owned;
  if (IsModelFolder(options.model)) {
    const std::string missing = LoadWeights(options.model, encoder);
    if (!missing.empty()) {
      std::cerr << "note: not in " << options.model
                << ", starts from random numbers: " << missing << '\n';
    }
  }
  OptimizerOptions optimizer;
  optimizer.kind = options.optimizer;
  optimizer.weight_decay = options.weight_decay;
  Session session(std::move(owned), options.precision, optimizer);
  SeedDropout(options.seed);

  const auto per_step =
      static_cast<size_t>(options.batch * options.accumulation);
  const auto steps_per_epoch =
      static_cast<int64_t>((examples.size() + per_step - 1) / per_step);
  const int64_t steps =
      options.steps.value_or(options.epochs * steps_per_epoch);
  StepRecord record;
  record.device = Describe(device);
  record.workload = workload;
  record.seed = options.seed;
  record.parameters = encoder.parameter_count();
  Feed feed(examples, options.batch, options.length, options.seed);
  ResetPeakHostMemory();
  ResetPeakResident();
  {
    const Progress progress(steps);
    for (int64_t step = 0; step < steps && !StopRequested(); ++step) {
      session.optimizer().set_learning_rate(LearningRate(options, step, steps));
      const StepTimes times = session.Step(
          options.accumulation, [&](int64_t) { return feed.Next(encoder); });
      record.samples.push_back({step,
                                step < kWarmupSteps && steps > kWarmupSteps,
                                times.forward_s,
                                times.backward_s,
                                times.optimizer_s,
                                times.step_s,
                                times.loss});
      progress.Show(record.samples.back());
    }
  }
  record.peak_memory_bytes = PeakResidentBytes();
  record.peak_allocated_bytes = HostMemoryInUse().peak_allocated_bytes;
  if (!evaluation.empty() && !StopRequested()) {
    record.evaluation_accuracy =
        Accuracy(session, encoder, evaluation, options.batch, options.length);
  }
  if (records && !record.samples.empty()) records->Write(ToJsonLine(record));
  if (!options.save.empty()) Save(options, encoder);
  if (!record.samples.empty() && options.out != "-") {
    std::cout << fmt::format("steps {}  loss {:.6f}",
                             record.samples.size(),
                             record.samples.back().loss);
    if (record.evaluation_accuracy) {
      std::cout << fmt::format("  accuracy {:.4f}",
                               *record.evaluation_accuracy);
    }
    std::cout << '\n';
  }
  return StopRequested() ? kInterruptedExit : 0;
}

void WriteGradients(const std::string& model,
                    const std::string& data,
                    int64_t length,
                    const std::string& out,
                    at::Device device) {
  const PretrainedConfig config = Configure(model, std::nullopt);
  const std::optional<WordPiece> tokenizer =
      OpenTokenizer(TokenizerFolder("", model), config.architecture);
  const std::vector<Example> examples = ReadExamples(
      data, tokenizer ? &*tokenizer : nullptr, config.architecture, length);
  const Encoder encoder(config.architecture, config.options, device, 1);
  const std::string missing = LoadWeights(model, encoder);
  if (!missing.empty()) {
    throw InputError(fmt::format("{}: missing {}", model, missing));
  }
  const Batch batch = MakeBatch(
      examples, InOrder(examples.size()), 0, examples.size(), length, encoder);
  const Output output = encoder.Forward(batch, /*training=*/false);
  output.loss.backward();
  std::vector<Parameter> results = {{"logits", output.logits},
                                    {"loss", output.loss}};
  for (const Parameter& parameter : encoder.parameters()) {
    results.push_back({parameter.name, parameter.value.grad()});
  }
  SaveTensors(out, results);
}

}  // namespace trainfare::trainer
