#include "trainer/training/train.h"

#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "model/error.h"
#include "model/fields.h"
#include "model/limits.h"
#include "trainer/data/data.h"
#include "trainer/device/device.h"
#include "trainer/device/device_memory.h"
#include "trainer/device/out_of_memory.h"
#include "trainer/network/dropout.h"
#include "trainer/network/pretrained.h"
#include "trainer/record/record.h"
#include "trainer/runtime/line_writer.h"
#include "trainer/runtime/signals.h"
#include "trainer/training/checkpoint.h"
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

// The lengths of a micro-batch, padding included.
struct Lengths {
  int64_t source = 0;
  int64_t target = 0;  // of a model of two sides
};

// Target ids of examples [first, last) of `order`, kNoLabel behind them.
at::Tensor TargetLabels(const std::vector<Example>& examples,
                        const std::vector<size_t>& order,
                        size_t first,
                        size_t last,
                        int64_t length) {
  at::Tensor labels = at::full(
      {static_cast<int64_t>(last - first), length}, kNoLabel, at::kLong);
  for (size_t i = first; i < last; ++i) {
    const std::vector<int64_t>& ids = examples[order[i]].target_ids;
    std::copy(ids.begin(),
              ids.end(),
              labels.mutable_data_ptr<int64_t>() +
                  static_cast<int64_t>(i - first) * length);
  }
  return labels;
}

// To a GPU through pinned memory, so that the copy is a request in its queue
// and not a wait for it.
Batch ToDevice(Batch batch, at::Device device) {
  if (device.is_cpu()) return batch;
  const c10::DeviceGuard guard(device);  // of this thread too
  for (at::Tensor* tensor : {&batch.input_ids,
                             &batch.target_ids,
                             &batch.attention_mask,
                             &batch.labels,
                             &batch.start_positions,
                             &batch.end_positions}) {
    if (!tensor->defined()) continue;
    *tensor = tensor->pin_memory().to(device, /*non_blocking=*/true);
  }
  return batch;
}

// Examples [first, last) of `order`, padded.
Batch MakeBatch(const std::vector<Example>& examples,
                const std::vector<size_t>& order,
                size_t first,
                size_t last,
                const Lengths& lengths,
                const Transformer& transformer) {
  const int64_t length = lengths.source;
  const auto count = static_cast<int64_t>(last - first);
  Batch batch;
  batch.input_ids =
      at::full({count, length}, transformer.options().padding_id, at::kLong);
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
  const model::Family family = transformer.architecture().family;
  if (family == model::Family::kEncoderDecoder) {
    const at::Tensor targets =
        TargetLabels(examples, order, first, last, lengths.target);
    batch.target_ids = ShiftRight(targets,
                                  transformer.options().decoder_start_id,
                                  transformer.options().padding_id);
    batch.labels = targets;
  } else if (family == model::Family::kDecoder) {
    batch.labels = NextTokens(batch.input_ids, mask);
  }
  if (padded) batch.attention_mask = mask;
  if (family != model::Family::kEncoder) {
    return ToDevice(std::move(batch), transformer.device());
  }
  if (transformer.architecture().head == model::Head::kQuestionAnswering) {
    batch.start_positions = starts;
    batch.end_positions = ends;
  } else {
    batch.labels = labels;
  }
  return ToDevice(std::move(batch), transformer.device());
}

std::vector<size_t> InOrder(size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

// What to pad examples [first, last) of `order` to.
Lengths PaddedLengths(const std::vector<Example>& examples,
                      const std::vector<size_t>& order,
                      size_t first,
                      size_t last,
                      const TrainOptions& options) {
  if (options.padding == Padding::kStatic) {
    return {options.length, options.length};
  }
  size_t source = 1;
  size_t target = 1;
  for (size_t i = first; i < last; ++i) {
    source = std::max(source, examples[order[i]].ids.size());
    target = std::max(target, examples[order[i]].target_ids.size());
  }
  return {static_cast<int64_t>(source), static_cast<int64_t>(target)};
}

// Fisher-Yates on the raw generator: the same order everywhere.
template <class Value>
void Shuffle(std::vector<Value>& values, std::mt19937_64& random) {
  for (size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[random() % i]);
  }
}

