#include "trainer/command_line/adapter_options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "trainer/command_line/word_options.h"

namespace trainfare::trainer {

CLI::Option* AddAdapters(CLI::App* command, model::Trainable& trainable) {
  CLI::Option* rank =
      command
          ->add_option("--lora-rank",
                       trainable.lora_rank,
                       "Train adapters of this rank alone (LoRA); 0: none")
          ->check(CLI::Range(int64_t{0}, int64_t{1'000'000}))
          ->capture_default_str();
  AddWords(
      command,
      "--lora-matrices",
      [&trainable](const std::string& name) {
        model::AddLoraMatrix(name, trainable.lora);
      },
      "That adapters stand beside: query, key, value, output, "
      "feed_forward_gate, feed_forward_in, feed_forward_out (default: query, "
      "value)")
      ->needs(rank);
  return rank;
}

}  // namespace trainfare::trainer
