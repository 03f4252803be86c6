// trainfare-trainer: trains Transformers for real, and measures its steps.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hardware/files/foreign_text.h"
#include "model/error.h"
#include "model/limits.h"
#include "trainer/bench/collective_bench.h"
#include "trainer/bench/copy_bench.h"
#include "trainer/bench/kernel_bench.h"
#include "trainer/data/wordpiece.h"
#include "trainer/device/device.h"
#include "trainer/measure/trace.h"
#include "trainer/ranks/communicator.h"
#include "trainer/ranks/ranks.h"
#include "trainer/record/record.h"
#include "trainer/runtime/failure.h"
#include "trainer/runtime/host_allocator.h"
#include "trainer/runtime/signals.h"
#include "trainer/training/gradients.h"
#include "trainer/training/measure.h"
#include "trainer/training/train.h"

namespace trainer = trainfare::trainer;

namespace {

// Parses one word of the lists in model/ as an option's value.
template <class Value, class Parse>
void AddWord(CLI::App* command,
             const std::string& name,
             Value& value,
             Parse parse,
             const std::string& help) {
  command
      ->add_option_function<std::string>(
          name,
          [&value, parse, name](const std::string& text) {
            try {
              value = parse(text);
            } catch (const trainfare::model::InputError& error) {
              throw CLI::ValidationError(name, error.what());
            }
          },
          help)
      ->default_str(std::string(ToText(value)));
}

// Each of several such words, between commas; `take` throws InputError.
CLI::Option* AddWords(CLI::App* command,
                      const std::string& name,
                      const std::function<void(const std::string&)>& take,
                      const std::string& help) {
  return command
      ->add_option_function<std::vector<std::string>>(
          name,
          [name, take](const std::vector<std::string>& words) {
            for (const std::string& word : words) {
              try {
                take(word);
              } catch (const trainfare::model::InputError& error) {
                throw CLI::ValidationError(name, error.what());
              }
            }
          },
          help)
      ->delimiter(',');
}

// What --ranks-... say, and the run as one of several ranks where a launcher
// started this process as one.
class Ranks {
 public:
  Ranks() : place_(trainer::RankFromEnvironment()) {}

  const std::optional<trainer::RankPlace>& place() const { return place_; }
  trainer::BucketOptions buckets() const {
    return {static_cast<int64_t>(bucket_mib_ * kMebi),
            static_cast<int64_t>(first_bucket_mib_ * kMebi)};
  }

  void AddOptions(CLI::App* command) {
    command
        ->add_option("--bucket-mib",
                     bucket_mib_,
                     "Gradients sent at once, between ranks")
        ->check(CLI::Range(0.001, 1e6))
        ->capture_default_str();
    command
        ->add_option("--first-bucket-mib",
                     first_bucket_mib_,
                     "The first of them: small, so that sending starts early")
        ->check(CLI::Range(0.001, 1e6))
        ->capture_default_str();
    command
        ->add_option("--lost-after",
                     lost_after_s_,
                     "Seconds of silence until a rank counts as lost")
        ->check(CLI::Range(0.2, 86400.0))
        ->capture_default_str();
    command
        ->add_option("--join-within",
                     join_within_s_,
                     "Seconds for all ranks to come together (default: 20 on "
                     "one host, 120 over several)")
        ->check(CLI::Range(0.2, 86400.0));
  }

  // `body` gets null where this process is alone. A failure here is told to
  // the other ranks.
  int Run(at::Device device,
          const std::function<int(trainer::Communicator*)>& body) const {
    if (!place_) return body(nullptr);
    trainer::CommunicatorOptions options;
    options.lost_after = Milliseconds(lost_after_s_);
    if (join_within_s_) options.join_within = Milliseconds(*join_within_s_);
    options.on_lost = [](const std::string& line) {
      // Some other process wrote it.
      std::cerr << "error: " + trainfare::hardware::OneLine(line) + "\n"
                << std::flush;
      // The main thread may hang in a collective, and files are renamed into
      // place or appended to by whole lines: nothing is half-written.
      ::_exit(1);
    };
    const auto communicator =
        trainer::Communicator::Join(*place_, device, options);
    try {
      const int code = body(communicator.get());
      communicator->Leave();
      return code;
    } catch (const std::exception& error) {
      communicator->Fail(trainer::FirstLine(error));
      throw;
    }
  }