// Which of how many equal parts of the work is this process's.
struct Share {
  size_t rank = 0;
  size_t world_size = 1;

  explicit Share(const Communicator* ranks) {
    if (ranks == nullptr) return;
    rank = static_cast<size_t>(ranks->rank());
    world_size = static_cast<size_t>(ranks->world_size());
  }
  // This rank's part of [first, last), in parts that differ by one at most.
  std::pair<size_t, size_t> Of(size_t first, size_t last) const {
    const size_t count = last - first;
    return {first + count * rank / world_size,
            first + count * (rank + 1) / world_size};
  }
};

// Micro-batches of an endless walk over the examples, in an order that seed and
// epoch decide; of each, this rank's part. The last of an epoch may be smaller.
class Feed {
 public:
  Feed(const std::vector<Example>& examples,
       const TrainOptions& options,
       const Share& share)
      : examples_(examples), options_(options), share_(share) {
    Seek(0, 0);
  }

  // Behind `position` micro-batches of an epoch.
  void Seek(int64_t epoch, int64_t position) {
    if (next_.valid()) next_.get();  // made in vain
    epoch_ = epoch;
    position_ = position;
    Order();
  }
  int64_t epoch() const { return epoch_; }
  int64_t position() const { return position_; }

  Batch Next(const Transformer& transformer) {
    if (position_ >= batches()) Seek(epoch_ + 1, 0);
    Batch batch = next_.valid() ? next_.get() : Make(position_, transformer);
    ++position_;
    // A GPU computes while the host pads what comes next; a CPU would have to
    // stop for it.
    if (!transformer.device().is_cpu() && position_ < batches()) {
      next_ = std::async(std::launch::async,
                         [this, &transformer, position = position_] {
                           return Make(position, transformer);
                         });
    }
    return batch;
  }
  // The batches of this epoch: with a batch in tokens another may have others.
  int64_t batches() const { return static_cast<int64_t>(ranges_.size()); }

 private:
  // Number `position` of the epoch.
  Batch Make(int64_t position, const Transformer& transformer) const {
    const auto [first, last] = ranges_[static_cast<size_t>(position)];
    auto [own_first, own_last] = share_.Of(first, last);
    const model::Family family = transformer.architecture().family;
    const double own = LabelsIn(own_first, own_last, family);
    // Fewer examples than ranks: one that counts nothing, so that the ranks
    // without any stay in step.
    if (own_first == own_last) {
      own_first = first;
      own_last = first + 1;
    }
    Batch batch = MakeBatch(
        examples_,
        order_,
        own_first,
        own_last,
        PaddedLengths(examples_, order_, own_first, own_last, options_),
        transformer);
    batch.weight = own * static_cast<double>(share_.world_size) /
                   LabelsIn(first, last, family);
    return batch;
  }

  // Labels that the loss of examples [first, last) of the order is the mean of.
  double LabelsIn(size_t first, size_t last, model::Family family) const {
    if (family == model::Family::kEncoder) {
      return static_cast<double>(last - first);
    }
    size_t labels = 0;
    for (size_t i = first; i < last; ++i) {
      const Example& example = examples_[order_[i]];
      labels += family == model::Family::kDecoder ? example.ids.size() - 1
                                                  : example.target_ids.size();
    }
    return static_cast<double>(labels);
  }

  // Micro-batches within which bucketed padding sorts by length: as many as
  // Transformers' group_by_length takes.
  static constexpr size_t kBucketBatches = 50;

