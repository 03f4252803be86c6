#include "trainer/training/session.h"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>
#include <utility>

#include "model/error.h"
#include "model/stack_rules.h"
#include "model/trainer_rules.h"
#include "trainer/device/device_memory.h"
#include "trainer/device/launch_counter.h"
#include "trainer/network/autocast.h"
#include "trainer/optimizer/make_optimizer.h"
#include "trainer/ranks/sharded_parallel.h"
#include "trainer/runtime/signals.h"

namespace trainfare::trainer {
namespace {

using model::Precision;

std::optional<at::ScalarType> AutocastType(Precision precision) {
  if (precision == Precision::kBf16) return at::kBFloat16;
  if (precision == Precision::kFp16) return at::kHalf;
  return std::nullopt;
}

// In the forward pass, and in the backward pass at the same place.
void ThrowIfStoppedAtPart(const PartName& /*part*/, const at::Tensor& output) {
  ThrowIfStopRequested();
  if (!output.requires_grad()) return;
  output.register_hook([](const at::Tensor&) { ThrowIfStopRequested(); });
}

}  // namespace

void CheckPrecision(Precision precision, at::Device device) {
  model::RequireTrainerPrecision(precision);
  if (precision != Precision::kTf32 || device.is_cuda()) return;
  throw model::InputError(
      "precision: a CPU has fp32, bf16 and fp16 here, got tf32");
}

Session::Session(std::unique_ptr<Transformer> transformer,
                 Precision precision,
                 const OptimizerOptions& optimizer)
    : transformer_(std::move(transformer)),
      precision_(precision),
      optimizer_kind_(optimizer.kind),
      clock_(transformer_->device()) {
  CheckPrecision(precision, transformer_->device());
  if (transformer_->device().is_cuda()) {
    at::globalContext().setAllowTF32CuBLAS(precision == Precision::kTf32);
  }
  if (precision == Precision::kFp16) scaler_.emplace();
  optimizer_ = MakeOptimizer(transformer_->TrainedParameters(), optimizer);
}

void Session::Join(Communicator& communicator,
                   const BucketOptions& buckets,
                   const model::Parallel& parallel) {
  const std::vector<Parameter>& parameters = transformer_->parameters();
  const int ranks = communicator.world_size();
  if (parallel.shard == model::Shard::kNone || ranks == 1) {
    ranks_ = std::make_unique<DataParallel>(communicator, parameters, buckets);
    ranks_->ShareParameters();
    optimizer_->Reset();  // masters of rank 0's parameters
    return;
  }
  ENSURE(!scaler_, "a loss scale that each rank would judge by its share");
  OptimizerOptions options = optimizer_->options();
  options.blocks = BlocksOf(parameters);
  optimizer_.reset();
  ranks_ =
      std::make_unique<ShardedParallel>(communicator, parameters, parallel);
  ranks_->ShareParameters();
  options.sum_over_shares = ranks_->SumOverShares();
  optimizer_ = MakeOptimizer(ranks_->Updated(), options);
}

void Session::Reset(uint64_t seed) {
  if (ranks_) ranks_->HoldParameters();
  transformer_->Reset(seed);
  if (ranks_) ranks_->ShareParameters();
  optimizer_->Reset();
  if (scaler_) scaler_->Restore({});
}

std::optional<RankDescription> Session::DescribeRanks() const {
  if (!ranks_) return std::nullopt;
  const Communicator& communicator = ranks_->communicator();
  return RankDescription{communicator.rank(),
                         communicator.world_size(),
                         communicator.place().launcher,
                         communicator.backend(),
                         communicator.transport(),
                         ranks_->bucket_bytes(),
                         ranks_->layers()};
}

void Session::AddOutcome(StepRecord& record) const {
  if (time_parts()) record.parts = parts();
  record.optimizer_launches = optimizer_launches();
  if (const auto scale = loss_scale()) {
    record.skipped_steps = scale->skipped_steps;
  }
  const PeakMemory peak = PeakMemoryOf(transformer_->device());
  record.peak_memory_bytes = peak.held_bytes;
  record.peak_allocated_bytes = peak.allocated_bytes;
}

void RequireRanOn(at::Device asked, const at::Tensor& result) {
  if (result.device() == asked) return;
  throw std::runtime_error(
      fmt::format("asked to run on {}, but the result is on {}",
                  asked.str(),
                  result.device().str()));
}

Output Session::Forward(const Batch& batch,
                        bool training,
                        const PartEnd& end) const {
  const Autocast autocast(
      transformer_->device().type(),
      NarrowWeights() ? std::nullopt : AutocastType(precision_));
  return transformer_->Forward(batch, training, end);
}

bool Session::LaunchesCount() const {
  const bool ours =
      optimizer_kind_.implementation ==
          model::OptimizerImplementation::kFused &&
      (optimizer_kind_.kind == model::OptimizerKind::kAdan || NarrowWeights());
  return transformer_->device().is_cpu() || ours ||
         optimizer_kind_.implementation ==
             model::OptimizerImplementation::kForLoop;
}

void Session::BeginStep() {
  clock_.Wait();
  clock_.Clear();
  losses_.clear();
  passes_.clear();
  step_begin_s_ = MonotonicSeconds();
  clock_.Mark();  // number 0, the step's start
  optimizer_->ZeroGradients();
}

// Marks the end of each part, and by a hook on its output the same place of the
// backward pass: autograd runs the later parts' nodes first, and the hook once
// the output's gradient is complete.
PartEnd Session::MarkParts(size_t pass) {
  return [this, pass](const PartName& part, const at::Tensor& output) {
    PassMarks& marks = passes_[pass];
    marks.part_ends.push_back(clock_.Mark());
    const size_t place = marks.gradients.size();
    marks.gradients.emplace_back();
    if (parts_.size() <= place) parts_.push_back(part.text);
    if (!output.requires_grad()) return;
    output.register_hook([this, pass, place](const at::Tensor&) {
      passes_[pass].gradients[place] = clock_.Mark();
    });
  };
}

// What the ranks do at the end of a part is the part's own time. Where nobody
// waits for this process, a signal ends the step there.
PartEnd Session::EndsOfParts(size_t pass) {
  const PartEnd gathers =
      ranks_ ? ranks_->BeginForward() : PartEnd(ThrowIfStoppedAtPart);
  const PartEnd marks = time_parts_ ? MarkParts(pass) : PartEnd();
  if (!gathers) return marks;
  if (!marks) return gathers;
  return [gathers, marks](const PartName& part, const at::Tensor& output) {
    gathers(part, output);
    marks(part, output);
  };
}

void Session::ForwardBackward(const Batch& batch,
                              int64_t accumulation,
                              bool last) {
  const size_t pass = passes_.size();
  passes_.emplace_back();
  passes_[pass].begin = clock_.Mark();
  if (time_parts_) parts_.clear();
  // The logits go here: the backward pass has what it needs of them, and those
  // of a large vocabulary are much of the memory.
  const at::Tensor mean =
      Forward(batch, /*training=*/true, EndsOfParts(pass)).loss;
  if (time_parts_) parts_.emplace_back("head");
  ENSURE(mean.defined(), "a training batch has labels");
  const double share = batch.weight / static_cast<double>(accumulation);
  const at::Tensor loss = share == 1.0 ? mean : mean * share;
  losses_.push_back(loss.detach());
  passes_[pass].forward_end = clock_.Mark();
  if (ranks_) {
    ranks_->BeginBackward(last ? at::stack(losses_).sum() : at::Tensor(), last);
  }
  (scaler_ ? scaler_->Scaled(loss) : loss).backward();
  if (ranks_) ranks_->EndBackward();
  passes_[pass].backward_end = clock_.Mark();
}

bool Session::CheckGradients() {
  if (!scaler_) return true;
  return NarrowWeights() ? scaler_->Check(optimizer_->Gradients())
                         : scaler_->Unscale(optimizer_->Gradients());
}

void Session::Update() {
  optimizer_begin_ = clock_.Mark();
  // The scale of this step: the check may move it for the next.
  const double loss_scale =
      scaler_ && NarrowWeights() ? scaler_->state().scale : 1.0;
  if (!CheckGradients()) {
    optimizer_end_ = clock_.Mark();
    return;
  }
  // The second step: the first may initialise what later ones update.
  if (optimizer_->steps() == 1 && !optimizer_launches_ && LaunchesCount()) {
    const LaunchCounter counter;
    optimizer_->Step(loss_scale);
    optimizer_launches_ = counter.count();
  } else {
    optimizer_->Step(loss_scale);
  }
  if (ranks_) ranks_->EndUpdate();
  optimizer_end_ = clock_.Mark();
}

StepTimes Session::EndStep() {
  clock_.Wait();
  StepTimes times;
  times.step_s = MonotonicSeconds() - step_begin_s_;
  for (const PassMarks& pass : passes_) {
    times.forward_s += clock_.SecondsBetween(pass.begin, pass.forward_end);
    times.backward_s +=
        clock_.SecondsBetween(pass.forward_end, pass.backward_end);
  }
  times.optimizer_s = clock_.SecondsBetween(optimizer_begin_, optimizer_end_);
  for (const at::Tensor& loss : losses_) {
    RequireRanOn(transformer_->device(), loss);
    if (!ranks_) times.loss += loss.item<double>();
  }
  if (ranks_) {
    times.loss = ranks_->loss();
    times.stop = ranks_->stop_asked();
    times.gradients = ranks_->TakeGradientTimes();
    times.waited_s = ranks_->TakeWaited();
  }
  if (time_parts_) times.timeline = Timeline();
  return times;
}

StepTimeline Session::Timeline() const {
  const auto at = [this](size_t mark) {
    return clock_.SecondsBetween(0, mark);
  };
  StepTimeline timeline;
  for (const PassMarks& pass : passes_) {
    PassTimeline instants;
    instants.forward_at_s.push_back(at(pass.begin));
    for (const size_t end : pass.part_ends) {
      instants.forward_at_s.push_back(at(end));
    }
    instants.forward_at_s.push_back(at(pass.forward_end));
    instants.backward_at_s.push_back(at(pass.forward_end));
    for (auto mark = pass.gradients.rbegin(); mark != pass.gradients.rend();
         ++mark) {
      // A part that needs no gradient ends where the part before it does.
      instants.backward_at_s.push_back(at(mark->value_or(pass.backward_end)));
    }
    instants.backward_at_s.push_back(at(pass.backward_end));
    timeline.passes.push_back(std::move(instants));
  }
  timeline.optimizer_begin_s = at(optimizer_begin_);
  timeline.optimizer_end_s = at(optimizer_end_);
  return timeline;
}

at::Tensor Session::Predict(const Batch& batch) const {
  const at::NoGradGuard no_grad;
  Batch unlabelled = batch;
  unlabelled.labels.reset();
  unlabelled.start_positions.reset();
  unlabelled.end_positions.reset();
  return Forward(unlabelled, /*training=*/false, {}).logits;
}

}  // namespace trainfare::trainer