 private:
  static constexpr double kMebi = 1024.0 * 1024.0;
  static std::chrono::milliseconds Milliseconds(double seconds) {
    return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000.0));
  }

  std::optional<trainer::RankPlace> place_;
  double bucket_mib_ = 25.0;
  double first_bucket_mib_ = 1.0;
  double lost_after_s_ = 15.0;
  std::optional<double> join_within_s_;
};

// The device that a command computes on.
class DeviceOptions {
 public:
  explicit DeviceOptions(const Ranks& ranks) : ranks_(ranks) {}

  void AddOptions(CLI::App* command) {
    command->add_option("--device", device_, "cpu or cuda")
        ->check(CLI::IsMember({"cpu", "cuda"}))
        ->capture_default_str();
    command->add_option("--threads", threads_, "Compute threads; 0: one a core")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
  }

  at::Device Open() const {
    const auto& place = ranks_.place();
    if (threads_ > 0) {
      at::set_num_threads(threads_);
    } else if (place && place->local_world_size > 1 &&
               !trainer::EnvironmentVariable("OMP_NUM_THREADS")) {
      at::set_num_threads(
          std::max(1, at::get_num_threads() / place->local_world_size));
    }
    return trainer::OpenDevice(device_, place ? place->local_rank : 0);
  }

 private:
  const Ranks& ranks_;
  std::string device_ = "cpu";
  int threads_ = 0;
};

