#include "calibrate/records/import/timed_parts.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "table_rows.h"

namespace trainfare::calibrate {
namespace {

using model::Work;

// A row whose notes and task are these.
std::string RowOf(const std::string& notes,
                  const std::string& task,
                  const std::string& metric) {
  return "src,f,s,Tesla T4,1,1,bert_large,1024,24,16,4096,30522,512,8,1,fp32,"
         "PyTorch 2.1.0,," +
         task + "," + metric + ",1350,\"" + notes + "\"";
}

Observation Read(const std::string& notes,
                 const std::string& task = "pretrain",
                 const std::string& metric = "step_ms") {
  return OneRow(RowOf(notes, task, metric));
}

std::string ReasonOf(const std::string& notes,
                     const std::string& task = "pretrain") {
  return ReasonOfRow(RowOf(notes, task, "step_ms"));
}

TEST_CASE("passes without the update, in whatever words") {
  for (const char* notes : {"no optimizer step",
                            "forward+backward; no optimizer step",
                            "optimizer step excluded",
                            "fwd+bwd without the optimizer",
                            "FWD/BWD, w/o optimiser",
                            "forward and backward, no weight update",
                            "forward-backward only",
                            "only the forward and backward passes are timed",
                            "fwd + bwd (excl. optimizer)",
                            "backward and forward, excluding any updates",
                            "without data loading or optimizer step",
                            "forward, backward; the optimizer is not included",
                            "the step does not include the optimizer",
                            "the step doesn't include the optimizer",
                            "forward/backward without an Adam update",
                            "optimizer: none",
                            "fprop and bprop, optimizer time skipped"}) {
    CAPTURE(notes);
    const Observation observation = Read(notes);
    CHECK(observation.workload.work == Work::kForwardBackward);
    CHECK(observation.quantity == Quantity::kStep);
  }
}

TEST_CASE("one pass of a training step, in whatever words") {
  for (const char* notes : {"FORWARD ONLY part of the training step",
                            "forward only",
                            "fwd-only",
                            "only the forward pass is timed",
                            "forward pass alone",
                            "Timed: forward",
                            "forward, no backward",
                            "without backward or optimizer"}) {
    CAPTURE(notes);
    const Observation observation = Read(notes);
    CHECK(observation.workload.work == Work::kForwardBackward);
    CHECK(observation.quantity == Quantity::kForward);
  }
  for (const char* notes : {"BACKWARD ONLY part of the training step",
                            "bwd only, no optimizer",
                            "backward time"}) {
    CAPTURE(notes);
    CHECK(Read(notes).quantity == Quantity::kBackward);
  }
}

TEST_CASE("a forward pass by itself is inference where the task says so") {
  for (const char* notes : {"forward only; mean",
                            "SQuAD encoder forward",
                            "no backward, no optimizer",
                            ""}) {
    CAPTURE(notes);
    const Observation observation = Read(notes, "inference");
    CHECK(observation.workload.work == Work::kForward);
    CHECK(observation.quantity == Quantity::kStep);
  }
  CHECK(Read("batch inference", "").workload.work == Work::kForward);
}

TEST_CASE("a whole step, whatever its notes say of optimizers and passes") {
  for (const char* notes : {"",
                            "fwd+bwd+opt",
                            "forward, backward and fused optimizer step",
                            "forward+backward with optimizer",
                            "includes optimizer and data loading",
                            "fwd+bwd; optimizer included",
                            "no optimizer offload",
                            "without optimizer state sharding",
                            "no fused optimizer",
                            "no dropout; optimizer AdamW",
                            "optimizer states sharded over 8 ranks",
                            "Fuse optimizer step into backward",
                            "s/iter read as one optimizer step of 8",
                            "all-reduce overlapped with forward and backward",
                            "no forward/backward overlap",
                            "backward_prefetch=BACKWARD_PRE",
                            "PyTorch 2.1. OPT-350M; driver update 550"}) {
    CAPTURE(notes);
    const Observation observation = Read(notes);
    CHECK(observation.workload.work == Work::kTraining);
    CHECK(observation.quantity == Quantity::kStep);
  }
}

TEST_CASE("a row that leaves open what was timed is left out, not guessed") {
  const std::string open =
      "forward and backward, with the update or without is not stated";
  CHECK(ReasonOf("fwd+bwd") == open);
  CHECK(ReasonOf("time of the forward and backward passes; AdamW") == open);
  CHECK(ReasonOf("forward time of BERT on a stream") ==
        "which passes were timed is not stated");
  const std::string both = "its notes contradict each other on what was timed";
  CHECK(ReasonOf("forward only; backward only") == both);
  CHECK(ReasonOf("includes the optimizer; no optimizer step") == both);
  CHECK(ReasonOf("forward only, with optimizer") == both);
  CHECK(ReasonOf("forward only", "") ==
        "forward alone, of training or of inference is not stated");
  CHECK(ReasonOf("batch inference") ==
        "its notes say inference, its task does not");
  CHECK(ReasonOf("fwd+bwd", "inference") ==
        "inference, whose notes name a pass backward or an update");
}

TEST_CASE("a micro-batch is timed without the update, as its metric says") {
  for (const char* notes : {"", "fwd+bwd", "fwd+bwd; no optimizer"}) {
    CAPTURE(notes);
    const Observation observation = Read(notes, "pretrain", "micro_step_s");
    CHECK(observation.workload.work == Work::kForwardBackward);
    CHECK(observation.quantity == Quantity::kStep);
  }
}

}  // namespace
}  // namespace trainfare::calibrate
