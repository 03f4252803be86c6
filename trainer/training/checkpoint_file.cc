#include "trainer/training/checkpoint_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <utility>

#include "hardware/files/foreign_text.h"
#include "model/error.h"
#include "model/fields.h"
#include "trainer/network/dropout.h"
#include "trainer/training/checkpoint.h"
#include "trainer/training/resolved_options.h"

namespace trainfare::trainer {
namespace {

using model::InputError;

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

}  // namespace

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

CheckpointFile::CheckpointFile(const TrainOptions& options,
                               std::map<std::string, std::string> run,
                               const Share& share)
    : options_(options), run_(std::move(run)), share_(share) {}

void CheckpointFile::Resume(int64_t steps, Session& session, Feed& feed) {
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

bool CheckpointFile::Due(int64_t step) const {
  const int64_t every = options_.checkpoint_every;
  return !options_.checkpoint.empty() && every > 0 && step % every == 0;
}

void CheckpointFile::Save(int64_t step, Session& session, const Feed& feed) {
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

}  // namespace trainfare::trainer