CLI::Range Counts() { return CLI::Range(int64_t{1}, int64_t{1'000'000'000}); }

void AddModelAndExamples(CLI::App* train, trainer::TrainOptions& options) {
  train
      ->add_option("--model",
                   options.model,
                   "A preset (random weights) or a Hugging Face folder")
      ->required();
  auto* data = train->add_option_group("examples");
  data->add_option(
      "--data",
      options.data,
      "JSON Lines: text (or input_ids) and label (or target_text)");
  data->add_option("--lengths",
                   options.lengths,
                   "CSV length,count: random examples of these lengths");
  data->require_option(1);
  train->add_option("--eval", options.evaluation, "JSON Lines to test on");
  train->add_option("--tokenizer",
                    options.tokenizer,
                    "Folder with vocab.txt or tokenizer.json");
  train->add_option("--labels", options.labels, "Labels of the classifier")
      ->check(Counts());
}

void AddSchedule(CLI::App* train, trainer::TrainOptions& options) {
  train->add_option("--epochs", options.epochs, "Passes over the data")
      ->check(Counts())
      ->capture_default_str();
  train->add_option("--steps", options.steps, "Steps, instead of epochs")
      ->check(Counts());
  auto* batch =
      train
          ->add_option(
              "--batch", options.workload.batch, "Sequences a micro-batch")
          ->check(Counts())
          ->capture_default_str();
  train
      ->add_option("--batch-tokens",
                   options.batch_tokens,
                   "Tokens a micro-batch, with padding, instead of sequences")
      ->check(Counts())
      ->excludes(batch);
  train
      ->add_option("--accumulation",
                   options.workload.accumulation,
                   "Micro-batches an optimizer step")
      ->check(Counts())
      ->capture_default_str();
  train
      ->add_option("--length",
                   options.workload.sequence_length,
                   "Tokens of the longest sequence; longer texts are cut")
      ->check(CLI::Range(int64_t{2}, int64_t{1'000'000}))
      ->capture_default_str();
}

void AddLearning(CLI::App* train, trainer::TrainOptions& options) {
  train->add_option("--learning-rate", options.learning_rate, "At its highest")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  train->add_option("--weight-decay", options.weight_decay, "Of matrices")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  train
      ->add_option("--warmup-fraction",
                   options.warmup_fraction,
                   "Share of the steps with a rising learning rate")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  train
      ->add_option("--layer-decay",
                   options.layer_decay,
                   "Learning rate of a layer, as a share of the one above's")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  train
      ->add_option("--clip-norm",
                   options.largest_gradient_norm,
                   "Largest global norm of the gradients; 0: any")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  AddWord(train,
          "--padding",
          options.padding,
          trainer::PaddingFromText,
          "static (to --length), dynamic (to the longest of a batch) or "
          "bucketed (and batches of similar lengths)");
}

void AddCheckpoint(CLI::App* train, trainer::TrainOptions& options) {
  train->add_option("--checkpoint",
                    options.checkpoint,
                    "File to save the run to, and to go on from if it is "
                    "there");
  train
      ->add_option("--checkpoint-every",
                   options.checkpoint_every,
                   "Steps between checkpoints; 0: at the end or when stopped")
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000'000}))
      ->needs("--checkpoint")
      ->capture_default_str();
}

void AddStack(CLI::App* train, trainer::TrainOptions& options) {
  AddWord(train,
          "--precision",
          options.workload.precision,
          trainfare::model::FromText<trainfare::model::Precision>,
          "fp32, bf16, fp16, or on a GPU tf32");
  AddWord(train,
          "--optimizer",
          options.workload.optimizer.kind,
          trainfare::model::FromText<trainfare::model::OptimizerKind>,
          "adamw, adan or sgd");
  AddWord(train,
          "--implementation",
          options.workload.optimizer.implementation,
          trainfare::model::FromText<trainfare::model::OptimizerImplementation>,
          "Of the optimizer: for_loop, multi_tensor or fused");
  AddWord(train,
          "--stack",
          options.workload.stack.fusion,
          trainfare::model::FromText<trainfare::model::Fusion>,
          "eager, or fused (bias, activation, dropout, residual and LayerNorm "
          "in one pass)");
  AddWord(train,
          "--attention",
          options.workload.stack.attention,
          trainfare::model::FromText<trainfare::model::Attention>,
          "materialised or flash");
  train->add_flag("--narrow-weights",
                  options.workload.stack.narrow_weights,
                  "Weights and gradients in bf16 or fp16, fp32 master copies "
                  "in the optimizer; without it autocast over fp32 weights");
}

void AddTrainable(CLI::App* train, trainer::TrainOptions& options) {
  auto* frozen =
      train
          ->add_option("--freeze-layers",
                       options.workload.trainable.frozen_layers,
                       "The embeddings and so many first blocks keep their "
                       "weights; 0: all train")
          ->check(CLI::Range(int64_t{0}, int64_t{1'000'000}))
          ->capture_default_str();
  auto* rank =
      train
          ->add_option("--lora-rank",
                       options.workload.trainable.lora_rank,
                       "Train adapters of this rank alone (LoRA); 0: none")
          ->check(CLI::Range(int64_t{0}, int64_t{1'000'000}))
          ->excludes(frozen)
          ->capture_default_str();
  AddWords(
      train,
      "--lora-matrices",
      [&options](const std::string& name) {
        trainfare::model::AddLoraMatrix(name, options.workload.trainable.lora);
      },
      "That adapters stand beside: query, key, value, output, "
      "feed_forward_gate, feed_forward_in, feed_forward_out")
      ->needs(rank);
  AddWord(train,
          "--shard",
          options.workload.parallel.shard,
          trainfare::model::FromText<trainfare::model::Shard>,
          "What ranks divide among them: none, zero1, zero2, zero3 or fsdp");
  train->add_flag("--gradient-checkpointing",
                  options.workload.gradient_checkpointing,
                  "Keep only the input of each block, and compute the block "
                  "again in the backward pass");
  train
      ->add_option("--checkpointed-blocks",
                   options.workload.checkpointed_blocks,
                   "With it: of so many blocks, from the lowest that train "
                   "(default: all)")
      ->check(CLI::PositiveNumber);
}

void AddTrain(CLI::App& app,
              DeviceOptions& device,
              Ranks& ranks,
              int& exit_code) {
  CLI::App* train =
      app.add_subcommand("train", "Train a model on labelled examples");
  // Lives as long as the parser that fills it.
  const auto options = std::make_shared<trainer::TrainOptions>();
  AddModelAndExamples(train, *options);
  AddSchedule(train, *options);
  AddLearning(train, *options);
  AddCheckpoint(train, *options);
  AddStack(train, *options);
  AddTrainable(train, *options);
  train->add_option("--seed", options->seed, "Of weights, order and dropout")
      ->check(CLI::Range(int64_t{0}, trainfare::model::kLargestSeed))
      ->capture_default_str();
  train->add_option("--out",
                    options->out,
                    "The measurement record is appended here; - is stdout");
  train->add_flag(
      "--layers", options->layers, "Time each part of the model, too");
  train->add_option("--save", options->save, "Folder for the trained weights");
  device.AddOptions(train);
  ranks.AddOptions(train);
  train->callback([options, &device, &ranks, &exit_code] {
    const at::Device opened = device.Open();
    exit_code = ranks.Run(opened, [&](trainer::Communicator* communicator) {
      return trainer::Train(*options, opened, communicator, ranks.buckets());
    });
  });
}

void AddKernelBench(CLI::App* bench, DeviceOptions& device, int& exit_code) {
  struct Options {
    std::string plan = "-";
    std::string out = "-";
    trainer::KernelBenchOptions bench;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* kernels = bench->add_subcommand(
      "kernels", "Operations of the steps that a plan asks for");
  kernels
      ->add_option("--plan",
                   options->plan,
                   "Requests as of `measure`, JSON Lines; - reads stdin")
      ->capture_default_str();
  kernels
      ->add_option(
          "--out", options->out, "Records are appended here; - is stdout")
      ->capture_default_str();
  AddWords(
      kernels,
      "--kind",
      [options](const std::string& name) {
        options->bench.kinds.push_back(
            trainfare::model::FromText<trainfare::model::KernelKind>(name));
      },
      "Only these: gemm,attention; all without");
  kernels->add_flag("--activity",
                    options->bench.activity,
                    "Count the launches of each operation, and the time in "
                    "which one of them runs");
  kernels->add_flag_callback(
      "--launch-each-tensor",
      [options] {
        options->bench.access = trainfare::model::FusedAccess::kOneTensor;
      },
      "Of a fused Adan: one launch a tensor, instead of one for all");
  device.AddOptions(kernels);
  kernels->callback([options, &device, &exit_code] {
    exit_code = trainer::RunKernelBench(
        options->plan, options->out, device.Open(), options->bench);
  });
}

void AddCopyBench(CLI::App* bench, DeviceOptions& device, int& exit_code) {
  const auto copying = std::make_shared<trainer::CopyBenchOptions>();
  CLI::App* copy =
      bench->add_subcommand("copy", "A copy within the device's memory");
  copy->add_option("--bytes", copying->bytes, "To be copied at once")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  copy->add_option(
          "--out", copying->out, "The record is appended here; - is stdout")
      ->capture_default_str();
  device.AddOptions(copy);
  copy->callback([copying, &device, &exit_code] {
    exit_code = trainer::RunCopyBench(*copying, device.Open());
  });
}

void AddCollectiveBench(CLI::App* bench,
                        DeviceOptions& device,
                        Ranks& ranks,
                        int& exit_code) {
  const auto collective = std::make_shared<trainer::CollectiveBenchOptions>();
  CLI::App* collectives = bench->add_subcommand(
      "collectives", "Messages between the ranks that a launcher started");
  using trainfare::model::Collective;
  const auto asked = std::make_shared<std::vector<Collective>>();
  AddWords(
      collectives,
      "--operations",
      [asked](const std::string& word) {
        asked->push_back(trainfare::model::FromText<Collective>(word));
      },
      "all_reduce, all_gather, reduce_scatter")
      ->default_str("all_reduce");
  collectives
      ->add_option("--bytes", collective->bytes, "Sizes of a rank's message")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{4}, int64_t{1} << 40))
      ->capture_default_str();
  collectives
      ->add_option("--samples", collective->samples, "Of each size, timed")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->capture_default_str();
  collectives
      ->add_option(
          "--out", collective->out, "Records are appended here; - is stdout")
      ->capture_default_str();
  device.AddOptions(collectives);
  ranks.AddOptions(collectives);
  collectives->callback([collective, asked, &device, &ranks, &exit_code] {
    if (!asked->empty()) collective->operations = *asked;
    const at::Device opened = device.Open();
    exit_code = ranks.Run(opened, [&](trainer::Communicator* communicator) {
      if (communicator == nullptr) {
        throw trainfare::model::InputError(
            "bench collectives: expected ranks, as torchrun, mpirun or srun "
            "start them");
      }
      return trainer::RunCollectiveBench(*collective, opened, *communicator);
    });
  });
}

// Each thing that is timed by itself is a subcommand of `bench`.
void AddBench(CLI::App& app,
              DeviceOptions& device,
              Ranks& ranks,
              int& exit_code) {
  CLI::App* bench = app.add_subcommand(
      "bench", "Time the parts of a step by themselves, one record each");
  bench->require_subcommand(1);
  AddKernelBench(bench, device, exit_code);
  AddCopyBench(bench, device, exit_code);
  AddCollectiveBench(bench, device, ranks, exit_code);
}

void AddTrace(CLI::App& app) {
  const auto options = std::make_shared<trainer::TraceOptions>();
  CLI::App* trace = app.add_subcommand(
      "trace", "A step recorded with --layers as a Chrome trace");
  trace->add_option("RECORDS", options->records, "Measurement records")
      ->required();
  trace
      ->add_option(
          "--out", options->out, "The trace, for ui.perfetto.dev; - is stdout")
      ->required();
  trace->add_option(
      "--line", options->line, "Of the record; the last of a step");
  trace->add_option("--step", options->step, "Of the record; the last");
  trace->callback([options] { trainer::WriteTrace(*options); });
}

// What the comparison with the reference implementation needs; not for users.
void AddReferenceCommands(CLI::App& app, DeviceOptions& device) {
  const auto options = std::make_shared<trainer::GradientOptions>();
  CLI::App* gradients = app.add_subcommand(
      "gradients", "Loss, logits and gradients of one batch");
  gradients->group("");
  gradients->add_option("--model", options->model)->required();
  gradients->add_option("--data", options->data)->required();
  gradients->add_option("--out", options->out)->required();
  gradients->add_option("--length", options->length)
      ->required()
      ->check(CLI::Range(int64_t{2}, int64_t{1'000'000}));
  gradients->add_flag("--fp64", options->wide);
  gradients->add_flag("--gradient-checkpointing",
                      options->gradient_checkpointing);
  device.AddOptions(gradients);
  gradients->callback(
      [options, &device] { trainer::WriteGradients(*options, device.Open()); });

  CLI::App* tokenize =
      app.add_subcommand("tokenize", "Token ids of each line of stdin");
  tokenize->group("");
  tokenize->add_option("--model", options->model)->required();
  tokenize->callback([options] {
    const auto tokenizer = trainer::WordPiece::FromFolder(options->model);
    for (std::string line; std::getline(std::cin, line);) {
      const char* separator = "";
      for (const int64_t id : tokenizer.Tokenize(line)) {
        std::cout << separator << id;
        separator = " ";
      }
      std::cout << '\n';
    }
  });
}

void AddMeasure(CLI::App& app,
                DeviceOptions& device,
                Ranks& ranks,
                int& exit_code) {
  struct Options {
    std::string plan = "-";
    std::string out = "-";
    bool layers = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* measure = app.add_subcommand(
      "measure", "Run training steps as a plan asks, one record a run");
  measure
      ->add_option(
          "--plan", options->plan, "Requests, JSON Lines; - reads stdin")
      ->capture_default_str();
  measure
      ->add_option(
          "--out", options->out, "Records are appended here; - is stdout")
      ->capture_default_str();
  measure->add_flag(
      "--layers", options->layers, "Time each part of the model, too");
  device.AddOptions(measure);
  ranks.AddOptions(measure);
  measure->callback([options, &device, &ranks, &exit_code] {
    const at::Device opened = device.Open();
    exit_code = ranks.Run(opened, [&](trainer::Communicator* communicator) {
      return trainer::RunMeasurePlan(options->plan,
                                     options->out,
                                     opened,
                                     options->layers,
                                     {communicator, ranks.buckets()});
    });
  });
}

int Run(int argc, char** argv) {
  CLI::App app("Trains Transformers for real, and measures its steps.",
               "trainfare-trainer");
  app.set_version_flag("--version", trainer::VersionText());
  app.require_subcommand(1);
  // The library repeats the argument as it was given.
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return "error: " + trainfare::hardware::OneLine(error.what()) +
           "; see --help\n";
  });
  int exit_code = 0;

  Ranks ranks;
  DeviceOptions device(ranks);
  AddMeasure(app, device, ranks, exit_code);
  app.add_subcommand("devices",
                     "What there is to compute on, a line of JSON each")
      ->callback([] {
        for (const std::string& line : trainer::DescribeDevices()) {
          std::cout << line << '\n';
        }
      });
  AddTrain(app, device, ranks, exit_code);
  AddBench(app, device, ranks, exit_code);
  AddTrace(app);
  AddReferenceCommands(app, device);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11's own codes start at 100; help and version are 0.
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  // First: what starts a thread comes behind it.
  trainer::WatchSignals();
  trainer::InstallHostAllocator();
  try {
    const int code = Run(argc, argv);
    if (!std::cout.flush()) {
      throw trainfare::model::InputError("standard output: cannot be written");
    }
    return code;
  } catch (const trainer::Interrupted&) {
    return trainer::kInterruptedExit;
  } catch (const std::exception& error) {
    std::cerr << "error: " << trainer::FirstLine(error) << '\n';
    return trainer::IsBadRequest(error) ? 1 : 70;
  }
}
