#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/collective.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/optimizer_kernels.h"
#include "model/words.h"
#include "trainer/bench/collective_bench.h"
#include "trainer/bench/copy_bench.h"
#include "trainer/bench/kernel_bench.h"
#include "trainer/command_line/commands.h"
#include "trainer/command_line/device_options.h"
#include "trainer/command_line/launched_ranks.h"
#include "trainer/command_line/word_options.h"

namespace trainfare::trainer {
namespace {

void AddKernelBench(CLI::App* bench, DeviceOptions& device, int& exit_code) {
  struct Options {
    std::string plan = "-";
    std::string out = "-";
    KernelBenchOptions bench;
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
            model::FromText<model::KernelKind>(name));
      },
      "Only these: gemm,attention; all without");
  kernels->add_flag("--activity",
                    options->bench.activity,
                    "Count the launches of each operation, and the time in "
                    "which one of them runs");
  kernels->add_flag_callback(
      "--launch-each-tensor",
      [options] { options->bench.access = model::FusedAccess::kOneTensor; },
      "Of a fused Adan: one launch a tensor, instead of one for all");
  device.AddOptions(kernels);
  kernels->callback([options, &device, &exit_code] {
    exit_code = RunKernelBench(
        options->plan, options->out, device.Open(), options->bench);
  });
}

void AddCopyBench(CLI::App* bench, DeviceOptions& device, int& exit_code) {
  const auto copying = std::make_shared<CopyBenchOptions>();
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
    exit_code = RunCopyBench(*copying, device.Open());
  });
}

void AddCollectiveBench(CLI::App* bench,
                        DeviceOptions& device,
                        LaunchedRanks& ranks,
                        int& exit_code) {
  const auto collective = std::make_shared<CollectiveBenchOptions>();
  CLI::App* collectives = bench->add_subcommand(
      "collectives", "Messages between the ranks that a launcher started");
  using model::Collective;
  const auto asked = std::make_shared<std::vector<Collective>>();
  AddWords(
      collectives,
      "--operations",
      [asked](const std::string& word) {
        asked->push_back(model::FromText<Collective>(word));
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
    exit_code = ranks.Run(opened, [&](Communicator* communicator) {
      if (communicator == nullptr) {
        throw model::InputError(
            "bench collectives: expected ranks, as torchrun, mpirun or srun "
            "start them");
      }
      return RunCollectiveBench(*collective, opened, *communicator);
    });
  });
}

}  // namespace

void AddBench(CLI::App& app,
              DeviceOptions& device,
              LaunchedRanks& ranks,
              int& exit_code) {
  CLI::App* bench = app.add_subcommand(
      "bench", "Time the parts of a step by themselves, one record each");
  bench->require_subcommand(1);
  AddKernelBench(bench, device, exit_code);
  AddCopyBench(bench, device, exit_code);
  AddCollectiveBench(bench, device, ranks, exit_code);
}

}  // namespace trainfare::trainer
