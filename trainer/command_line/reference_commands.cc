#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "trainer/command_line/adapter_options.h"
#include "trainer/command_line/commands.h"
#include "trainer/command_line/device_options.h"
#include "trainer/data/wordpiece.h"
#include "trainer/training/gradients.h"

namespace trainfare::trainer {

void AddReferenceCommands(CLI::App& app, DeviceOptions& device) {
  const auto options = std::make_shared<GradientOptions>();
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
  AddAdapters(gradients, options->trainable);
  device.AddOptions(gradients);
  gradients->callback(
      [options, &device] { WriteGradients(*options, device.Open()); });

  CLI::App* tokenize =
      app.add_subcommand("tokenize", "Token ids of each line of stdin");
  tokenize->group("");
  tokenize->add_option("--model", options->model)->required();
  tokenize->callback([options] {
    const auto tokenizer = WordPiece::FromFolder(options->model);
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

}  // namespace trainfare::trainer