  void Order() {
    std::mt19937_64 random(options_.seed + 0x9e3779b97f4a7c15ULL *
                                               static_cast<uint64_t>(epoch_));
    order_ = InOrder(examples_.size());
    Shuffle(order_, random);
    const size_t batch =
        static_cast<size_t>(options_.batch) * share_.world_size;
    if (options_.padding == Padding::kBucketed) {
      for (size_t i = 0; i < order_.size(); i += kBucketBatches * batch) {
        const size_t end = std::min(i + kBucketBatches * batch, order_.size());
        std::stable_sort(order_.begin() + static_cast<std::ptrdiff_t>(i),
                         order_.begin() + static_cast<std::ptrdiff_t>(end),
                         [&](size_t a, size_t b) {
                           return examples_[a].ids.size() >
                                  examples_[b].ids.size();
                         });
      }
    }
    ranges_.clear();
    for (size_t i = 0; i < order_.size();) {
      const size_t end = options_.batch_tokens > 0
                             ? EndOfTokens(i)
                             : std::min(i + batch, order_.size());
      ranges_.emplace_back(i, end);
      i = end;
    }
    if (options_.padding == Padding::kBucketed) Shuffle(ranges_, random);
  }

  // Behind the last example that fits beside `first` into the tokens of every
  // rank's part of a micro-batch, padding included.
  size_t EndOfTokens(size_t first) const {
    size_t end = first + 1;
    for (; end < order_.size(); ++end) {
      const Lengths lengths =
          PaddedLengths(examples_, order_, first, end + 1, options_);
      const auto rows = static_cast<int64_t>((end + share_.world_size - first) /
                                             share_.world_size);
      if (rows * std::max(lengths.source, lengths.target) >
          options_.batch_tokens) {
        break;
      }
    }
    return end;
  }

  const std::vector<Example>& examples_;
  const TrainOptions& options_;
  Share share_;
  std::vector<size_t> order_;
  std::vector<std::pair<size_t, size_t>> ranges_;  // of a micro-batch
  int64_t epoch_ = 0;
  int64_t position_ = 0;
  std::future<Batch> next_;  // number position_, in the making
};

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
        std::min(first + static_cast<size_t>(options.batch), end);
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

// One line that is rewritten, on a terminal only.
class Progress {
 public:
  Progress(int64_t steps, bool wanted)
      : steps_(steps),
        shown_(wanted && ::isatty(STDERR_FILENO) != 0 &&
               ::isatty(STDOUT_FILENO) != 0) {}
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
                             sample.times.loss,
                             sample.times.step_s)
              << std::flush;
  }

 private:
  int64_t steps_;
  bool shown_;
};

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
      std::filesystem::copy_file(
          from,
          folder / name,
          std::filesystem::copy_options::overwrite_existing,
          error);
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

}  // namespace

std::string_view ToText(Padding padding) {
  switch (padding) {
    case Padding::kStatic:
      return "static";
    case Padding::kDynamic:
      return "dynamic";
    case Padding::kBucketed:
      return "bucketed";
  }
  ENSURE(false, "unknown padding");
}

Padding PaddingFromText(std::string_view text) {
  for (const Padding padding :
       {Padding::kStatic, Padding::kDynamic, Padding::kBucketed}) {
    if (text == ToText(padding)) return padding;
  }
  throw InputError(
      fmt::format("expected static, dynamic or bucketed, got \"{}\"", text));
}

