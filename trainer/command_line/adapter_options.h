#pragma once

#include "model/workload.h"
#include "trainer/command_line/cli.h"

namespace trainfare::trainer {

// `--lora-rank N` and `--lora-matrices A,B` into `trainable`. Returns the first.
CLI::Option* AddAdapters(CLI::App* command, model::Trainable& trainable);

}  // namespace trainfare::trainer
