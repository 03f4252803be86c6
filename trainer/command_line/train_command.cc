#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "model/limits.h"
#include "model/words.h"
#include "model/workload.h"
#include "trainer/command_line/adapter_options.h"
#include "trainer/command_line/commands.h"
#include "trainer/command_line/device_options.h"
#include "trainer/command_line/launched_ranks.h"
#include "trainer/command_line/word_options.h"
#include "trainer/training/options.h"
#include "trainer/training/train.h"

namespace trainfare::trainer {
namespace {

CLI::Range Counts() { return CLI::Range(int64_t{1}, int64_t{1'000'000'000}); }

void AddModelAndExamples(CLI::App* train, TrainOptions& options) {
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

void AddSchedule(CLI::App* train, TrainOptions& options) {
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

void AddLearning(CLI::App* train, TrainOptions& options) {
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
          PaddingFromText,
          "static (to --length), dynamic (to the longest of a batch) or "
          "bucketed (and batches of similar lengths)");
}

void AddCheckpoint(CLI::App* train, TrainOptions& options) {
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

void AddStack(CLI::App* train, TrainOptions& options) {
  AddWord(train,
          "--precision",
          options.workload.precision,
          model::FromText<model::Precision>,
          "fp32, bf16, fp16, or on a GPU tf32");
  AddWord(train,
          "--optimizer",
          options.workload.optimizer.kind,
          model::FromText<model::OptimizerKind>,
          "adamw, adan or sgd");
  AddWord(train,
          "--implementation",
          options.workload.optimizer.implementation,
          model::FromText<model::OptimizerImplementation>,
          "Of the optimizer: for_loop, multi_tensor or fused");
  AddWord(train,
          "--stack",
          options.workload.stack.fusion,
          model::FromText<model::Fusion>,
          "eager, or fused (bias, activation, dropout, residual and LayerNorm "
          "in one pass)");
  AddWord(train,
          "--attention",
          options.workload.stack.attention,
          model::FromText<model::Attention>,
          "materialised or flash");
  train->add_flag("--narrow-weights",
                  options.workload.stack.narrow_weights,
                  "Weights and gradients in bf16 or fp16, fp32 master copies "
                  "in the optimizer; without it autocast over fp32 weights");
}

void AddTrainable(CLI::App* train, TrainOptions& options) {
  auto* frozen =
      train
          ->add_option("--freeze-layers",
                       options.workload.trainable.frozen_layers,
                       "The embeddings and so many first blocks keep their "
                       "weights; 0: all train")
          ->check(CLI::Range(int64_t{0}, int64_t{1'000'000}))
          ->capture_default_str();
  AddAdapters(train, options.workload.trainable)->excludes(frozen);
  AddWord(train,
          "--shard",
          options.workload.parallel.shard,
          model::FromText<model::Shard>,
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

}  // namespace

void AddTrain(CLI::App& app,
              DeviceOptions& device,
              LaunchedRanks& ranks,
              int& exit_code) {
  CLI::App* train =
      app.add_subcommand("train", "Train a model on labelled examples");
  // Lives as long as the parser that fills it.
  const auto options = std::make_shared<TrainOptions>();
  AddModelAndExamples(train, *options);
  AddSchedule(train, *options);
  AddLearning(train, *options);
  AddCheckpoint(train, *options);
  AddStack(train, *options);
  AddTrainable(train, *options);
  train->add_option("--seed", options->seed, "Of weights, order and dropout")
      ->check(CLI::Range(int64_t{0}, model::kLargestSeed))
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
    exit_code = ranks.Run(opened, [&](Communicator* communicator) {
      return Train(*options, opened, communicator, ranks.buckets());
    });
  });
}

}  // namespace trainfare::trainer