int Train(const TrainOptions& given,
          at::Device device,
          Communicator* ranks,
          const BucketOptions& buckets) {
  const Share share(ranks);
  const bool first_rank = share.rank == 0;
  TrainOptions options = given;
  if (options.batch_tokens > 0) {
    if (options.batch_tokens < options.length) {
      throw InputError(
          fmt::format("--batch-tokens: expected at least --length ({}), got {}",
                      options.length,
                      options.batch_tokens));
    }
    // What a record says: sequences of the longest length.
    options.batch = options.batch_tokens / options.length;
  }
  const PretrainedConfig config = Configure(options.model, options.labels);
  const model::Architecture& architecture = config.architecture;
  model::Workload workload;
  workload.architecture = architecture;
  workload.batch = options.batch;
  workload.sequence_length = options.length;
  workload.accumulation = options.accumulation;
  workload.precision = options.precision;
  workload.optimizer = options.optimizer;
  workload.optimizer.by_layer = options.layer_decay != 1.0;
  workload.stack.fusion = options.fusion;
  workload.stack.attention = options.attention;
  workload.stack.narrow_weights = options.narrow_weights;
  if (options.narrow_weights) {
    workload.optimizer.masters = model::Masters::kInUpdate;
  }
  model::Validate(workload);
  const at::ScalarType parameter_type = ParameterType(workload);

  const std::optional<WordPiece> tokenizer = OpenTokenizer(
      TokenizerFolder(options.tokenizer, options.model), architecture);
  const WordPiece* words = tokenizer ? &*tokenizer : nullptr;
  std::vector<Example> examples;
  if (!options.data.empty()) {
    examples = ReadExamples(options.data, words, architecture, options.length);
  } else {
    const int64_t wanted =
        model::CheckedProduct({options.steps.value_or(1),
                               options.batch,
                               options.accumulation,
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
  if (!options.out.empty()) records = OpenRecords(options.out, ranks);

  TransformerOptions transformer_options = config.options;
  transformer_options.fusion = options.fusion;
  transformer_options.attention = options.attention;
  transformer_options.type = parameter_type;
  std::unique_ptr<Transformer> owned =
      MakeTransformer(architecture, transformer_options, device, options.seed);
  const Transformer& transformer = *owned;
  if (IsModelFolder(options.model)) {
    const std::string missing = LoadWeights(options.model, transformer);
    if (!missing.empty() && first_rank) {
      std::cerr << "note: not in " << options.model
                << ", starts from random numbers: " << missing << '\n';
    }
  }
  OptimizerOptions optimizer;
  optimizer.kind = options.optimizer;
  optimizer.weight_decay = options.weight_decay;
  optimizer.layer_decay = options.layer_decay;
  optimizer.largest_gradient_norm = options.largest_gradient_norm;
  Session session(std::move(owned), options.precision, optimizer);
  if (ranks != nullptr) {
    session.Join(*ranks, buckets);
    session.ranks()->BroadcastParameters();
    session.optimizer().Reset();  // masters of rank 0's parameters
  }
  // Ranks draw different masks, the first those of a run alone.
  const uint64_t dropout_seed = options.seed + share.rank;
  SeedDropout(dropout_seed);

  Feed feed(examples, options, share);
  const int64_t steps_per_epoch =
      (feed.batches() + options.accumulation - 1) / options.accumulation;
  const int64_t steps =
      options.steps.value_or(options.epochs * steps_per_epoch);
  StepRecord record;
  record.device = Describe(device);
  record.workload = workload;
  record.seed = options.seed;
  record.parameters = transformer.parameter_count();
  record.ranks = session.DescribeRanks();
  const std::map<std::string, std::string> run =
      RunIdentity(options, workload, steps, share.world_size, examples);
  int64_t first_step = 0;
  if (!options.checkpoint.empty() &&
      std::filesystem::exists(options.checkpoint)) {
    const Checkpoint checkpoint = LoadCheckpoint(
        options.checkpoint, run, transformer, session.optimizer());
    first_step = checkpoint.step;
    if (first_step > steps) {
      throw InputError(
          fmt::format("{}: step: expected at most the {} of this run, got {}",
                      options.checkpoint,
                      steps,
                      first_step));
    }
    feed.Seek(checkpoint.epoch, checkpoint.position);
    if (feed.position() > feed.batches()) {
      throw InputError(fmt::format(
          "{}: position: expected at most the {} batches of epoch {}, got {}",
          options.checkpoint,
          feed.batches(),
          feed.epoch(),
          feed.position()));
    }
    SeedDropout(dropout_seed, checkpoint.dropout_calls);
    if (session.loss_scale()) session.set_loss_scale(checkpoint.loss_scale);
    if (first_rank) {
      std::cerr << fmt::format(
          "note: goes on from step {} of {}\n", first_step, options.checkpoint);
    }
  }
  if (ranks != nullptr) CheckSameStep(*ranks, first_step, options, device);
  int64_t saved_step = first_step;
  const auto save_checkpoint = [&](int64_t step) {
    if (options.checkpoint.empty() || step == saved_step || !first_rank) {
      return;
    }
    SaveCheckpoint(options.checkpoint,
                   {run,
                    step,
                    feed.epoch(),
                    feed.position(),
                    DropoutCalls(),
                    session.loss_scale().value_or(LossScale{})},
                   transformer,
                   session.optimizer());
    saved_step = step;
  };
  int64_t done = first_step;
  // Several ranks stop behind the same step, or the rest would wait for ever.
  DataParallel* const parallel = session.ranks();
  bool stopped = parallel == nullptr && StopRequested();
  bool diverged = false;  // the loss is no number: weights are lost, too
  RunMonitor monitor(record.device.bus_id);
  session.set_time_parts(options.layers);
  ResetPeakMemory(transformer.device());
  {
    const Progress progress(steps, first_rank);
    for (int64_t step = first_step; step < steps && !stopped; ++step) {
      const bool warmup =
          step - first_step < kWarmupSteps && steps - first_step > kWarmupSteps;
      if (!warmup && !monitor.begun()) monitor.Begin();
      session.optimizer().set_learning_rate(LearningRate(options, step, steps));
      if (parallel != nullptr) parallel->AskToStop(StopRequested());
      const StepTimes times =
          WithMemoryReport(workload, record.device.name, [&] {
            return session.Step(options.accumulation, [&](int64_t) {
              return feed.Next(transformer);
            });
          });
      record.samples.push_back({step, warmup, times});
      stopped = parallel != nullptr ? record.samples.back().times.stop
                                    : StopRequested();
      monitor.AfterStep();
      progress.Show(record.samples.back());
      // With a scaled loss the update was left out and the scale is lowered.
      diverged = !session.loss_scale() && !std::isfinite(times.loss);
      if (diverged) break;
      done = step + 1;
      if (options.checkpoint_every > 0 &&
          done % options.checkpoint_every == 0) {
        save_checkpoint(done);
      }
    }
  }
  if (!diverged) save_checkpoint(done);
  if (monitor.begun()) {
    record.conditions = monitor.End();
    RequireDeviceTime(record);
  }
  record.parts = session.parts();
  record.optimizer_launches = session.optimizer_launches();
  if (const auto scale = session.loss_scale()) {
    record.skipped_steps = scale->skipped_steps;
  }
  const PeakMemory peak = PeakMemoryOf(transformer.device());
  record.peak_memory_bytes = peak.held_bytes;
  record.peak_allocated_bytes = peak.allocated_bytes;
  if (!evaluation.empty() && !stopped && !diverged) {
    record.evaluation_accuracy =
        Accuracy(session, transformer, evaluation, options, ranks);
  }
  if (records && !record.samples.empty()) records->Write(ToJsonLine(record));
  if (diverged) {
    throw InputError(fmt::format(
        "step {}: the loss is {}; nothing is saved from here on; hint: a lower "
        "--learning-rate, or --clip-norm",
        record.samples.back().step + 1,
        record.samples.back().times.loss));
  }
  if (!options.save.empty() && first_rank) Save(options, transformer);
  if (!record.samples.empty() && options.out != "-" && first_rank) {
    std::cout << fmt::format("steps {}  loss {:.6f}",
                             record.samples.size(),
                             record.samples.back().times.loss);
    if (record.evaluation_accuracy) {
      std::cout << fmt::format("  accuracy {:.4f}",
                               *record.evaluation_accuracy);
    }
    std::cout << '\n';
  }
  return stopped ? kInterruptedExit : 0;
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
                                {length, length},
                                transformer);
  const Output output = transformer.Forward(batch, /*training=*/false);
  output.loss.backward();
  std::vector<Parameter> results = {{"logits", output.logits},
                                    {"loss", output.loss}};
  for (const Parameter& parameter : transformer.parameters()) {
    results.push_back({parameter.name, parameter.value.grad()});
  }
  SaveTensors(out, results);
}

}  // namespace trainfare::trainer
